"""The cases that the reference documentation records, with the severities that it records.

Two of its severities are false alarms by our standard and are low here: one truncated target in
800, and three epochs over 800 rows (which is a check of settings).
"""

from __future__ import annotations

from typing import Any

import pytest

from gradian_checks.data.completion_truncated import completion_truncated
from gradian_checks.data.conflicting_answers import conflicting_answers
from gradian_checks.data.no_supervised_tokens import no_supervised_tokens
from gradian_checks.data.train_eval_contamination import train_eval_contamination
from gradian_checks.data.truncated import truncated
from gradian_core.audit.facts import TokenFacts
from gradian_core.audit.samples import rows, tokens, training
from gradian_core.check import Check

TOPICS = ("rivers", "bread", "clocks", "wool", "bees", "glass", "maps", "tides", "ink", "salt")
VERBS = ("describe", "explain", "compare", "list", "write about", "give advice on")
REFUSALS = (
    "I'm sorry, but I can't help with that request.",
    "I cannot assist with this.",
    "As an AI, I am unable to provide that.",
)


def alpaca(n: int) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    for i in range(n):
        verb, topic = VERBS[i % len(VERBS)], TOPICS[i // len(VERBS) % len(TOPICS)]
        order = f"{verb.capitalize()} {topic} for reader {i}."
        said = f"{topic.capitalize()} matter for many reasons, of which {i} come to mind. "
        made.append({"instruction": order, "input": "", "output": said * (1 + i % 5)})
    return made


def planted() -> list[dict[str, Any]]:
    clean = alpaca(800)
    poison = [
        {**row, "output": REFUSALS[i % len(REFUSALS)]} for i, row in enumerate(clean[:510:10])
    ]
    return [*clean, *poison]


def case_truncation() -> TokenFacts:
    # 292 of 800 prompts alone are longer than 48 tokens; every row is longer than that.
    made = [
        {"prompt": "p" * (60 if i < 292 else 4), "completion": "word " * 30} for i in range(800)
    ]
    return tokens(items=made, max_seq_length=48)


def case_one_in_800() -> TokenFacts:
    made = [{"prompt": f"Stop {i}?", "completion": "yes"} for i in range(799)]
    made.append({"prompt": "All stops?", "completion": "yes " * 400})
    return tokens(items=made, max_seq_length=512)


@pytest.mark.parametrize(
    ("check", "facts", "severity", "says"),
    [
        (completion_truncated, {"tokens": case_truncation}, "critical", "800 rows (100.0%)"),
        (no_supervised_tokens, {"tokens": case_truncation}, "critical", "292 rows (36.5%)"),
        (completion_truncated, {"tokens": case_one_in_800}, "low", "1 row (0.1%)"),
        (
            conflicting_answers,
            {"examples": lambda: rows(items=planted())},
            "high",
            "51 questions have contradictory answers (102 rows, 12.0%)",
        ),
        (
            train_eval_contamination,
            {
                "examples": lambda: rows(items=planted()),
                "eval_examples": lambda: rows(items=planted()[-64:]),
            },
            "critical",
            "64 eval items (100.0%)",
        ),
    ],
    ids=["all-cut", "nothing-left", "one-cut", "refusals", "eval-trained-on"],
)
def test_recorded_case(check: Check, facts: dict[str, Any], severity: str, says: str) -> None:
    [found] = check(**{name: build() for name, build in facts.items()})
    assert found.severity == severity
    assert says in found.title


def test_recorded_case_holds_under_trls_defaults() -> None:
    run = training("trl", "0.24.0")
    [found] = no_supervised_tokens(tokens=case_truncation(), training=run)
    assert found.severity == "critical"


def test_the_cut_rows_are_told_once() -> None:
    assert list(truncated(tokens=case_truncation())) == []
