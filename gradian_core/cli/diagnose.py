"""``gradian diagnose``."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter


def diagnose(
    *,
    config: Annotated[Path | None, Parameter(name=["--config", "-c"])] = None,
    dataset: Annotated[Path | None, Parameter(name=["--dataset", "-d"])] = None,
    eval_dataset: Annotated[Path | None, Parameter(name=["--eval-dataset", "-e"])] = None,
    run: Annotated[Path | None, Parameter(name=["--run", "-r"])] = None,
    adapter: Annotated[Path | None, Parameter(name=["--adapter", "-a"])] = None,
    base_model: Annotated[str | None, Parameter(name=["--base-model", "-m"])] = None,
    tokenizer: str | None = None,
    max_seq_length: int | None = None,
    select: list[str] | None = None,
    ignore: list[str] | None = None,
    fail_on: Literal["critical", "high", "medium", "low", "info"] | None = None,
    output: Annotated[
        Literal["text", "json", "github", "sarif"], Parameter(name="--format")
    ] = "text",
    cache_dir: Path | None = None,
    out: Annotated[Path | None, Parameter(name=["--out", "-o"])] = None,
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"])] = False,
) -> int:
    """Check training data, settings and logs of a fine-tune for known faults; no GPU, no torch.

    Parameters
    ----------
    config
        YAML config file; the options below override it.
    dataset
        Training data. This or --run is required, here or in the config.
    eval_dataset
        Eval items; unlocks the checks for contamination.
    run
        Run folder, or a config or log file, of the training; unlocks the checks of settings and
        dynamics.
    adapter
        Folder of the LoRA adapter, if it is not in the run folder.
    base_model
        Base model: hub id or folder; only its tokenizer is loaded.
    tokenizer
        Another tokenizer than the base model's: hub id or folder.
    max_seq_length
        Sequence length of the training, if the run does not say it.
    select
        Run only checks with this id or pattern, such as 'data.*'; repeatable.
    ignore
        Leave out checks with this id or pattern; repeatable.
    fail_on
        Exit with 1 if a finding is at least this severe.
    output
        What to print: text, json, github (annotations) or sarif.
    cache_dir
        Where tokens are kept between runs; an existing .gradian is used without asking.
    out
        Write the report into this folder.
    quiet
        Show no progress.
    """
    from datetime import UTC, datetime

    from gradian_core.cli.audit import show_audit
    from gradian_core.cli.needs import need_folder
    from gradian_core.cli.reporting import deliver
    from gradian_core.config.load import load_config
    from gradian_core.findings import Severity
    from gradian_core.progress import make_progress

    started = datetime.now(UTC)
    settings = load_config(
        config,
        {
            "dataset": dataset,
            "eval_dataset": eval_dataset,
            "run_dir": run,
            "adapter_path": adapter,
            "base_model": base_model,
            "tokenizer": tokenizer,
            "cache_dir": cache_dir,
        },
    )
    need_folder(out)

    from gradian_core.flows.diagnose import examine

    diagnosis = examine(
        settings,
        max_seq_length=max_seq_length,
        select=select or (),
        ignore=ignore or (),
        progress=make_progress(quiet=quiet),
    )
    worst = diagnosis.report.worst_severity()
    failed = fail_on is not None and worst is not None and worst.rank <= Severity(fail_on).rank
    deliver(
        diagnosis.report,
        out,
        started=started,
        block=settings.plugins.block,
        exit_status=int(failed),
        show=lambda _: show_audit(diagnosis, output),
    )
    return int(failed)
