"""An index's manifest for people."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gradian_core.cli.table import aligned
from gradian_core.errors import InputError
from gradian_core.text import safe_text

if TYPE_CHECKING:
    from gradian_core.index.manifest import IndexManifest

__all__ = ["find_index", "summary"]

_MANIFEST = "manifest.json"
_DIGESTS = ("base", "adapter", "dataset", "tokenizer")


def find_index(path: Path) -> Path:
    """Return the folder itself, or the only index in it where it is no index.

    Raises
    ------
    InputError
        If it holds several.
    """
    if (path / _MANIFEST).exists() or not path.is_dir():
        return path
    inside = sorted(child for child in path.iterdir() if (child / _MANIFEST).is_file())
    if len(inside) > 1:
        names = ", ".join(child.name for child in inside)
        raise InputError(f"{path} holds {len(inside)} indexes: {names}.", hint="Name one of them.")
    return inside[0] if inside else path


def summary(manifest: IndexManifest) -> str:
    """Return the manifest as lines of key and value; the JSON form says more."""
    inputs = manifest.inputs
    size = sum(shard.size for shard in manifest.shards)
    rows = {
        "id": manifest.id,
        **manifest.provenance,
        "rows": f"{manifest.n:,} of {manifest.n_rows_total:,}, in {len(manifest.shards):,} shards",
        "blocks": f"{len(manifest.blocks):,}, {manifest.row_bytes:,} bytes a row",
        "size": f"{size:,} bytes",
        "seed": str(inputs.seed),
        "dtype": f"{inputs.dtype} on {inputs.device}, attention {inputs.attn_implementation}",
        **{f"digest of {what}": getattr(inputs, what) for what in _DIGESTS},
        **{f"grads.{key}": str(value) for key, value in inputs.spec},
        **inputs.libraries,
        "format": f"{manifest.format} {manifest.format_version}",
    }
    notes = [f"note: {safe_text(note)}" for note in manifest.notes]
    return "\n".join([*aligned(list(rows.items())), *notes])
