"""``gradian counterfactual``."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter


def counterfactual(
    report: Path,
    /,
    *,
    config: Annotated[Path | None, Parameter(name=["--config", "-c"])] = None,
    cluster: Annotated[tuple[str, ...], Parameter(name=["--cluster"])] = (),
    ids: Path | None = None,
    out: Annotated[Path, Parameter(name=["--out", "-o"])] = Path("counterfactual"),
    seeds: int = 2,
    draws: int = 2,
    smallest: bool = False,
    truth: Path | None = None,
    run: Annotated[Path | None, Parameter(name=["--run", "-r"])] = None,
    backend: Annotated[str | None, Parameter(name=["--backend", "-b"])] = None,
    keep: bool = False,
    device: str | None = None,
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"])] = False,
) -> int:
    """Retrain without the accused rows, and without random ones, to prove a verdict or not.

    Exit code 0 if it is proven, 1 if not.

    Parameters
    ----------
    report
        Folder that gradian attribute wrote.
    config
        The config of that report.
    cluster
        Cluster to accuse, by key or label; repeat for more (default: all that stand out).
    ids
        File with example ids to accuse in place of clusters, one a line.
    out
        Folder of the result (default: counterfactual); done work in it is not done again.
    seeds
        Retrainings of each arm.
    draws
        Random sets of rows of the same weight.
    smallest
        Also look for the smallest set of accused rows that suffices.
    truth
        File with ids of the rows known to be at fault, for precision and recall.
    run
        Run folder whose settings are repeated.
    backend
        Trainer: hf, trl, unsloth or a plugin's (default: hf).
    keep
        Keep the retrained adapters.
    device
        auto, cpu, cuda, cuda:N or mps (default: auto).
    quiet
        Show no progress.
    """
    from gradian_core.cli.needs import need_attribution, need_folder, need_inputs
    from gradian_core.cli.streams import put
    from gradian_core.config.load import load_config
    from gradian_core.progress import make_progress
    from gradian_core.text import safe_text

    settings = load_config(config, {"run_dir": run, "train.backend": backend, "device": device})
    need_inputs("counterfactual", settings)
    need_attribution("counterfactual")
    need_folder(out)

    from gradian_core.cli.table import aligned
    from gradian_core.flows.counterfactual import counterfactual as flow
    from gradian_core.report.model import Report
    from gradian_core.retraining.accused import accused_clusters, accused_ids, read_ids

    found = Report.load(report)
    accused = (
        accused_clusters(found, cluster)
        if ids is None
        else accused_ids(found, read_ids(ids), ids.name)
    )
    result = flow(
        settings,
        found,
        accused,
        out=out,
        seeds=seeds,
        draws=draws,
        smallest=smallest,
        truth=() if truth is None else read_ids(truth),
        keep=keep,
        progress=make_progress(quiet=quiet),
    )
    put("\n".join([*map(safe_text, result.sentences()), "", *aligned(list(result.table()))]))
    put("\n".join(["", *(safe_text(note) for note in result.notes)]))
    put(f"Written: {out / 'counterfactual.md'}")
    return 0 if result.verdict == "proven" else 1
