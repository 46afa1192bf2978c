"""Building an index: expensive, so it resumes; addressed by content, so it is done once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gradian_core.__about__ import __version__
from gradian_core.data.tokens import TokenizedRows
from gradian_core.errors import InputError
from gradian_core.files import remove
from gradian_core.gradients.projection import make_projection
from gradian_core.gradients.types import Capture
from gradian_core.index.address import index_id, tokens_digest
from gradian_core.index.collect import Collector
from gradian_core.index.damage import DamagedIndexError
from gradian_core.index.disk import disk_errors, only_builder
from gradian_core.index.job import Job, Progress
from gradian_core.index.manifest import MANIFEST, IndexInputs, IndexManifest, write_manifest
from gradian_core.index.plan import plan_build
from gradian_core.index.reader import INDEX_FILE, GradientIndex
from gradian_core.index.shards import ShardKey

__all__ = ["build", "is_complete"]


def is_complete(folder: Path) -> bool:
    """Whether a build has finished here, so that no model has to be loaded for one."""
    return (folder / MANIFEST).exists()


def build(
    folder: Path,
    inputs: IndexInputs,
    tokenized: TokenizedRows,
    capture: Capture,
    *,
    device: Any = "cpu",
    pad_token_id: int = 0,
    batch_size: int = 4,
    batch_tokens: int = 4096,
    chunk_size: int = 256,
    provenance: Mapping[str, str] | None = None,
    notes: Sequence[str] = (),
    force: bool = False,
    wait: float = 0.0,
    progress: Progress | None = None,
) -> GradientIndex:
    """Build an index, go on with an interrupted build, or open a complete one.

    Rows are stored longest first in shards that are written whole or not at all; each shard is
    batched by itself. A build that was killed therefore goes on at the last whole shard, and
    with the same settings it ends with the same bytes.

    Parameters
    ----------
    folder
        Folder of the index, ``<cache>/index/<id>``; made if it is missing.
    inputs
        What the index is made from.
    tokenized
        The data set.
    capture
        Gives per-example gradients of the mean loss.
    device, pad_token_id
        For the batches.
    batch_size, batch_tokens
        Most rows, and most tokens with padding, in a batch.
    chunk_size
        Most rows in a shard.
    provenance
        Names for people, written into the manifest.
    notes
        What was guessed or degraded before the build, as sentences for the manifest.
    force
        Build again even if the index is complete.
    wait
        Seconds to wait for another process that builds the same index; negative: for ever.
    progress
        Called with (rows done, rows to do) after each batch.

    Returns
    -------
    GradientIndex
        Its ``notes`` say what was reused or repaired.

    Raises
    ------
    InputError
        If no row has a supervised token, or the folder holds another index.
    CannotRunError
        If another process builds it, the disk is full, or a loss or gradient is not finite.
    """
    address = index_id(inputs)
    # Without the lock first: a complete index may lie where nothing can be written.
    if not force and (index := _open_sound(folder, address, [])) is not None:
        return index
    with only_builder(folder, wait):
        repairs: list[str] = []
        if not force and (index := _open_sound(folder, address, repairs)) is not None:
            return index
        # The manifest goes first: an index that is being changed must not look complete.
        with disk_errors(folder):
            for name in (MANIFEST, INDEX_FILE, *(["shards"] if force else [])):
                remove(folder / name)
        plan = plan_build(tokenized, capture.blocks, inputs.spec, chunk_size)
        keys = tuple(
            ShardKey(index=address, number=number, rows=tokens_digest(tokenized, plan.order[span]))
            for number, span in enumerate(plan.shards)
        )
        work = Job(folder, plan, keys, inputs.spec.storage_dtype == "float16")
        entries = work.find_whole_shards(repairs)
        work.refuse_full_disk(entries)
        collector = Collector(
            tokenized=tokenized,
            capture=capture,
            blocks=plan.blocks,
            projections={
                block.name: make_projection(
                    inputs.spec.projection_kind,
                    block.dim,
                    block.stored_dim,
                    inputs.spec.projection_seed,
                    block.name,
                )
                for block in plan.blocks
            },
            halves=work.halves,
            batch_size=batch_size,
            batch_tokens=batch_tokens,
            device=device,
            pad_token_id=pad_token_id,
        )
        whole = work.write_missing_shards(entries, collector, progress)
        work.write_index_file(whole)
        manifest = IndexManifest(
            id=address,
            created_by={"gradian-ml": __version__},
            inputs=inputs,
            provenance=dict(provenance or {}),
            blocks=plan.blocks,
            n=len(plan.order),
            n_rows_total=len(tokenized),
            skipped=plan.skipped,
            shards=tuple(whole),
            notes=(*notes, *plan.notes),
        )
        with disk_errors(folder):
            write_manifest(folder, manifest)
        return GradientIndex.open(folder, notes=tuple(repairs))


def _open_sound(folder: Path, address: str, notes: list[str]) -> GradientIndex | None:
    """Open an index that is complete and sound; None, with a note for damage, where it is not."""
    if not is_complete(folder):
        return None
    try:
        index = GradientIndex.open(folder)
    except DamagedIndexError as error:
        notes.append(f"{error.message} It was repaired.")
        return None
    if index.manifest.id != address:
        raise InputError(
            f"{folder} holds the index {index.manifest.id}, not {address}.",
            hint="Give another folder, or replace the index with --force.",
        )
    return index
