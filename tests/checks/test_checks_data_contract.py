"""Every check of data keeps the contract of a check."""

from __future__ import annotations

import contextlib
import importlib
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from gradian_checks import data
from gradian_core.audit import samples
from gradian_core.audit.facts import NotAssessed
from gradian_core.check import Check
from gradian_core.specs import CheckSpec

SPECS = list(data.gradian_checks())


def load(spec: CheckSpec) -> Check:
    module, _, name = spec.factory.partition(":")
    found = getattr(importlib.import_module(module), name)
    assert isinstance(found, Check)
    return found


def test_core_is_the_documented_list_and_further_is_apart() -> None:
    assert len(data.CORE) == 16
    assert len(data.FURTHER) == 9
    assert len({spec.name for spec in SPECS}) == 25
    assert sum(spec.core for spec in SPECS) == 16


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_declared_needs_are_the_functions(spec: CheckSpec) -> None:
    assert spec.needs == load(spec).needs


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_samples(spec: CheckSpec) -> None:
    found = load(spec)
    findings = list(found(**found.trips()))
    assert findings
    assert list(found(**found.clean())) == []
    for finding in findings:
        assert finding.id == spec.name
        assert finding.severity.rank >= found.severity.rank
        assert finding.title
        assert "\n" not in finding.title
        assert json.loads(json.dumps(finding.evidence, allow_nan=False))


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_page(spec: CheckSpec) -> None:
    found = load(spec)
    assert f"data.{found.name}" == spec.name
    assert found.page.splitlines()[0] == f"{spec.summary}."
    for section in ("Why it matters:", "How to fix:", "Threshold", "Not assessed:"):
        assert section in found.page, section


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_samples_are_the_same_each_time(spec: CheckSpec) -> None:
    found = load(spec)
    assert list(found(**found.trips())) == list(found(**found.trips()))


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_every_finding_worse_than_info_says_what_to_do(spec: CheckSpec) -> None:
    found = load(spec)
    for finding in found(**found.trips()):
        assert finding.fix or finding.severity == "info"


def test_declaring_imports_nothing_heavy() -> None:
    code = (
        "import sys; import gradian_checks.data as d; list(d.gradian_checks());"
        "heavy = {'numpy', 'torch', 'transformers', 'rapidfuzz', 'rensa'} & set(sys.modules);"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_no_check_imports_torch() -> None:
    names = [spec.factory.partition(":")[0] for spec in SPECS]
    code = (
        f"import sys, importlib; [importlib.import_module(n) for n in {names!r}];"
        "sys.exit('torch' in sys.modules or 'transformers' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_one_row_crashes_nothing() -> None:
    facts: Mapping[str, object] = {
        "examples": samples.rows(n=1),
        "eval_examples": samples.rows(n=1),
        "tokenizer": samples.tokenizer(),
        "tokens": samples.tokens(n=1),
        "eval_tokens": samples.tokens(n=1),
        "training": samples.training("trl"),
        "adapter": samples.adapter(),
    }
    for spec in SPECS:
        found = load(spec)
        given = {name: facts[name] for name in (*found.needs, *found.wants)}
        with contextlib.suppress(NotAssessed):
            list(found(**given))


class Counting:
    """Rows that count how often they are read."""

    def __init__(self, rows: Any) -> None:
        self.rows = rows
        self.reads = 0

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Any:
        self.reads += 1
        return self.rows[index]

    def __iter__(self) -> Iterator[Any]:
        for row in self.rows:
            self.reads += 1
            yield row


MANY = samples.chat_rows(12_000)
ALL_TEXT = {"data.near_duplicates", "data.train_eval_contamination"}


def reads_rows(spec: CheckSpec) -> bool:
    found = load(spec)
    return "examples" in (*found.needs, *found.wants)


@pytest.mark.parametrize(
    "spec",
    [spec for spec in SPECS if reads_rows(spec) and spec.name not in ALL_TEXT],
    ids=lambda spec: spec.name,
)
def test_text_is_read_for_candidates_and_samples_only(spec: CheckSpec) -> None:
    found = load(spec)
    counting = Counting(MANY.rows)
    facts = {
        "examples": replace(MANY, rows=counting),
        "tokenizer": samples.tokenizer(),
        "tokens": samples.tokens(n=3),
        "training": samples.training("trl", "1.0.0"),
        "adapter": samples.adapter(),
    }
    given = {name: facts[name] for name in (*found.needs, *found.wants) if name in facts}
    with contextlib.suppress(NotAssessed):
        list(found(**given))
    assert counting.reads <= 1500
