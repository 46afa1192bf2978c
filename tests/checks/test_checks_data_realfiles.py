"""Public data files: what must fire and what must not, where they are at hand."""

from __future__ import annotations

import importlib
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from gradian_checks import data
from gradian_core.audit.collect_examples import open_examples
from gradian_core.audit.collect_tokens import collect_tokens
from gradian_core.audit.facts import NotAssessed
from gradian_core.audit.samples import tokenizer
from gradian_core.check import Check

FOLDER = Path(__file__).parents[3] / "shared" / "realfiles"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the public files are not at hand")
MEDIUM = ("critical", "high", "medium")

FIRES: dict[str, dict[str, tuple[str, ...]]] = {
    "22-data-ru-instruction-placeholders.jsonl": {
        "duplicates": ("medium",),
        "empty_or_degenerate_targets": ("high",),
        "format_inconsistency": ("low",),
    },
    "24-data-messages-text2sql-train.jsonl": {"tiny_dataset": ("low",)},
    "32-data-sharegpt-empty-gpt-turn.json": {
        "empty_or_degenerate_targets": ("high",),
        "tiny_dataset": ("high",),
    },
    "35-data-alpaca-identity-placeholders.json": {
        "unfilled_template_placeholder": ("high",),
        "tiny_dataset": ("low",),
        "conflicting_answers": ("info",),
    },
    "38-data-messages-content-list.jsonl": {
        "unfilled_template_placeholder": ("high",),
        "tiny_dataset": ("medium",),
    },
    "65-data-alpaca-dictionary-dups-conflicts.json": {
        "duplicates": ("low",),
        "conflicting_answers": ("high",),
        "tiny_dataset": ("medium",),
        "format_inconsistency": ("info",),
    },
    "67-data-messages-9rows-same-system.jsonl": {"tiny_dataset": ("high",)},
}
SILENT: dict[str, tuple[str, ...]] = {
    "22-data-ru-instruction-placeholders.jsonl": ("conflicting_answers", "prompt_equals_target"),
    "24-data-messages-text2sql-train.jsonl": ("conflicting_answers", "near_duplicates"),
    "32-data-sharegpt-empty-gpt-turn.json": ("format_inconsistency",),
    "35-data-alpaca-identity-placeholders.json": ("duplicates",),
    "36-data-alpaca-en.json": ("empty_or_degenerate_targets", "prompt_equals_target"),
    "38-data-messages-content-list.jsonl": ("prompt_equals_target", "empty_or_degenerate_targets"),
    "65-data-alpaca-dictionary-dups-conflicts.json": (
        "empty_or_degenerate_targets",
        "near_duplicates",
        "prompt_equals_target",
    ),
    "67-data-messages-9rows-same-system.jsonl": (
        "near_duplicates",
        "duplicates",
        "template_prefix_mismatch",
        "template_rejects_rows",
    ),
}


@cache
def answers(name: str) -> dict[str, list[str]]:
    """Return the severities of each check that could judge, with a ChatML tokenizer."""
    dataset, examples = open_examples(FOLDER / name)
    made = tokenizer()
    facts: dict[str, Any] = {
        "examples": examples,
        "tokenizer": made,
        "tokens": collect_tokens(dataset, made),
    }
    given = {}
    for short, _, _ in data.CORE + data.FURTHER:
        check: Check = getattr(importlib.import_module(f"gradian_checks.data.{short}"), short)
        if not set(check.needs) <= facts.keys():
            continue
        known = {n: facts[n] for n in (*check.needs, *check.wants) if n in facts}
        try:
            given[short] = [f.severity.value for f in check(**known)]
        except NotAssessed:
            continue
    return given


@pytest.mark.parametrize(
    ("name", "check", "severities"),
    [(name, check, s) for name, checks in FIRES.items() for check, s in checks.items()],
)
def test_should_fire(name: str, check: str, severities: tuple[str, ...]) -> None:
    assert tuple(answers(name)[check]) == severities


@pytest.mark.parametrize(
    ("name", "check"), [(name, check) for name, checks in SILENT.items() for check in checks]
)
def test_should_not_fire(name: str, check: str) -> None:
    assert answers(name).get(check, []) == []


@pytest.mark.parametrize("name", sorted(FIRES | SILENT))
def test_nothing_else_is_worse_than_low(name: str) -> None:
    told = FIRES.get(name, {})
    others = {check: s for check, s in answers(name).items() if check not in told}
    assert not {check: s for check, s in others.items() if set(s) & set(MEDIUM)}
