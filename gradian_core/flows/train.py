"""Fine-tuning an adapter: a convenience, and what counterfactual retraining stands on."""

from __future__ import annotations

from pathlib import Path

from gradian_core.config.models import Config
from gradian_core.data.files import load_dataset
from gradian_core.errors import UsageError
from gradian_core.flows.session import counted
from gradian_core.plugins.failure import guard
from gradian_core.plugins.registry import load_registry
from gradian_core.progress import NoProgress, Progress
from gradian_core.protocols import TrainJob

__all__ = ["train"]


def train(config: Config, *, progress: Progress | None = None) -> Path:
    """Fine-tune a LoRA adapter as section ``train`` says.

    Parameters
    ----------
    config
        ``dataset`` is needed, and ``train.base_model`` or ``base_model``.
    progress
        Where to report; silent if None.

    Returns
    -------
    pathlib.Path
        ``train.output_dir``, with ``adapter/``, ``trainer_state.json`` and ``gradian_run.json``.

    Raises
    ------
    GradianError
        With the exit code and the words for the user; see the parts.
    """
    progress = progress or NoProgress()
    settings = config.train
    base = settings.base_model or config.base_model
    if not base or not config.dataset:
        raise UsageError(
            "Training needs a base model and training data.",
            hint="Set base_model and dataset in the config.",
        )
    out = Path(settings.output_dir).expanduser()
    _refuse_finished(out)
    registry = load_registry(config.plugins.block)
    owner = registry.find("trainer", settings.backend).owner
    trainer = registry.create("trainer", settings.backend)
    rows = load_dataset(config.dataset)
    with counted(progress, "Training") as report, guard(owner, f"Trainer {settings.backend}"):
        return trainer.train(
            TrainJob(
                base_model=base,
                rows=[example.as_row() for example in rows],
                out=out,
                settings=settings.model_dump(),
                seed=config.seed,
                device=config.device,
                dtype=config.dtype,
                trust_remote_code=config.trust_remote_code,
                progress=lambda step, steps, _loss: report(step, steps),
            )
        )


def _refuse_finished(out: Path) -> None:
    if (out / "adapter").exists():
        raise UsageError(
            f"train.output_dir: {out} holds an adapter already.",
            hint="Name another folder with --out, or remove it.",
        )
