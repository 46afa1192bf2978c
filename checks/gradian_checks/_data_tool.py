"""What the training tool does with rows: what it cuts, what it drops and what its loss sees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gradian_checks._read import by_default, known, version
from gradian_core.audit.facts import TokenFacts
from gradian_core.runs.artifact import TrainingConfig

__all__ = [
    "LongRows",
    "drops_empty_rows",
    "is_before",
    "is_loss_stated",
    "is_tool",
    "long_rows",
    "loss_on",
    "masks_padding_by_id",
]

Loss = Literal["answers", "markers", "all", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LongRows:
    """What the tool's rule for long rows leaves of each row.

    Parameters
    ----------
    rule
        ``cut_right``, ``cut_left``, ``cut_both``, ``drop`` or ``split``.
    source
        Where the rule comes from, as words.
    over
        ``(n,)`` bool: longer than the limit.
    dropped
        ``(n,)`` bool: left out because of its length.
    targets
        ``(n,)`` int64: targets of the loss that are left.
    answer_cut
        ``(n,)`` bool: cut, with a loss of targets.
    prompt_cut
        ``(n,)`` bool: cut, with all targets kept.
    """

    rule: str
    source: str
    over: NDArray[np.bool_]
    dropped: NDArray[np.bool_]
    targets: NDArray[np.int64]
    answer_cut: NDArray[np.bool_]
    prompt_cut: NDArray[np.bool_]


def long_rows(tokens: TokenFacts, training: TrainingConfig | None) -> LongRows:
    """Apply the tool's rule for rows beyond the sequence length.

    Without a run, or where its reader knows no rule, rows are cut on the right, as transformers
    and trl do.

    Parameters
    ----------
    tokens
        The rows.
    training
        The run's settings, if there is a run.
    """
    rule, source = "cut_right", "cut on the right, as transformers and trl do"
    stated = None if training is None else training.values.get("overlong_rows")
    if stated is not None and isinstance(stated.value, str):
        rule, source = stated.value, stated.source
    rows = tokens.tokens
    full = rows.full_supervised.astype(np.int64)
    over = np.zeros(len(rows), np.bool_)
    if tokens.max_seq_length is not None:
        over = rows.full_lengths > tokens.max_seq_length
    targets = _targets_left(tokens, rule, full)
    dropped = over & (rule == "drop")
    # Splitting moves the end of a row into the next sequence: nothing is lost.
    cut = over & ~dropped & (rule != "split")
    return LongRows(
        rule=rule,
        source=source,
        over=over,
        dropped=dropped,
        targets=targets,
        answer_cut=cut & (targets < full),
        prompt_cut=cut & (targets >= full),
    )


def _targets_left(tokens: TokenFacts, rule: str, full: NDArray[np.int64]) -> NDArray[np.int64]:
    limit = tokens.max_seq_length
    if limit is None or rule in ("drop", "split"):
        return full
    if rule == "cut_left":
        # The answer stands at the end, so it only loses what is longer than the whole window.
        return np.minimum(full, limit)
    if rule == "cut_both":
        return _targets_of_proportional_cut(tokens, full, limit)
    return tokens.tokens.supervised_counts


def _targets_of_proportional_cut(
    tokens: TokenFacts, full: NDArray[np.int64], limit: int
) -> NDArray[np.int64]:
    """LLaMA-Factory's ``infer_seqlen``: short answers stay whole, else both sides are cut."""
    length = tokens.tokens.full_lengths.astype(np.int64)
    prompt = length - full
    share = (limit * full) // np.maximum(length, 1)
    room = np.where(2 * full < limit, limit, np.where(2 * prompt < limit, limit - prompt, share))
    return np.minimum(room, full)


def loss_on(training: TrainingConfig | None, *, prompted: bool | None) -> Loss:
    """Return what the run's loss is taken on.

    Parameters
    ----------
    training
        The run's settings, if there is a run.
    prompted
        Whether the rows have a prompt and a completion, for which trl masks prompts by itself
        (for messages it does not); None for other shapes, which somebody turned into one of
        these.

    Returns
    -------
    str
        ``answers``; ``markers``: what the template marks with ``{% generation %}``; ``all``:
        prompts as well; ``unknown``.
    """
    if training is None:
        return "unknown"
    if training.get("assistant_only_loss") is True:
        return "markers"
    collator = str(training.get("collator") or "")
    if "CompletionOnly" in collator:
        return "answers"
    for name, value in (("train_on_prompt", True), ("completion_only_loss", False)):
        if training.get(name) is not None and _is_stated(training, name):
            return "all" if training.get(name) is value else "answers"
    if is_tool(training, "trl", "unsloth"):
        return "unknown" if prompted is None else "answers" if prompted else "all"
    if training.get("train_on_prompt") is not None:
        return "all" if training.get("train_on_prompt") else "answers"
    return "all" if "LanguageModeling" in collator else "unknown"


def is_loss_stated(training: TrainingConfig | None) -> bool:
    """Whether the run itself says what its loss is taken on, and not its tool's default."""
    names = ("assistant_only_loss", "completion_only_loss", "train_on_prompt", "collator")
    return training is not None and any(
        training.get(name) is not None and _is_stated(training, name) for name in names
    )


def _is_stated(training: TrainingConfig, name: str) -> bool:
    return known(training, name) and not by_default(training, name)


def masks_padding_by_id(training: TrainingConfig) -> bool:
    """Whether the run's collator takes every padding token out of the loss, wherever it stands."""
    if is_tool(training, "trl"):
        # From 0.17 on trl has a collator of the same name that masks by position.
        own = is_before(training, (0, 17)) is True
        return own or "CompletionOnly" in str(training.get("collator"))
    collator = str(training.get("collator"))
    return "CompletionOnly" in collator or "DataCollatorForLanguageModeling" in collator


def drops_empty_rows(training: TrainingConfig | None) -> bool:
    """Whether the tool leaves out rows that have no target."""
    if is_tool(training, "trl"):
        return is_before(training, (1, 9)) is False
    return is_tool(training, "axolotl", "unsloth")


def is_tool(training: TrainingConfig | None, *names: str) -> bool:
    """Whether the run's tool is one of these."""
    return training is not None and training.tool in names


def is_before(training: TrainingConfig | None, release: tuple[int, ...]) -> bool | None:
    """Whether trl is older than a release; None if its version is not known."""
    found = None if training is None else version(training, "trl")
    return None if found is None else found < release
