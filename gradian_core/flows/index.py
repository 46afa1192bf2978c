"""Building the gradient index of a fine-tune, or opening it if it is there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from gradian_core.config.models import Config
from gradian_core.data.cache import encode_cached
from gradian_core.data.encode import Encoded
from gradian_core.errors import InputError
from gradian_core.flows.session import Session, counted
from gradian_core.index.address import index_id, tokens_digest
from gradian_core.index.build import build, is_complete
from gradian_core.index.damage import DamagedIndexError
from gradian_core.index.manifest import IndexInputs
from gradian_core.index.reader import GradientIndex
from gradian_core.progress import NoProgress, Progress

__all__ = ["build_index", "encode_training_data", "open_or_build"]


def build_index(
    config: Config, *, force: bool = False, progress: Progress | None = None
) -> GradientIndex:
    """Build the gradient index of ``config.dataset`` under ``config.adapter_path``.

    Parameters
    ----------
    config
        ``base_model``, ``adapter_path`` and ``dataset`` are needed.
    force
        Build again even if the same index exists.
    progress
        Where to report; silent if None.

    Returns
    -------
    GradientIndex
        In ``<cache_dir>/index/<id>``.

    Raises
    ------
    GradianError
        With the exit code and the words for the user; see the parts.
    """
    session = Session(config, progress or NoProgress())
    # everything that can be refused cheaply comes before anything that takes time
    _ = session.adapter, session.dataset, session.source
    encoded = encode_training_data(session)
    return training_index(session, encoded, force=force)


def encode_training_data(session: Session) -> Encoded:
    """Tokenise the training data, or take the tokens from the cache.

    Raises
    ------
    InputError
        If no row has a supervised token: before a model is loaded for nothing.
    """
    encoded = encode_cached(
        session.dataset,
        session.tokenizer,
        max_seq_length=session.config.grads.max_seq_length,
        supervise="all",
        cache_dir=session.cache,
    )
    if not encoded.tokens.supervised_counts.any():
        raise InputError(
            f"None of the {len(session.dataset)} rows of {session.dataset.path} has a supervised "
            "token, so there is no gradient.",
            hint="Check the prompt and answer fields, the chat template and grads.max_seq_length.",
        )
    return encoded


def training_index(
    session: Session,
    encoded: Encoded,
    *,
    adapter_scale: float = 1.0,
    checkpoint: Path | None = None,
    force: bool,
) -> GradientIndex:
    """Build or open the index of the training data, at the adapter or at another point."""
    at = "" if checkpoint is None else f" at {checkpoint.name}"
    at += "" if adapter_scale == 1.0 else f" at scale {adapter_scale:g}"
    return open_or_build(
        session,
        encoded,
        # the tokens and not the file: a template that writes today's date, or a better mask in
        # a later version, gives other gradients for the same rows
        session.inputs(
            dataset=tokens_digest(encoded.tokens), adapter_scale=adapter_scale, adapter=checkpoint
        ),
        session.cache / "index",
        description=f"Training gradients{at}",
        provenance={
            "base_model": session.source.name,
            "adapter": (checkpoint or session.adapter).resolve().name,
            "dataset": Path(session.config.dataset or "").name,
        },
        checkpoint=checkpoint,
        force=force,
    )


def open_or_build(
    session: Session,
    encoded: Encoded,
    inputs: IndexInputs,
    root: Path,
    *,
    description: str,
    provenance: Mapping[str, str],
    checkpoint: Path | None = None,
    force: bool = False,
) -> GradientIndex:
    """Open an index by its address, or load the model and build it.

    Parameters
    ----------
    session
        The run.
    encoded
        The rows.
    inputs
        What the index is made from.
    root
        Folder that holds indexes by id.
    description
        What progress is shown as.
    provenance
        Names for people.
    checkpoint
        Folder of the adapter that ``inputs`` names, where it is not the session's own.
    force
        Build again even if it exists.
    """
    folder = root / index_id(inputs)
    if is_complete(folder) and not force:
        try:
            return GradientIndex.open(folder)
        except DamagedIndexError:
            pass  # the build below repairs it and says so
    from gradian_core.gradients.capture import verify_capture
    from gradian_core.model.device import deterministic
    from gradian_core.model.shift import shifted

    loaded, capture, grads = session.model, session.capture, session.config.grads
    with (
        deterministic(session.config.seed),
        shifted(
            loaded, session.adapter, adapter_scale=inputs.adapter_scale, checkpoint=checkpoint
        ) as notes,
        counted(session.progress, description) as report,
    ):
        verify_capture(capture, loaded, grads, encoded.tokens)
        index = build(
            folder,
            inputs,
            encoded.tokens,
            capture,
            device=loaded.device,
            pad_token_id=loaded.pad_token_id,
            batch_size=grads.batch_size,
            batch_tokens=grads.batch_tokens,
            chunk_size=grads.chunk_size,
            provenance=provenance,
            notes=(*loaded.notes, *notes),
            force=force,
            progress=report,
        )
    # what was resumed or repaired is news for the user and not a property of the result
    for note in index.notes[len(index.manifest.notes) :]:
        session.progress.message(note)
    return index
