"""Time and memory of ``gradian diagnose`` on large inputs.

Run with ``python benchmarks/audit.py``; neither torch nor a network is needed. Each measurement
is a process of its own, and its peak memory is that of the whole process.

- 100,000 rows (25 MB), no tokenizer: at most 10 s and 400 MB on two cores;
- the same with a tokenizer: at most twice the time of tokenising the same texts alone;
- a trainer log of 100,000 entries: at most 2 s and 300 MB.

``--out docs/results`` records them as ``audit.json`` and ``audit.md``.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

ROWS = 100_000
ENTRIES = 100_000
_TABLE: list[tuple[str, ...]] = []
CHATML = (
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def main() -> int:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--tokenise", nargs=2, type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, help="folder for audit.json and audit.md")
    options = parser.parse_args()
    if options.tokenise:
        return _tokenise(*options.tokenise)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = _write_rows(folder / "train.jsonl", options.rows)
        tokenizer = _write_tokenizer(folder / "tokenizer", data)
        run = _write_log(folder / "run")
        size = data.stat().st_size / 1e6
        _line("what", "wall s", "CPU s", "peak MB")
        _measure(f"{options.rows:,} rows, {size:.0f} MB", _diagnose("-d", data))
        alone = _measure("tokenising alone", [__file__, "--tokenise", data, tokenizer])
        both = _measure("with the tokenizer", _diagnose("-d", data, "--tokenizer", tokenizer))
        base = _measure("only the data checks", _diagnose("-d", data, "--select", "data.*"))
        times = list(zip(alone, both, base, strict=True))
        _line("ratio to tokenising", *(f"{b / a:.2f}" for a, b, _ in times), "")
        _line("ratio, less the rest", *(f"{(b - r) / a:.2f}" for a, b, r in times), "")
        _measure(f"log of {ENTRIES:,} entries", _diagnose("-r", run))
    if options.out:
        _record(options.out)
    return 0


def _record(folder: Path) -> None:
    libraries = ("gradian-ml", "numpy", "rapidfuzz", "tokenizers", "transformers")
    versions = {"python": platform.python_version(), **{n: version(n) for n in libraries}}
    cores, load = os.cpu_count(), round(os.getloadavg()[0], 1)
    result = {"versions": versions, "cores": cores, "load": load, "measured": _TABLE[1:]}
    text = json.dumps(result, indent=2, ensure_ascii=False)
    (folder / "audit.json").write_text(f"{text}\n", encoding="utf-8")
    head, *rows = [f"| {' | '.join(cells)} |" for cells in _TABLE]
    how = (
        f"By `python benchmarks/audit.py --out docs/results` on {cores} cores under a load of "
        f"{load}: read the CPU seconds and the ratios, not the wall time."
    )
    lines = [
        "# gradian diagnose on large inputs",
        "",
        how,
        "",
        head,
        "| --- | ---: | ---: | ---: |",
        *rows,
        "",
        ", ".join(f"{name} {number}" for name, number in versions.items()) + ".",
    ]
    (folder / "audit.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _diagnose(*arguments: object) -> list[object]:
    return ["-m", "gradian_core", "diagnose", "--quiet", *arguments]


def _measure(what: str, arguments: list[object]) -> tuple[float, float]:
    command = [sys.executable, *map(str, arguments)]
    started = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - started
    if process.returncode:
        raise SystemExit(f"{what}: exit status {process.returncode}")
    # Linux counts in KiB, macOS in bytes.
    peak = usage.ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)
    used = usage.ru_utime + usage.ru_stime
    _line(what, f"{wall:.1f}", f"{used:.1f}", f"{peak:.0f}")
    return wall, used


def _line(what: str, *cells: str) -> None:
    _TABLE.append((what, *cells))
    print(f"{what:28}" + "".join(f"{cell:>10}" for cell in cells), flush=True)


def _write_rows(path: Path, rows: int) -> Path:
    """Write rows of some 250 bytes; one in twenty nearly repeats another one."""
    draw = random.Random(0)
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["".join(draw.choices(letters, k=draw.randint(2, 10))) for _ in range(20_000)]
    made: list[dict[str, str]] = []
    for i in range(rows):
        if i % 20 == 0 and made:
            twin = made[draw.randrange(len(made))]
            made.append({**twin, "completion": f"{twin['completion']} {draw.choice(words)}"})
            continue
        prompt = "Answer the question. " + " ".join(draw.choices(words, k=11))
        made.append({"prompt": prompt, "completion": " ".join(draw.choices(words, k=19))})
    path.write_text("".join(json.dumps(row) + "\n" for row in made), encoding="utf-8")
    return path


def _write_tokenizer(folder: Path, data: Path) -> Path:
    """Train a byte-level BPE of 8,000 tokens on the first rows."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=8000,
        special_tokens=["<|im_start|>", "<|im_end|>", "<|pad|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    with data.open(encoding="utf-8") as file:
        backend.train_from_iterator(
            [line for line, _ in zip(file, range(5000), strict=False)], trainer
        )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend, eos_token="<|im_end|>", pad_token="<|pad|>"
    )
    tokenizer.chat_template = CHATML
    tokenizer.save_pretrained(folder)
    return folder


def _tokenise(data: Path, folder: Path) -> int:
    """Load the tokenizer and tokenise the texts of all rows, in batches, and nothing else."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(str(folder))
    texts = []
    for line in data.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        texts.append(
            f"<|im_start|>user\n{row['prompt']}<|im_end|>\n"
            f"<|im_start|>assistant\n{row['completion']}<|im_end|>\n"
        )
    for start in range(0, len(texts), 512):
        tokenizer(texts[start : start + 512], add_special_tokens=False, return_offsets_mapping=True)
    return 0


def _write_log(folder: Path) -> Path:
    folder.mkdir()
    history = [
        {
            "epoch": step / ENTRIES,
            "grad_norm": 0.5,
            "learning_rate": 1e-4 * (1 - step / ENTRIES),
            "loss": 1.0 + 1.0 / (1 + step),
            "step": step,
        }
        for step in range(1, ENTRIES + 1)
    ]
    state = {
        "epoch": 1.0,
        "global_step": ENTRIES,
        "max_steps": ENTRIES,
        "num_train_epochs": 1,
        "log_history": history,
    }
    (folder / "trainer_state.json").write_text(json.dumps(state), encoding="utf-8")
    return folder


if __name__ == "__main__":
    sys.exit(main())
