"""Whether a run kept to our limit of passes over the data."""

from collections.abc import Iterator

from gradian_core.audit.facts import NotAssessed
from gradian_core.audit.samples import training
from gradian_core.check import check
from gradian_core.findings import Finding, Severity
from gradian_core.runs.artifact import TrainingConfig

LIMIT = 3.0


@check(
    severity=Severity.MEDIUM,
    since="1.0.0",
    trips=lambda: {"training": training(num_train_epochs=10)},
    clean=lambda: {"training": training(num_train_epochs=3)},
)
def too_many_epochs(training: TrainingConfig) -> Iterator[Finding]:
    """More epochs than we allow.

    Why it matters: what is seen often is learnt by heart; our reviews assume that it is not.

    How to fix: train for three epochs at most, or ask for an exception.

    Threshold: more than three.

    Not assessed: where the run does not say how many there were.
    """
    epochs = training.get("num_train_epochs")
    if isinstance(epochs, bool) or not isinstance(epochs, (int, float)):
        raise NotAssessed("The run does not say for how many epochs it trained.")
    if epochs > LIMIT:
        yield Finding(
            id="house.too_many_epochs",
            severity=Severity.MEDIUM,
            title=f"{epochs:g} epochs, where we allow {LIMIT:g}",
            fix=f"Set num_train_epochs to {LIMIT:g} or less, or ask for an exception.",
            evidence={"num_train_epochs": epochs, "limit": LIMIT},
        )
