"""``gradian diagnose`` and ``gradian checks`` from the outside."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys

import pytest

from gradian_core.audit import samples

HOSTILE = "::error::owned\n##[error]x \x1b[31mred [bold]b[/bold] \u202etxt </script> %0A"


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def train(tmp_path):
    rows = samples.items(300)
    return write(tmp_path / "train.jsonl", [*rows, *rows[:60]])


def test_text_is_the_default(gradian, train):
    done = gradian("diagnose", "-d", train)
    assert done.code == 0
    assert done.out.startswith("  | 1 fault found by")
    assert re.search(r"^\w+ data\.duplicates$", done.out, re.MULTILINE)
    assert "With --run" in done.out
    assert "Checking: done" in done.err
    assert gradian("diagnose", "-d", train, "-q").err == ""


@pytest.mark.parametrize(
    ("limit", "code"), [(None, 0), ("critical", 0), ("high", 0), ("medium", 1), ("info", 1)]
)
def test_exit_code_of_findings(gradian, train, limit, code):
    options = [] if limit is None else ["--fail-on", limit]
    done = gradian("diagnose", "-d", train, "-q", "--format", "json", *options)
    worst = json.loads(done.out)["findings"][0]["severity"]
    assert worst == "medium"
    assert done.code == code


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        ((), "nothing to diagnose"),
        (("--fail-on", "dire"), "--fail-on"),
        (("--format", "xml"), "--format"),
        (("-d", "train.jsonl", "--select", "data.duplicate"), "Did you mean data.duplicates?"),
        (("-d", "train.jsonl", "--ignore", "dta.*"), "matches no check"),
        (("-d", "train.jsonl", "--max-seq-length", "0"), "must be from 1 to"),
        (("-d", "train.jsonl", "--max-seq-length", "many"), "--max-seq-length"),
        (("-d", "trian.jsonl"), "Did you mean train.jsonl?"),
        (("-d", "train.jsonl", "-r", "nowhere"), "nowhere"),
        (("-d", "train.jsonl", "-o", "train.jsonl"), "--out"),
        (("-d", "train.jsonl", "--tokenizer", "./nowhere"), "nowhere"),
        (("-c", "missing.yaml"), "missing.yaml"),
    ],
    ids=" ".join,
)
def test_wrong_usage(gradian, train, argv, words):
    done = gradian("diagnose", *argv)
    assert done.code == 2
    assert words in done.err
    assert "Traceback" not in done.err
    assert done.out == ""


def test_select_and_ignore_may_be_repeated(gradian, train):
    done = gradian(
        *("diagnose", "-q", "-d", train, "--format", "sarif"),
        *("--select", "data.*", "--select", "config.lr_too_high", "--ignore", "data.d*"),
    )
    rules = {r["id"] for r in json.loads(done.out)["runs"][0]["tool"]["driver"]["rules"]}
    assert "config.lr_too_high" in rules
    assert "data.truncated" in rules
    assert not any(rule.startswith("data.d") for rule in rules)


def test_the_config_file_and_options_over_it(gradian, train, tmp_path):
    (tmp_path / "gradian.yaml").write_text("dataset: elsewhere.jsonl\n")
    assert gradian("diagnose", "-c", "gradian.yaml").code == 2
    assert gradian("diagnose", "-c", "gradian.yaml", "-d", train).code == 0


def test_reports_are_written(gradian, train):
    done = gradian("diagnose", "-d", train, "-o", "audit", "--format", "github", "--fail-on", "low")
    assert done.code == 1
    assert done.out.startswith("::notice title=gradian diagnose::")
    record = json.loads((train.parent / "audit" / "run.json").read_text())
    assert record["exit_status"] == 1
    report = json.loads((train.parent / "audit" / "report.json").read_text())
    assert "data.duplicates" in {f["id"] for f in report["findings"]}
    assert "data.duplicates" in (train.parent / "audit" / "report.md").read_text()


def test_annotations_name_file_and_line(gradian, train):
    out = gradian("diagnose", "-q", "-d", train, "--format", "github").out
    (line,) = (
        line for line in out.splitlines() if "data.duplicates" in line.partition("::")[2][:60]
    )
    assert "file=train.jsonl,line=301" in line


# --- hostile text ------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["text", "json", "github", "sarif"])
def test_hostile_rows_names_and_keys_reach_no_output(gradian, tmp_path, form):
    rows = [{"prompt": HOSTILE, "completion": f"Answer {i % 2}", HOSTILE: 1} for i in range(20)]
    rows += [{"prompt": f"{HOSTILE} {i}", "completion": "N/A"} for i in range(20)]
    path = write(tmp_path / "::error::[red]x\x1b[31m.jsonl", rows)
    run = tmp_path / "run \x1b[31m::error::"
    run.mkdir()
    log = [{"step": i, "loss": 1.0, HOSTILE: 1, f"eval_{HOSTILE}_loss": 1.0} for i in range(30)]
    (run / "trainer_state.json").write_text(json.dumps({"log_history": log, HOSTILE: HOSTILE}))
    (run / "adapter_config.json").write_text(
        json.dumps({**samples.adapter().raw, "base_model_name_or_path": HOSTILE})
    )
    done = gradian("diagnose", "-d", path, "-r", run, "--format", form)
    assert done.code == 0, done.err
    assert "\x1b" not in done.out + done.err
    assert "\u202e" not in done.out + done.err
    for line in (done.out + done.err).splitlines():
        if form == "text":
            assert not line.lstrip().startswith("::")
            assert "##[" not in line
    if form == "github":
        kinds = [line.split(" ")[0] for line in done.out.splitlines()]
        assert set(kinds) <= {"::error", "::warning", "::notice"}
        assert all(re.match(r"::\w+ title=", line) for line in done.out.splitlines())
    if form in ("json", "sarif"):
        json.loads(done.out)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("::error::x\x1b[31m.jsonl", b'{"a\x1b[31m::error::": 1}\n'),
        ("train.jsonl", b'{"messages": [{"role": "\\u001b[31m::error::", "content": "x"}]}\n'),
        ("train.jsonl", b'{"prompt": 1, "completion": "\\n::error::"}\n'),
    ],
)
def test_hostile_text_in_error_messages(gradian, tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    done = gradian("diagnose", "-d", tmp_path / name)
    assert done.code == 2
    assert "\x1b" not in done.err
    assert not any(line.lstrip().startswith("::") for line in done.err.splitlines())


# --- bad input ---------------------------------------------------------------------------------

BOMB = "a: &a [x, x]\n" + "".join(
    f"{after}: &{after} [*{before}, *{before}]\n"
    for before, after in zip("abcdefgh", "bcdefghi", strict=True)
)
ROW = b'{"prompt": "a", "completion": "b"}'


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "holds no rows"),
        (b"\n\n \n", "holds no rows"),
        (ROW[:-4], "train.jsonl:1: not JSON"),
        (b'{"a": ' + b"[" * 200_000 + b"\n", "train.jsonl:1: nested too deeply"),
        (ROW.replace(b"a", b"\xff") + b"\n", "is not UTF-8"),
        (ROW.decode().encode("utf-16"), "UTF-16"),
        (gzip.compress(ROW * 9), "is not UTF-8"),
        (b"\x00" * 4096, "train.jsonl:1: not JSON"),
        (b'{"prompt": "a", "prompt": "b", "completion": "c"}', "stands twice"),
        (b'{"prompt": "\\ud83d", "completion": "c"}', "surrogate"),
        (b'{"chosen": "a", "rejected": "b", "prompt": "c"}', "preference data"),
        (b'{"input_ids": [1, 2]}', "tokenised already"),
        (b'"text"\n', "an object is needed"),
    ],
    ids=[
        "empty",
        "blank",
        "truncated",
        "deep",
        "latin-1",
        "utf-16",
        "gzip",
        "zeros",
        "twice",
        "surrogate",
        "preference",
        "tokenised",
        "no-object",
    ],
)
def test_bad_files_are_refused_with_their_place(gradian, tmp_path, content, words):
    (tmp_path / "train.jsonl").write_bytes(content)
    done = gradian("diagnose", "-d", "train.jsonl")
    assert done.code == 2
    assert words in done.err
    assert len(done.err) < 2000
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbf" + ROW + b"\n" + ROW,
        ROW + b"\r\n\r\n" + ROW + b"\r\n",
        b"[" + ROW + b"," + ROW + b"]",
        b'{"prompt": "' + b"a " * 2_000_000 + b'", "completion": "b"}\n' + ROW,
    ],
    ids=["bom", "crlf", "array", "long-line"],
)
def test_odd_files_are_read(gradian, tmp_path, content):
    (tmp_path / "train.jsonl").write_bytes(content)
    done = gradian("diagnose", "-q", "-d", "train.jsonl", "--format", "json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["n_examples"] == 2


@pytest.mark.parametrize(
    "content",
    [
        "a: &a [x, x]\n"
        + "".join(f"{c}: &{c} [*{b}, *{b}]\n" for b, c in zip("abcdefgh", "bcdefghi", strict=True)),
        "dataset: " + "[" * 5000,
        "x" * (2 << 20),
        "dataset: !!python/object/apply:os.system ['true']\n",
        "dataset: \x00\n",
        "- a list\n",
    ],
    ids=["bomb", "deep", "huge", "object", "zero", "list"],
)
def test_bad_configs_are_refused(gradian, tmp_path, content):
    (tmp_path / "gradian.yaml").write_text(content)
    done = gradian("diagnose", "-c", "gradian.yaml")
    assert done.code == 2
    assert "gradian.yaml" in done.err
    assert "Traceback" not in done.err


# --- checks ------------------------------------------------------------------------------------


def test_checks_are_listed_by_family(gradian):
    done = gradian("checks")
    assert done.code == 0
    assert re.match(r"\d+ checks: \d+ core, \d+ further \(\+\)\.\n", done.out)
    for family in ("config", "data", "dynamics"):
        assert re.search(rf"^{family}: \d+ checks$", done.out, re.MULTILINE)
    line = next(line for line in done.out.splitlines() if "data.duplicates" in line)
    assert "Exact duplicate examples" in line
    assert gradian("checks", "list").out == done.out


def test_checks_as_json_say_what_they_need(gradian):
    body = json.loads(gradian("checks", "--json").out)
    assert body["schema_version"] == "1.0"
    by_id = {check["id"]: check for check in body["checks"]}
    assert len(by_id) == len(body["checks"]) >= 41
    assert by_id["data.duplicates"]["family"] == "data"
    assert by_id["data.duplicates"]["needs"] == ["examples"]
    assert by_id["data.duplicates"]["core"]
    assert sum(check["core"] for check in body["checks"]) == 41


def test_what_is_declared_is_what_the_functions_need():
    from gradian_core.plugins.registry import load_registry

    registry = load_registry()
    for name, provided in registry.checks.items():
        assert provided.spec.needs == registry.create("check", name).needs, name


def test_one_check(gradian):
    done = gradian("checks", "show", "data.duplicates")
    assert done.code == 0
    assert done.out.startswith("data.duplicates: Exact duplicate examples\n")
    for heading in ("needs", "worst severity", "Why it matters", "How to fix", "Threshold"):
        assert heading in done.out
    missing = gradian("checks", "show", "data.duplicate")
    assert missing.code == 2
    assert "Did you mean data.duplicates?" in missing.err


def test_listing_checks_imports_nothing_heavy():
    program = (
        "import sys\n"
        "from gradian_core.cli.app import main\n"
        "assert main(['checks', '--json']) == 0\n"
        "print(*sys.modules, file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    heavy = {"h5py", "numpy", "peft", "pydantic", "rensa", "torch", "transformers", "yaml"}
    assert heavy.isdisjoint(done.stderr.split())


@pytest.mark.parametrize("form", ["text", "json", "github", "sarif"])
@pytest.mark.parametrize(
    "bad",
    [ROW[:20], b"[" * 200_000, b'{"prompt": "\xff", "completion": "c"}', b'"::error::owned"'],
    ids=["cut", "deep", "latin-1", "text"],
)
def test_a_bad_row_is_told_and_the_rest_is_audited(gradian, tmp_path, bad, form):
    (tmp_path / "train.jsonl").write_bytes(ROW + b"\n" + bad + b"\n" + ROW)
    done = gradian("diagnose", "-d", "train.jsonl", "-q", "--format", form, "--fail-on", "high")
    assert done.code == 1
    assert "data.unreadable_rows" in done.out
    assert "train.jsonl:2" in done.out
    assert done.err == ""
