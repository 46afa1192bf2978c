"""``gradian demo``."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter


def demo(
    *,
    out: Annotated[Path, Parameter(name=["--out", "-o"])] = Path("gradian-demo"),
    scenario: str = "wrong-facts",
    clean: bool = False,
    seed: int = 0,
    keep: bool = False,
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"])] = False,
) -> int:
    """Run the whole analysis on a tiny built-in model; no GPU, no network.

    Wrong facts are planted in a small data set, a LoRA adapter is fine-tuned on it, the report
    says which rows did it, and a fine-tune without them shows whether that is true. Other
    scenarios go wrong in another way, or not at all.

    Parameters
    ----------
    out
        Folder for the run and its report.
    scenario
        What goes wrong: wrong-facts, truncated-json, refusals, twelve-epochs, or clean (nothing).
    clean
        The control: short for --scenario clean.
    seed
        Seeds the data, the training and the analysis.
    keep
        Keep the gradient index and the retrained adapters, too.
    quiet
        Show no progress.
    """
    from datetime import UTC, datetime

    from gradian_core.cli.needs import need_attribution, need_folder
    from gradian_core.cli.proof import print_proof
    from gradian_core.cli.reporting import deliver
    from gradian_core.config.load import load_config
    from gradian_core.demo.scenarios import make_scenario
    from gradian_core.progress import make_progress

    started = datetime.now(UTC)
    need_attribution("demo")
    # whatever is refused is refused before a folder is made
    load_config(None, {"seed": seed})
    scenario = "clean" if clean else scenario
    make_scenario(scenario, seed)
    need_folder(out)

    from gradian_core.flows.demo import run_demo

    outcome = run_demo(
        out,
        scenario=scenario,
        seed=seed,
        keep=keep,
        progress=make_progress(quiet=quiet),
    )
    deliver(outcome.report, out / "report", started=started, block=())
    print_proof(outcome, out)
    return 0
