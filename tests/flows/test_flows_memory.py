"""Memory does not grow with the number of rows."""

import json
import os
import subprocess
import sys

import pytest

pytest.importorskip("resource")

# ru_maxrss is the highest that the process ever had: what the last build adds to it is what four
# times the rows need more. The first build is there to load every library.
PROGRAM = """
import json, resource, sys
import torch

from gradian_core.config.models import Config
from gradian_core.flows.attribute import attribute

torch.set_num_threads(1)
values = json.loads(sys.argv[1])
peaks = []
for data in values.pop("data"):
    attribute(Config.model_validate(values | {"dataset": data}))
    peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
print(json.dumps(peaks))
"""
FEW = 48
ROW_BYTES = 217_088
"""Of one stored gradient."""


def test_four_times_the_rows_need_no_more_memory(tiny, write, tmp_path):
    rows = [{"prompt": f"Paint box {i}.", "completion": "It is red now."} for i in range(6 * FEW)]
    values = {
        "base_model": str(tiny.base),
        "adapter_path": str(tiny.adapter),
        "cache_dir": str(tmp_path / "cache"),
        "device": "cpu",
        "grads": {"chunk_size": 8, "batch_size": 8},
        "engine": {"memory_limit_mb": 1},
        "clustering": {"method": "none"},
        "data": [
            str(write(tmp_path / "first.jsonl", rows[:FEW])),
            str(write(tmp_path / "few.jsonl", rows[FEW : 2 * FEW])),
            str(write(tmp_path / "many.jsonl", rows[2 * FEW :])),
        ],
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(values)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    unit = 1 if sys.platform == "darwin" else 1024
    _, few, many = (peak * unit for peak in json.loads(done.stdout))
    # Kept in memory, the gradients would take this much, and several times this on the way to disk.
    assert many - few < 3 * FEW * ROW_BYTES
