"""What per-example gradients on disk cost, against a pass that only adds gradients up.

Usage::

    python benchmarks/build.py            # 6 rounds, about 8 minutes on one core
    python benchmarks/build.py --repeats 2 --rows 24

*Plain* is a forward and backward pass over the same rows, in the same batches, with the same
loss, which accumulates the batch's LoRA gradient as training does. The build adds: one gradient
for every row, projection, half floats, norms, checks for NaN, checksums, HDF5, fsync.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from common import interleaved, peak_memory_mb, pin_threads, ratios, spread, table, write

VOCAB = 4096
HIDDEN, LAYERS = 384, 8
PROJECTED = 2048
BATCHES = (1, 4, 8)


@dataclass(frozen=True, slots=True)
class Case:
    """One way to build."""

    strategy: str
    batch: int
    storage: str
    projection: int | None

    @property
    def name(self) -> str:
        """Name in the results."""
        kept = "raw" if self.projection is None else f"projected to {self.projection}"
        return f"{self.strategy}, batch {self.batch}, {self.storage}, {kept}"


def cases() -> Iterator[Case]:
    """Every combination for hooks; loop runs one row at a time whatever the batch is."""
    for storage in ("float32", "float16"):
        for projection in (None, PROJECTED):
            yield from (Case("hooks", batch, storage, projection) for batch in BATCHES)
            yield Case("loop", 1, storage, projection)


def make_model() -> Any:
    """Return a random Llama with LoRA on its seven linear layers, as a loaded model."""
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM, LlamaConfig

    from gradian_core.model.loaded import LoadedModel

    torch.manual_seed(0)
    base = AutoModelForCausalLM.from_config(
        LlamaConfig(
            vocab_size=VOCAB,
            hidden_size=HIDDEN,
            intermediate_size=1024,
            num_hidden_layers=LAYERS,
            num_attention_heads=6,
            num_key_value_heads=6,
            attn_implementation="eager",
        )
    )
    model = get_peft_model(base, LoraConfig(r=8, target_modules="all-linear")).eval()
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.02)
    return LoadedModel(model=model, tokenizer=None, device="cpu", adapter="default")


def make_rows(n: int) -> Any:
    """Return random rows of 64 to 192 tokens, the second half of each supervised."""
    import numpy as np

    from gradian_core.data.tokens import Supervision, TokenizedRows

    rng = np.random.default_rng(0)
    lengths = rng.integers(64, 193, n)
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    supervised = np.zeros(offsets[-1], dtype=np.bool_)
    for start, stop in pairwise(offsets.tolist()):
        supervised[(start + stop) // 2 : stop] = True
    return TokenizedRows(
        ids=tuple(f"{row:012x}-{row}" for row in range(n)),
        rows=np.arange(n, dtype=np.int64),
        input_ids=rng.integers(0, VOCAB, offsets[-1]).astype(np.int32),
        supervised=supervised,
        offsets=offsets,
        full_lengths=lengths.astype(np.int32),
        full_supervised=np.add.reduceat(supervised, offsets[:-1], dtype=np.int32),
        supervision=np.full(n, Supervision.MARKERS, dtype=np.uint8),
    )


def run_plain(loaded: Any, rows: Any, batch: int) -> None:
    """Accumulate the gradient of all rows, in the batches that a build takes."""
    import numpy as np

    from gradian_core.gradients.batching import plan_batches
    from gradian_core.gradients.collate import collate
    from gradian_core.gradients.loss import example_losses

    order = np.argsort(-rows.lengths, kind="stable")
    for span in plan_batches(rows.lengths[order], batch, 4096):
        taken = collate(rows, order[span].tolist(), pad_token_id=0, device="cpu")
        example_losses(loaded.model, taken).sum().backward()
    loaded.model.zero_grad(set_to_none=True)


def run_build(loaded: Any, rows: Any, case: Case, folder: Path) -> int:
    """Build an index as the command line does; return its bytes for a row."""
    from gradian_core.config.models import GradsSection
    from gradian_core.gradients.capture import make_capture
    from gradian_core.index.address import library_versions, tokens_digest
    from gradian_core.index.build import build
    from gradian_core.index.manifest import GradientSpec, IndexInputs

    settings = GradsSection.model_validate({"strategy": case.strategy})
    spec = GradientSpec(
        strategy=case.strategy,
        max_seq_length=1024,
        projection_dim=case.projection,
        storage_dtype=case.storage,
    )
    inputs = IndexInputs(
        adapter="random",
        base="random",
        dataset=tokens_digest(rows),
        tokenizer="none",
        spec=spec,
        seed=0,
        dtype="float32",
        device="cpu",
        attn_implementation="eager",
        libraries=library_versions(),
    )
    shutil.rmtree(folder, ignore_errors=True)
    index = build(folder, inputs, rows, make_capture(loaded, settings), batch_size=case.batch)
    return index.manifest.row_bytes


def main() -> None:
    """Measure, compare, write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=6)
    parser.add_argument("--rows", type=int, default=48)
    options = parser.parse_args()
    pin_threads()

    import torch

    from gradian_core.model.device import deterministic

    torch.set_num_threads(1)
    loaded, rows = make_model(), make_rows(options.rows)
    row_bytes: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as place:

        def building(case: Case) -> None:
            # determinism costs something, and a user pays for it
            with deterministic(0):
                row_bytes[case.name] = run_build(loaded, rows, case, Path(place) / "index")

        jobs: dict[str, Any] = {
            f"plain, batch {batch}": lambda batch=batch: run_plain(loaded, rows, batch)
            for batch in BATCHES
        }
        jobs |= {case.name: lambda case=case: building(case) for case in cases()}
        seconds = interleaved(jobs, options.repeats)

    best = min(BATCHES, key=lambda batch: min(seconds[f"plain, batch {batch}"]))
    fastest = seconds[f"plain, batch {best}"]
    results = []
    for case in cases():
        own = seconds[case.name]
        results.append(
            {
                "case": case.name,
                "seconds": spread(own),
                "to plain of that batch": ratios(own, seconds[f"plain, batch {case.batch}"]),
                "to the best plain": ratios(own, fastest),
                "bytes for a row": row_bytes[case.name],
            }
        )
    plain = {f"batch {batch}": spread(seconds[f"plain, batch {batch}"]) for batch in BATCHES}
    said = ", ".join(f"{times['min']:.2f} s at {batch}" for batch, times in plain.items())
    text = (
        f"Random Llama of {LAYERS} layers and width {HIDDEN}, LoRA r = 8 on its seven linear "
        f"layers; {options.rows} rows of 64 to 192 tokens, half of them supervised. CPU time "
        f"over plain forward and backward; minimum and median of {options.repeats} interleaved "
        f"rounds. Plain takes {said}; the best is batch {best}. Peak memory of the whole "
        f"benchmark: {peak_memory_mb()} MB.\n\n"
    )
    text += table(
        (
            "build",
            "÷ plain of that batch (min, median)",
            "÷ best plain (min, median)",
            "bytes a row",
        ),
        [
            (
                entry["case"],
                "{min:.2f}, {median:.2f}".format(**entry["to plain of that batch"]),
                "{min:.2f}, {median:.2f}".format(**entry["to the best plain"]),
                f"{entry['bytes for a row']:,}",
            )
            for entry in results
        ],
    )
    command = f"python benchmarks/build.py --repeats {options.repeats} --rows {options.rows}"
    record = {"rows": options.rows, "plain seconds": plain, "builds": results}
    write("build", "Building an index", command, text, record)


if __name__ == "__main__":
    main()
