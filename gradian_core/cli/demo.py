"""``gradian demo``."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter


def demo(
    *,
    out: Annotated[Path, Parameter(name=["--out", "-o"])] = Path("gradian-demo"),
    seed: int = 0,
    keep: bool = False,
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"])] = False,
) -> int:
    """Run the whole analysis on a tiny built-in model; no GPU, no network.

    A fault is planted in a small data set, a LoRA adapter is fine-tuned on it, and the report
    says which rows did it.

    Parameters
    ----------
    out
        Folder for the run and its report.
    seed
        Seeds the data, the training and the analysis.
    keep
        Keep the model, the adapter and the index beside the report.
    quiet
        Show no progress.
    """
    from datetime import UTC, datetime

    from gradian_core.cli.needs import need_attribution, need_folder
    from gradian_core.cli.reporting import deliver
    from gradian_core.progress import make_progress

    started = datetime.now(UTC)
    need_attribution("demo")
    need_folder(out)

    from gradian_core.flows.demo import run_demo

    report = run_demo(out, seed=seed, keep=keep, progress=make_progress(quiet=quiet))
    deliver(report, out, started=started, block=())
    return 0
