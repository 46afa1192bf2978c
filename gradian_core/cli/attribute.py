"""``gradian attribute``."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter


def attribute(
    *,
    config: Annotated[Path | None, Parameter(name=["--config", "-c"])] = None,
    dataset: Annotated[Path | None, Parameter(name=["--dataset", "-d"])] = None,
    eval_dataset: Annotated[Path | None, Parameter(name=["--eval-dataset", "-e"])] = None,
    base_model: Annotated[str | None, Parameter(name=["--base-model", "-m"])] = None,
    adapter: Annotated[Path | None, Parameter(name=["--adapter", "-a"])] = None,
    run: Annotated[Path | None, Parameter(name=["--run", "-r"])] = None,
    capability: str = "capability",
    engine: str | None = None,
    cross_check: str | None = None,
    skip_consensus: bool = False,
    metric: str | None = None,
    device: str | None = None,
    cache_dir: Path | None = None,
    out: Annotated[Path | None, Parameter(name=["--out", "-o"])] = None,
    force: bool = False,
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"])] = False,
) -> int:
    """Attribute a capability change to training data and write a report.

    Parameters
    ----------
    config
        YAML config file; the options below override it.
    dataset
        Training data.
    eval_dataset
        Items that describe the capability, with the answers that were wanted.
    base_model
        Base model: hub id or folder.
    adapter
        Folder of the LoRA adapter. Required, here or in the config.
    run
        Run folder of the training; its settings and logs go into the report.
    capability
        Name of the capability in the report.
    engine
        Attribution engine (default: path), or all: the default compared with every installed
        one.
    cross_check
        Second engine for rank agreement, or none (default: datainf; graddot beside datainf).
    skip_consensus
        Do not ask three unlike engines for whom all of them blame.
    metric
        How the capability is measured (default: exact_match).
    device
        auto, cpu, cuda, cuda:N or mps (default: auto).
    cache_dir
        Where indexes are kept (default: .gradian).
    out
        Write the report into this folder.
    force
        Rebuild the index even if there is one.
    quiet
        Show no progress.
    """
    from datetime import UTC, datetime

    from gradian_core.cli.needs import need_attribution, need_folder, need_inputs
    from gradian_core.cli.reporting import deliver
    from gradian_core.config.load import load_config
    from gradian_core.progress import make_progress

    started = datetime.now(UTC)
    settings = load_config(
        config,
        {
            "dataset": dataset,
            "eval_dataset": eval_dataset,
            "base_model": base_model,
            "adapter_path": adapter,
            "run_dir": run,
            "engine.name": engine,
            "engine.cross_check": cross_check,
            "engine.consensus": False if skip_consensus else None,
            "evaluation.metric": metric,
            "device": device,
            "cache_dir": cache_dir,
        },
    )
    need_inputs("attribute", settings)
    need_attribution("attribute")
    need_folder(out)

    from gradian_core.flows.attribute import attribute as attribute_flow

    progress = make_progress(quiet=quiet)
    report = attribute_flow(settings, capability=capability, force=force, progress=progress)
    deliver(report, out, started=started, block=settings.plugins.block)
    return 0
