"""What a query costs over an index that is there, against reading the same bytes once.

Usage::

    python benchmarks/query.py            # 478 MB of float16, 6 rounds, about 2 minutes
    python benchmarks/query.py --repeats 2 --rows 128

*Plain* reads the same half floats from one flat file (in the page cache, as the index is),
converts them to float32 and multiplies them with the queries. It is less than any engine can do:
DataInf needs two passes over the gradients, checksums, scales of rows, and float64, without which
what is left of it after its subtraction is noise.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

from common import interleaved, peak_memory_mb, pin_threads, ratios, spread, table, write

# The LoRA modules of benchmarks/build.py: 466,944 components a row.
WIDTHS = ([6144] * 4 + [11264] * 3) * 8
QUERIES = (1, 16)


class RandomCapture:
    """Gradients of a fitted model: rows of very different size around one common direction."""

    def __init__(self) -> None:
        import torch

        from gradian_core.gradients.types import Block

        self.blocks = tuple(
            Block(f"block.{place:02d}", (f"p{place}",), ((width,),))
            for place, width in enumerate(WIDTHS)
        )
        self._generator = torch.Generator().manual_seed(0)
        self._common = [self._draw(width) for width in WIDTHS]

    def _draw(self, *shape: int) -> Any:
        import torch

        return torch.randn(shape, generator=self._generator)

    def __call__(self, batch: Any) -> Any:
        """Return losses and gradients of one batch."""
        from gradian_core.gradients.types import BatchGradients

        n = len(batch.input_ids)
        sizes = (1.5 * self._draw(n)).exp()[:, None] * 1e-4
        blocks = {
            block.name: sizes * (self._draw(n, block.dim) + common)
            for block, common in zip(self.blocks, self._common, strict=True)
        }
        return BatchGradients(self._draw(n).abs(), blocks)


def make_index(folder: Path, n: int, capture: RandomCapture) -> Any:
    """Return an index of ``n`` rows as float16."""
    import numpy as np

    from gradian_core.data.tokens import Supervision, TokenizedRows
    from gradian_core.index.address import library_versions, tokens_digest
    from gradian_core.index.build import build
    from gradian_core.index.manifest import GradientSpec, IndexInputs

    rows = TokenizedRows(
        ids=tuple(f"{row:012x}-{row}" for row in range(n)),
        rows=np.arange(n, dtype=np.int64),
        input_ids=np.ones(2 * n, np.int32),
        supervised=np.tile([False, True], n),
        offsets=np.arange(0, 2 * n + 1, 2, dtype=np.int64),
        full_lengths=np.full(n, 2, np.int32),
        full_supervised=np.ones(n, np.int32),
        supervision=np.full(n, Supervision.MARKERS, dtype=np.uint8),
    )
    inputs = IndexInputs(
        adapter="random",
        base="random",
        dataset=tokens_digest(rows),
        tokenizer="none",
        spec=GradientSpec(max_seq_length=1024, storage_dtype="float16"),
        seed=0,
        dtype="float32",
        device="cpu",
        attn_implementation="eager",
        libraries=library_versions(),
    )
    return build(folder, inputs, rows, capture)


def run_plain(path: Path, queries: Any) -> None:
    """Stream the file once: read, convert, multiply."""
    import numpy as np

    width = queries.shape[1]
    with path.open("rb") as file:
        while len(piece := np.fromfile(file, np.float16, 16 * width)):
            queries @ piece.reshape(-1, width).astype(np.float32).T


def main() -> None:
    """Measure, compare, write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=6)
    parser.add_argument("--rows", type=int, default=512)
    options = parser.parse_args()
    pin_threads()

    import numpy as np

    from gradian_core.attribution.point import Queries
    from gradian_core.attribution.score import score
    from gradian_engines._datainf import DataInf, DataInfSettings
    from gradian_engines._graddot import GradDot, GradDotSettings

    engines = {"datainf": DataInf(DataInfSettings()), "graddot": GradDot(GradDotSettings())}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        capture = RandomCapture()
        index = make_index(folder / "train", options.rows, capture)
        asked = make_index(folder / "queries", max(QUERIES), capture)
        flat = folder / "flat.f16"
        rng = np.random.default_rng(0)
        with flat.open("wb") as file:
            for _ in range(options.rows):
                rng.standard_normal(sum(WIDTHS), np.float32).astype(np.float16).tofile(file)

        jobs: dict[str, Any] = {}
        for q in QUERIES:
            vectors = rng.standard_normal((q, sum(WIDTHS)), np.float32)
            combined = Queries(index=asked, combination=np.eye(q, max(QUERIES)))
            jobs[f"plain, {q}"] = lambda v=vectors: run_plain(flat, v)
            for name, engine in engines.items():
                jobs[f"{name}, {q}"] = lambda c=combined, e=engine: score(index, c, e)
        seconds = interleaved(jobs, options.repeats)

    size = index.manifest.row_bytes * index.n / 1e6
    results = [
        {
            "engine": name,
            "queries": q,
            "seconds": spread(seconds[f"{name}, {q}"]),
            "to plain": ratios(seconds[f"{name}, {q}"], seconds[f"plain, {q}"]),
        }
        for q in QUERIES
        for name in ("plain", *engines)
    ]
    text = (
        f"{index.n} rows of {sum(WIDTHS):,} components as float16, {size:.0f} MB, in the page "
        f"cache. CPU time; minimum and median of {options.repeats} interleaved rounds. Opening "
        f"the index and combining the queries' own gradients are part of a query. Peak memory of "
        f"the whole benchmark: {peak_memory_mb()} MB.\n\n"
    )
    text += table(
        ("engine", "queries", "seconds (min, median)", "÷ plain (min, median)"),
        [
            (
                entry["engine"],
                entry["queries"],
                "{min:.2f}, {median:.2f}".format(**entry["seconds"]),
                "{min:.2f}, {median:.2f}".format(**entry["to plain"]),
            )
            for entry in results
        ],
    )
    command = f"python benchmarks/query.py --repeats {options.repeats} --rows {options.rows}"
    record = {"rows": options.rows, "megabytes": round(size), "results": results}
    write("query", "Querying an index", command, text, record)


if __name__ == "__main__":
    main()
