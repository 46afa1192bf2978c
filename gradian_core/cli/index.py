"""``gradian index``."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter


def index(
    *,
    config: Annotated[Path | None, Parameter(name=["--config", "-c"])] = None,
    dataset: Annotated[Path | None, Parameter(name=["--dataset", "-d"])] = None,
    base_model: Annotated[str | None, Parameter(name=["--base-model", "-m"])] = None,
    adapter: Annotated[Path | None, Parameter(name=["--adapter", "-a"])] = None,
    device: str | None = None,
    cache_dir: Path | None = None,
    force: bool = False,
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"])] = False,
) -> int:
    """Build the per-example gradient index: expensive, cached, resumable.

    ``gradian attribute`` does it too. What decides its cost is in section ``grads`` of the
    config.

    Parameters
    ----------
    config
        YAML config file; the options below override it.
    dataset
        Training data.
    base_model
        Base model: hub id or folder.
    adapter
        Folder of the LoRA adapter.
    device
        auto, cpu, cuda, cuda:N or mps (default: auto).
    cache_dir
        Where indexes are kept (default: .gradian).
    force
        Rebuild the index even if there is one.
    quiet
        Show no progress.
    """
    from gradian_core.cli.needs import need_attribution, need_inputs
    from gradian_core.cli.streams import put
    from gradian_core.config.load import load_config
    from gradian_core.progress import make_progress

    settings = load_config(
        config,
        {
            "dataset": dataset,
            "base_model": base_model,
            "adapter_path": adapter,
            "device": device,
            "cache_dir": cache_dir,
        },
    )
    need_inputs("index", settings)
    need_attribution("index")

    from gradian_core.flows.index import build_index

    built = build_index(settings, force=force, progress=make_progress(quiet=quiet))
    put(str(built.folder))
    return 0
