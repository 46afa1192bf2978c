"""Large inputs: in seconds and within memory."""

from __future__ import annotations

import json
import sys
import time

import psutil

ENTRIES = 100_000


def measured(read, path):
    process = psutil.Process()
    before = process.memory_info().rss
    begun = time.process_time()
    run = read(path)
    seconds = time.process_time() - begun
    return run, seconds, process.memory_info().rss - before


def test_a_hundred_thousand_log_entries(put, read):
    history = [
        {"epoch": i / 100, "grad_norm": 0.5, "learning_rate": 1e-4, "loss": 1.5, "step": i + 1}
        for i in range(ENTRIES)
    ]
    state = {"global_step": ENTRIES, "max_steps": ENTRIES, "log_history": history}
    folder = put({"trainer_state.json": state})
    del history, state
    run, seconds, memory = measured(read, folder)
    assert len(run.log.records) == ENTRIES
    assert seconds < 4
    assert memory < 300 << 20


def test_a_hundred_thousand_lines(put, read):
    line = {"total_steps": ENTRIES, "loss": 1.5, "lr": 1e-4, "epoch": 1.0}
    text = "".join(json.dumps({"current_steps": i + 1} | line) + "\n" for i in range(ENTRIES))
    run, seconds, memory = measured(read, put({"trainer_log.jsonl": text}))
    assert len(run.log.records) == ENTRIES
    assert seconds < 6
    assert memory < 300 << 20


def test_a_hundred_thousand_printed_lines(put, read):
    lines = "".join(f"Iter {i + 1}: Train loss 1.5, It/sec 1.0\n" for i in range(ENTRIES))
    run, seconds, _ = measured(read, put({"a.log": lines}) / "a.log")
    assert len(run.log.records) == ENTRIES
    assert seconds < 6


def test_many_files_in_a_folder(put, read):
    contents = {f"f{i}.yaml": "a: 1\n" for i in range(300)}
    contents |= {f"checkpoint-{i}/x": "" for i in range(300)}
    contents["trainer_state.json"] = {"log_history": [{"step": 1, "loss": 1.0}]}
    run, seconds, _ = measured(read, put(contents))
    assert run.readers == ("hf",)
    assert seconds < 4


def test_declaring_readers_imports_none_of_them():
    import subprocess

    code = (
        "import sys, gradian_plugins.runs as r; list(r.gradian_run_readers());"
        "print([m for m in sys.modules if m in ('yaml', 'numpy', 'torch', 'pydantic')"
        " or m.startswith('gradian_plugins.runs.')])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
