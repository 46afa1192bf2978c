"""``gradian train``."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter


def train(
    *,
    config: Annotated[Path | None, Parameter(name=["--config", "-c"])] = None,
    backend: Annotated[str | None, Parameter(name=["--backend", "-b"])] = None,
    dataset: Annotated[Path | None, Parameter(name=["--dataset", "-d"])] = None,
    base_model: Annotated[str | None, Parameter(name=["--base-model", "-m"])] = None,
    out: Annotated[Path | None, Parameter(name=["--out", "-o"])] = None,
    seed: int | None = None,
    device: str | None = None,
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"])] = False,
) -> int:
    """Fine-tune a LoRA adapter, as section ``train`` of the config says.

    A convenience: Gradian explains adapters, whoever trained them.

    Parameters
    ----------
    config
        YAML config file; the options below override it.
    backend
        Trainer: hf, trl, unsloth or a plugin's (default: hf).
    dataset
        Training data.
    base_model
        Base model: hub id or folder.
    out
        Run folder to be written (default: runs/run).
    seed
        Seed of initial weights and order.
    device
        auto, cpu, cuda, cuda:N or mps (default: auto).
    quiet
        Show no progress.
    """
    from gradian_core.cli.needs import need_attribution
    from gradian_core.cli.streams import put
    from gradian_core.config.load import load_config
    from gradian_core.progress import make_progress

    settings = load_config(
        config,
        {
            "train.backend": backend,
            "dataset": dataset,
            "train.base_model": base_model,
            "train.output_dir": out,
            "seed": seed,
            "device": device,
        },
    )
    need_attribution("train")

    from gradian_core.flows.train import train as train_flow

    put(str(train_flow(settings, progress=make_progress(quiet=quiet))))
    return 0
