"""``gradian explain``."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter


def explain(
    *,
    example: str,
    item: str,
    config: Annotated[Path | None, Parameter(name=["--config", "-c"])] = None,
    dataset: Annotated[Path | None, Parameter(name=["--dataset", "-d"])] = None,
    eval_dataset: Annotated[Path | None, Parameter(name=["--eval-dataset", "-e"])] = None,
    base_model: Annotated[str | None, Parameter(name=["--base-model", "-m"])] = None,
    adapter: Annotated[Path | None, Parameter(name=["--adapter", "-a"])] = None,
    adapter_scale: float = 1.0,
    cache_dir: Path | None = None,
    json: bool = False,
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"])] = False,
) -> int:
    """Show which part of a training row harmed an eval item: its answer, piece by piece.

    Parameters
    ----------
    example
        Id of the training row, as in scores.csv.
    item
        Eval item: its place in the file from 0, or its id.
    config
        YAML config file; the options below override it.
    dataset
        Training data.
    eval_dataset
        Items that describe the capability.
    base_model
        Base model: hub id or folder.
    adapter
        Folder of the LoRA adapter.
    adapter_scale
        Where gradients are taken: 1 is the adapter, lower is nearer to the base model.
    cache_dir
        Where indexes are kept (default: .gradian).
    json
        Print JSON.
    quiet
        Show no progress.
    """
    from gradian_core.cli.needs import need_attribution, need_inputs
    from gradian_core.cli.span_listing import explanation_json, explanation_lines
    from gradian_core.cli.streams import put
    from gradian_core.config.load import load_config
    from gradian_core.progress import make_progress

    settings = load_config(
        config,
        {
            "dataset": dataset,
            "eval_dataset": eval_dataset,
            "base_model": base_model,
            "adapter_path": adapter,
            "cache_dir": cache_dir,
        },
    )
    need_inputs("explain", settings)
    need_attribution("explain")

    from gradian_core.flows.explain import explain_example

    found = explain_example(
        settings, example, item, adapter_scale=adapter_scale, progress=make_progress(quiet=quiet)
    )
    put(explanation_json(found) if json else "\n".join(explanation_lines(found)))
    return 0
