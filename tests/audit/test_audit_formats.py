"""What people, GitHub and code scanning get to see, and what hostile text cannot do to them."""

from __future__ import annotations

import json
import re

import jsonschema
import pytest

from gradian_core.audit.fold import fold
from gradian_core.audit.formats.github import commands
from gradian_core.audit.formats.places import relative
from gradian_core.audit.formats.sarif import sarif
from gradian_core.audit.formats.text import audit_lines
from gradian_core.audit.headline import audit_headline
from gradian_core.audit.run import Answer, AuditResult, Outcome
from gradian_core.data.files import load_dataset
from gradian_core.findings import Finding, Severity
from gradian_core.report.assemble import assemble
from gradian_core.text import inert

HOSTILE = (
    "::error file=x::owned\n::set-output name=a::b\r\n##[error]x ##vso[task.setvariable]y "
    "\x1b[31mred\x1b]8;;http://x\x07 [bold]markup[/bold] \u202egnp.exe </script> 100% a,b:c"
)


def finding(name="house.a", severity="high", **values):
    values.setdefault("title", f"{name} has a title")
    return Finding(id=name, severity=Severity(severity), **values)


def audit(*findings, outcomes=(), n=10):
    told = fold(findings)
    result = AuditResult(findings=told, outcomes=tuple(outcomes))
    report = assemble(examples=(), findings=told, notes=["A note."])
    headline = audit_headline(result, n)
    return report.model_copy(update={"headline": headline}), result


def outcome(check, answer, why="", unlock=()):
    return Outcome(check=check, answer=Answer(answer), why=why, unlock=unlock)


def text(report, result, width=80):
    return [line for line, _ in audit_lines(report, result, width=width)]


@pytest.fixture
def dataset(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "data, 100%" / "tr:ain.jsonl"
    path.parent.mkdir()
    rows = [{"prompt": f"p{i}", "completion": "c"} for i in range(20)]
    path.write_text("\n\n" + "".join(json.dumps(row) + "\n" for row in rows))
    return load_dataset(path)


# --- the headline ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("findings", "outcomes", "words"),
    [
        ((), [outcome("a", "clean")], "No fault was found by 1 check in 10 training rows."),
        ((), [outcome("a", "not assessed")], "Nothing was assessed. 1 check could not be"),
        (
            (finding(severity="info"),),
            [outcome("a", "found")],
            "No fault was found by 1 check in 10 training rows.",
        ),
        (
            (
                finding("data.truncated", "low"),
                finding("config.max_seq_length_vs_data", "high", title="Too short.", fix="Use 9."),
                finding("data.duplicates", "low"),
            ),
            [outcome("a", "found"), outcome("b", "clean"), outcome("c", "failed")],
            # a consequence is no fault of its own
            "2 faults found by 2 checks in 10 training rows (1 high, 1 low). First: Too short, wit",
        ),
    ],
)
def test_headline(findings, outcomes, words):
    report, _ = audit(*findings, outcomes=outcomes)
    assert words in report.headline


def test_headline_without_rows():
    assert (
        audit(outcomes=[outcome("a", "clean")], n=0)[0].headline == "No fault was found by 1 check."
    )


# --- text --------------------------------------------------------------------------------------


def test_text_leads_with_the_worst_and_folds():
    lines = text(
        *audit(
            finding("data.duplicates", "medium", example_ids=tuple(f"a-{i}" for i in range(7))),
            finding("config.max_seq_length_vs_data", "high", detail="Why.", fix="Raise it."),
            finding("data.completion_truncated", "critical"),
            outcomes=[
                outcome("config.a", "not assessed", "No run.", ("--run",)),
                outcome("config.b", "not assessed", "No run.", ("--run",)),
                outcome("data.c", "not assessed", "Too little."),
                outcome("house.d", "failed", "Check house.d failed: ZeroDivisionError (plugin x)"),
            ],
        )
    )
    assert lines[0].startswith("  | 2 faults found (1 critical, 1 medium).")
    body = "\n".join(lines)
    order = [
        "CRITICAL config.max_seq_length_vs_data",
        "| Why.",
        "| Fix: Raise it.",
        "| With it (high by itself):",
        "| critical data.completion_truncated: data.completion_truncated has a title",
        "MEDIUM data.duplicates",
        "| Rows: a-0, a-1, a-2, a-3, a-4 and 2 more",
        "Not assessed: 3 checks",
        "| With --run, 2 checks: config.a, config.b",
        "| Too little. (data.c)",
        "Failed: 1 check",
        "| house.d: Check house.d failed: ZeroDivisionError (plugin x)",
        "Notes",
        "| A note.",
    ]
    places = [body.index(words) for words in order]
    assert places == sorted(places)


@pytest.mark.parametrize("width", [10, 60, 200])
def test_no_text_from_files_starts_a_line_or_commands_a_runner(width):
    report, result = audit(
        finding(
            "data.x",
            title=HOSTILE,
            detail=HOSTILE,
            fix=HOSTILE,
            example_ids=(HOSTILE,),
        ),
        finding("data.y", because_of="data.x", title=HOSTILE),
        outcomes=[
            outcome("house.z", "not assessed", HOSTILE),
            outcome("house.w", "failed", HOSTILE),
        ],
    )
    report = report.model_copy(update={"notes": (HOSTILE,), "headline": HOSTILE})
    lines = text(report, result, width)
    ours = re.compile(r"$|  \| |HIGH data\.x$|Not assessed: 1 check$|Failed: 1 check$|Notes$")
    for line in lines:
        assert ours.match(line), line
        assert not line.lstrip().startswith("::")
        assert not re.search(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e]", line)
        assert "##[" not in line
        assert "##vso[" not in line
    # it is shown, not hidden
    assert "[bold]markup[/bold]" in " ".join(lines).replace("  | ", "")


def test_inert_text_is_otherwise_as_it_was():
    assert inert("# Heading ## two #tag [x]") == "# Heading ## two #tag [x]"
    assert inert(inert("###[x]")) == inert("###[x]")


# --- GitHub ------------------------------------------------------------------------------------


def test_annotations_are_escaped_and_placed(dataset):
    hit = finding(
        severity="critical",
        title=HOSTILE,
        detail="50% more:\nline",
        fix="a, b",
        example_ids=(dataset[3].id, dataset[4].id),
    )
    notice, command = commands(audit(hit)[0], dataset)
    assert notice.startswith("::notice title=gradian diagnose::1 fault found")
    assert "\n" not in command
    assert "\r" not in command
    head, _, message = command.removeprefix("::").partition("::")
    assert head == ("error title=critical house.a,file=data%2C 100%25/tr%3Aain.jsonl,line=6")
    assert "%0A50%25 more: line%0AFix: a, b" in message
    assert "\x1b" not in command
    assert "##[" not in command
    assert "::" not in head


def test_annotations_stop_at_ten_and_say_so():
    findings = [finding(f"house.c{i:02}", "medium") for i in range(12)]
    report, _ = audit(*findings, finding("house.z", "critical"), finding("house.i", "info"))
    lines = list(commands(report, None))
    assert len(lines) == 11
    assert lines[1].startswith("::error title=critical house.z::")
    assert all(line.startswith("::warning ") for line in lines[2:])
    assert "4 more findings in the log or the report." in lines[0]


def test_ids_of_other_rows_have_no_place(dataset):
    for identifier in ("nonsense", f"{'0' * 12}-3", "a-99999999999999999999", "x-\u0663"):
        _, command = commands(audit(finding(example_ids=(identifier,)))[0], dataset)
        assert "file=" not in command


def test_paths_outside_the_working_folder_stay_absolute(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert relative(tmp_path / "there" / "x").is_absolute()
    assert relative(tmp_path / "here" / "x").as_posix() == "x"


# --- SARIF -------------------------------------------------------------------------------------

TEXT = {
    "type": "object",
    "required": ["text"],
    "properties": {"text": {"type": "string", "minLength": 1}},
}
INDEX = {"type": "integer", "minimum": -1}
LEVEL = {"enum": ["none", "note", "warning", "error"]}
ESSENTIALS = {
    "type": "object",
    "required": ["version", "runs"],
    "properties": {
        "$schema": {"type": "string", "format": "uri"},
        "version": {"const": "2.1.0"},
        "runs": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["tool"],
                "properties": {
                    "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                    "tool": {
                        "type": "object",
                        "required": ["driver"],
                        "properties": {
                            "driver": {
                                "type": "object",
                                "required": ["name"],
                                "additionalProperties": False,
                                "properties": {
                                    "name": {"type": "string"},
                                    "semanticVersion": {"type": "string"},
                                    "rules": {
                                        "type": "array",
                                        "uniqueItems": True,
                                        "items": {
                                            "type": "object",
                                            "required": ["id"],
                                            "additionalProperties": False,
                                            "properties": {
                                                "id": {"type": "string"},
                                                "shortDescription": TEXT,
                                            },
                                        },
                                    },
                                },
                            }
                        },
                    },
                    "invocations": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["executionSuccessful"],
                            "properties": {
                                "executionSuccessful": {"type": "boolean"},
                                "toolExecutionNotifications": {
                                    "type": "array",
                                    "items": {
                                        "type": "object",
                                        "required": ["message"],
                                        "additionalProperties": False,
                                        "properties": {
                                            "message": TEXT,
                                            "level": LEVEL,
                                            "associatedRule": {"type": "object"},
                                        },
                                    },
                                },
                            },
                        },
                    },
                    "results": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["message"],
                            "additionalProperties": False,
                            "properties": {
                                "ruleId": {"type": "string"},
                                "ruleIndex": INDEX,
                                "level": LEVEL,
                                "message": TEXT,
                                "properties": {"type": "object"},
                                "locations": {
                                    "type": "array",
                                    "items": {
                                        "type": "object",
                                        "required": ["physicalLocation"],
                                        "properties": {
                                            "physicalLocation": {
                                                "type": "object",
                                                "required": ["artifactLocation"],
                                                "properties": {
                                                    "artifactLocation": {
                                                        "required": ["uri"],
                                                        "properties": {
                                                            "uri": {
                                                                "type": "string",
                                                                "pattern": r"^[!-~]+$",
                                                            }
                                                        },
                                                    },
                                                    "region": {
                                                        "properties": {
                                                            "startLine": {
                                                                "type": "integer",
                                                                "minimum": 1,
                                                            }
                                                        }
                                                    },
                                                },
                                            }
                                        },
                                    },
                                },
                            },
                        },
                    },
                },
            },
        },
    },
}


def test_sarif_keeps_to_the_schema(dataset):
    report, result = audit(
        finding(example_ids=(dataset[0].id,), evidence={"rate": float("nan")}),
        finding("run.not_a_training_run", "info"),
        finding("house.b", "medium", title=HOSTILE, because_of="house.a"),
        outcomes=[
            outcome("house.a", "found"),
            outcome("house.b", "failed", HOSTILE),
            outcome("house.c", "not assessed", "No run."),
        ],
    )
    summaries = {"house.a": "about a", "house.b": "", "house.c": "about c"}
    body = sarif(report, result, dataset, summaries)
    document = json.loads(body)
    jsonschema.validate(document, ESSENTIALS)
    (run,) = document["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    for told in run["results"]:
        if "ruleIndex" in told:
            assert rules[told["ruleIndex"]] == told["ruleId"]
    first = run["results"][0]
    assert first["level"] == "error"
    place = first["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "data%2C%20100%25/tr%3Aain.jsonl"
    assert place["region"]["startLine"] == 3
    assert run["results"][1]["properties"]["becauseOf"] == "house.a"
    notices = run["invocations"][0]["toolExecutionNotifications"]
    assert [notice["level"] for notice in notices] == ["error", "note"]
    assert "\\u001b" not in body
    assert "\\u202e" not in body
    assert sarif(report, result, dataset, summaries) == body


def test_sarif_of_nothing():
    report, result = audit()
    jsonschema.validate(json.loads(sarif(report, result, None, {})), ESSENTIALS)
