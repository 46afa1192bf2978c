"""What the baselines on texts share: rows, what is looked for in them, and words."""

from __future__ import annotations

from gradian_core.protocols import AttributionTask

__all__ = ["PATTERN", "asked", "rows_of"]

PATTERN = r"(?u)\b\w+\b"
"""Not scikit-learn's ``\\w\\w+``: digits and single letters are all that tells some texts apart."""


def rows_of(task: AttributionTask) -> list[str]:
    """Return the text of each row."""
    return [row.full_text for row in task.examples]


def asked(task: AttributionTask, name: str, *, with_answer: bool) -> list[str]:
    """Return what is looked for: the prompt of each item, and on wish the tuned model's answer."""
    if not with_answer:
        return [item.prompt for item in task.items]
    unknown = sum(item.tuned_output is None for item in task.items)
    if unknown:
        task.note(
            f"{name}: {unknown} of {task.q} items have no answer of the tuned model; rows were "
            "compared with their prompts alone."
        )
    return [f"{item.prompt}\n{item.tuned_output or ''}" for item in task.items]
