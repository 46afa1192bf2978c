"""Measuring by generated answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gradian_core.data.encode import prompt_ids
from gradian_core.evaluation.generate import Generation, generate
from gradian_core.evaluation.judge import place
from gradian_core.evaluation.margin import preference_margins
from gradian_core.evaluation.result import ItemOutcome
from gradian_core.evaluation.task import EvalTask, outcome

__all__ = ["measure_answers"]


def measure_answers(task: EvalTask) -> tuple[tuple[ItemOutcome, ...], list[str]]:
    """Let both models answer every prompt, and judge the answers.

    Returns
    -------
    tuple
        The items, with the base preference margin of those that got worse, and notes.
    """
    for example in task.examples:
        # a reference that cannot be judged is refused before anything is generated
        task.judge.text("", example)
    prompts = [prompt_ids(example, task.loaded.tokenizer) for example in task.examples]
    with task.loaded.base() as model:
        base = _answer(task, model, prompts, "base")
    tuned = _answer(task, task.loaded.model, prompts, "tuned")
    items = tuple(
        replace(
            outcome(
                example,
                task.judge.text(before.text, example),
                task.judge.text(after.text, example),
                before.text,
                after.text,
            ),
            base_cut=not before.complete,
            tuned_cut=not after.complete,
        )
        for example, before, after in zip(task.examples, base, tuned, strict=True)
    )
    items, notes = _with_margins(task, items)
    return items, [*_limits(task), *notes]


def _answer(
    task: EvalTask, model: Any, prompts: Sequence[Sequence[int]], stage: str
) -> list[Generation]:
    return generate(
        model,
        task.loaded.tokenizer,
        prompts,
        max_new_tokens=task.settings.max_new_tokens,
        batch_size=task.settings.batch_size,
        pad_token_id=task.loaded.pad_token_id,
        greedy=task.settings.greedy,
        seed=task.seed,
        device=task.loaded.device,
        names=[place(task.judge.source, example) for example in task.examples],
        progress=task.counter(stage),
    )


def _limits(task: EvalTask) -> list[str]:
    if task.settings.greedy:
        return []
    note = (
        "Answers were sampled at temperature 1, one draw for each item and model: another seed "
        "gives other scores."
    )
    return [note]


def _with_margins(
    task: EvalTask, items: tuple[ItemOutcome, ...]
) -> tuple[tuple[ItemOutcome, ...], list[str]]:
    worse = [i for i, item in enumerate(items) if item.regressed]
    if not worse:
        return items, []
    by_reference = task.judge.spec.reference_is_answer
    margins = preference_margins(
        task.loaded,
        [task.examples[i] for i in worse],
        [items[i].reference if by_reference else items[i].base_output or "" for i in worse],
        [items[i].tuned_output or "" for i in worse],
        batch_rows=task.settings.batch_size,
        progress=task.counter("margin"),
    )
    found = dict(zip(worse, margins, strict=True))
    unknown = sum(margin is None for margin in margins)
    note = (
        f"The preference margin of {unknown} regressed items was not measured: an answer has no "
        "tokens or does not fit into the context."
    )
    items = tuple(replace(item, margin=found.get(i)) for i, item in enumerate(items))
    return items, [note] if unknown else []
