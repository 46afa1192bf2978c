"""Where a base model comes from: a folder, a ``.gguf`` file or a hub id."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gradian_core.errors import CannotRunError, InputError, MissingExtraError
from gradian_core.files import refuse_lfs_pointer
from gradian_core.versions import installed_version

__all__ = ["BaseSource", "resolve_base"]

_WEIGHTS = ("*.safetensors", "pytorch_model*.bin")


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseSource:
    """A base model on this machine's disk.

    Parameters
    ----------
    given
        What the user wrote.
    folder
        Folder that holds it.
    gguf_file
        Name of the ``.gguf`` file in the folder, None for an ordinary checkpoint.
    """

    given: str
    folder: Path
    gguf_file: str | None = None

    @property
    def name(self) -> str:
        """What to call it where a path of this machine has no place: a hub id, or a name."""
        path = Path(self.given).expanduser()
        return path.resolve().name if path.exists() else self.given

    @property
    def files(self) -> tuple[Path, ...]:
        """The files whose content decides the model's numbers, sorted by name."""
        if self.gguf_file is not None:
            return (self.folder / self.gguf_file,)
        found = {
            path for pattern in (*_WEIGHTS, "config.json") for path in self.folder.glob(pattern)
        }
        return tuple(sorted(path for path in found if path.is_file()))


def resolve_base(given: str) -> BaseSource:
    """Find the base model.

    A path that exists wins over a hub id. A hub id is looked up in the local cache first and
    downloaded only if it is not there.

    Raises
    ------
    InputError
        If there is no such model, or the folder holds no weights.
    MissingExtraError
        If a ``.gguf`` file is given and the packages that read it are missing.
    """
    if not given:
        raise InputError("No base model was given.", hint="Pass --base-model, or set base_model.")
    path = Path(given).expanduser()
    if path.suffix == ".gguf" and path.is_file():
        missing = tuple(name for name in ("gguf", "accelerate") if installed_version(name) is None)
        if missing:
            raise MissingExtraError(f"Reading {path.name}", missing, "gguf")
        refuse_lfs_pointer(path)
        return BaseSource(given=given, folder=path.parent, gguf_file=path.name)
    if path.is_file():
        raise InputError(
            f"base_model: {given} is a file.", hint="Give its folder, a .gguf file or a hub id."
        )
    if path.is_dir():
        return _folder(given, path)
    if given.startswith((".", "/", "~")) or given.count("/") > 1 or path.suffix == ".gguf":
        raise InputError(
            f"base_model: there is no file or folder {given}.",
            hint="Give the folder of the model, a .gguf file or a hub id.",
        )
    return _hub(given)


def _folder(given: str, folder: Path) -> BaseSource:
    if (folder / "adapter_config.json").is_file() and not (folder / "config.json").is_file():
        raise InputError(
            f"base_model: {given} is an adapter, not a base model.",
            hint="Pass it as --adapter, and as --base-model the model it was trained on.",
        )
    if not (folder / "config.json").is_file():
        ggufs = sorted(folder.glob("*.gguf"))
        hint = f"Did you mean {ggufs[0]}?" if ggufs else "A transformers checkpoint folder has one."
        raise InputError(f"base_model: {given} has no config.json.", hint=hint)
    source = BaseSource(given=given, folder=folder)
    weights = [file for file in source.files if file.name != "config.json"]
    if not weights:
        raise InputError(f"base_model: {given} holds no weights (.safetensors or .bin).")
    for file in weights:
        refuse_lfs_pointer(file)
    return source


def _hub(given: str) -> BaseSource:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    patterns = ["*.safetensors", "*.json", "*.model", "*.jinja", "*.txt", "pytorch_model*.bin"]
    try:
        try:
            folder = snapshot_download(given, allow_patterns=patterns, local_files_only=True)
        except LocalEntryNotFoundError:
            folder = snapshot_download(given, allow_patterns=patterns)
    except HFValidationError as error:
        raise InputError(f"base_model: {given!r} is no file, folder or hub id.") from error
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        raise CannotRunError(
            f"base_model: {given} is not in the local hub cache and could not be downloaded "
            f"({type(error).__name__}).",
            hint="Check the name and the network, or give a local folder.",
        ) from error
    return _folder(given, Path(folder))
