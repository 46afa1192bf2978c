"""Every check of settings and of dynamics keeps the contract of a check."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys

import pytest

from gradian_checks import config, dynamics
from gradian_core.check import Check
from gradian_core.specs import CheckSpec

SPECS = [*config.gradian_checks(), *dynamics.gradian_checks()]


def load(spec: CheckSpec) -> Check:
    module, _, name = spec.factory.partition(":")
    found = getattr(importlib.import_module(module), name)
    assert isinstance(found, Check)
    return found


def test_core_list_is_the_documented_one() -> None:
    assert len(config.CORE) == 17
    assert len(dynamics.CORE) == 8
    names = [spec.name for spec in SPECS]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_trips_and_clean(spec: CheckSpec) -> None:
    found = load(spec)
    findings = list(found(**found.trips()))
    assert findings
    assert list(found(**found.clean())) == []
    for finding in findings:
        assert finding.id == spec.name
        assert finding.severity.rank >= found.severity.rank
        assert finding.evidence
        assert json.loads(json.dumps(finding.evidence, allow_nan=False))
        assert "\n" not in finding.title


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_page(spec: CheckSpec) -> None:
    found = load(spec)
    assert found.name == spec.name.partition(".")[2]
    assert found.needs == spec.needs
    lines = found.page.splitlines()
    assert lines[0] == f"{spec.summary}."
    for section in ("Why it matters:", "How to fix:", "Threshold:"):
        assert section in found.page


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_every_severe_trip_says_what_to_do(spec: CheckSpec) -> None:
    found = load(spec)
    for finding in found(**found.trips()):
        if finding.severity.rank < 4:
            assert finding.fix.endswith(".")
            assert finding.detail.endswith(".")


def test_declaring_imports_nothing_heavy() -> None:
    code = (
        "import sys, gradian_checks.config as c, gradian_checks.dynamics as d;"
        "assert len(list(c.gradian_checks())) + len(list(d.gradian_checks())) == "
        f"{len(SPECS)};"
        "bad = {'numpy', 'torch', 'transformers', 'pydantic', 'gradian_core.audit.facts'};"
        "sys.exit(str(bad & set(sys.modules)) if bad & set(sys.modules) else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_checks_import_no_torch() -> None:
    modules = ",".join(spec.factory.partition(":")[0] for spec in SPECS)
    code = (
        f"import sys, importlib; [importlib.import_module(m) for m in '{modules}'.split(',')];"
        "bad = {'torch', 'transformers', 'safetensors'} & set(sys.modules); sys.exit(str(bad) if "
        "bad else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
