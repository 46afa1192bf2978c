"""The four built-in metrics."""

from __future__ import annotations

import importlib
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradian_core.protocols import LikelihoodMetric, TextMetric
from gradian_plugins import metrics
from gradian_plugins.metrics.contains import Contains
from gradian_plugins.metrics.exact_match import ExactMatch
from gradian_plugins.metrics.loglik import LogLikelihood
from gradian_plugins.metrics.not_contains import NotContains

SPECS = {spec.name: spec for spec in metrics.gradian_metrics()}


def test_four_are_declared():
    assert list(SPECS) == ["exact_match", "contains", "not_contains", "loglik"]
    assert [spec.needs for spec in SPECS.values()] == ["generation"] * 3 + ["likelihood"]
    assert [spec.reference_is_answer for spec in SPECS.values()] == [True, True, False, True]


@pytest.mark.parametrize("name", SPECS)
def test_each_factory_gives_what_was_declared(name):
    module, _, attribute = SPECS[name].factory.partition(":")
    metric = getattr(importlib.import_module(module), attribute)()
    kind = TextMetric if SPECS[name].needs == "generation" else LikelihoodMetric
    assert isinstance(metric, kind)


def test_declaring_is_free():
    code = (
        "import sys; import gradian_plugins.metrics as m; list(m.gradian_metrics());"
        "print(*{name.split('.')[0] for name in sys.modules})"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(shown.stdout.split())
    assert "gradian_plugins" in loaded
    assert not loaded & {"torch", "numpy", "transformers", "pydantic", "unicodedata"}


@pytest.mark.parametrize(
    ("prediction", "reference", "wanted"),
    [
        ("Paris.", "paris", 1.0),
        ("  “Paris”\n", "Paris", 1.0),
        ("It is Paris", "Paris", 0.0),
        ("42", "4", 0.0),
        ("1,000", "1000", 1.0),
        ("", "Paris", 0.0),
    ],
)
def test_exact_match(prediction, reference, wanted):
    assert ExactMatch().score(prediction, reference) == wanted


@pytest.mark.parametrize(
    ("prediction", "reference", "wanted"),
    [
        ("The capital is Oslo.", "Oslo", 1.0),
        ("Oslo's port", "oslo", 1.0),
        ("An Osloer", "Oslo", 0.0),
        ("It is 42.", "4", 0.0),
        ("It is 4.5", "4", 0.0),
        ("It is -4", "4", 0.0),
        ("It is 4, I think", "4", 1.0),
        ("Population: 1,200,000", "1200000", 1.0),
        ("首都は東京です。", "東京", 1.0),
        ("수도는 서울입니다", "서울", 1.0),
        ("São Paulo, Brazil", "Sao Paulo", 1.0),
        ("Paulo São", "Sao Paulo", 0.0),
        ("", "Oslo", 0.0),
    ],
)
def test_contains(prediction, reference, wanted):
    assert Contains().score(prediction, reference) == wanted


@pytest.mark.parametrize(
    ("prediction", "wanted"),
    [
        ("Here is the recipe.", 1.0),
        ("I can’t help with that, sorry.", 0.0),
        ("I CAN'T   HELP WITH THAT", 0.0),
        ("I am unable to assistance", 0.0),
        ("I am able to assist", 1.0),
        ("", 1.0),
    ],
)
def test_not_contains(prediction, wanted):
    markers = "can't help with that | unable to assist ||"
    assert NotContains().score(prediction, markers) == wanted


@pytest.mark.parametrize("metric", [ExactMatch(), Contains()])
@pytest.mark.parametrize("reference", ["", "  ", "...", "**", "\u200b"])
def test_an_empty_reference_is_refused(metric, reference):
    with pytest.raises(ValueError, match="empty"):
        metric.score("anything", reference)


@pytest.mark.parametrize("reference", ["", " | ", "||"])
def test_no_marker_is_refused(reference):
    with pytest.raises(ValueError, match="no marker"):
        NotContains().score("anything", reference)


def test_a_marker_of_which_nothing_is_left_is_refused():
    with pytest.raises(ValueError, match=r"'\.\.\.'"):
        NotContains().score("anything", "sorry | ...")


def test_loglik_is_the_mean_in_float64():
    values = np.linspace(-9.0, -0.1, 1001)
    assert LogLikelihood().score(values) == pytest.approx(values.sum() / 1001, rel=1e-14)
    assert LogLikelihood().score(np.full(4096, -1e-4, dtype=np.float16)) == pytest.approx(
        -1e-4, rel=1e-3
    )
    with pytest.raises(ValueError, match="no token"):
        LogLikelihood().score(np.empty(0))


@given(st.text(), st.text(st.characters(categories=["L", "N"]), min_size=1), st.text())
def test_the_text_metrics_agree_with_each_other(before, reference, after):
    exact, contains, absent = ExactMatch(), Contains(), NotContains()
    try:
        found = contains.score(reference, reference)
    except ValueError:
        return  # letters such as fillers fold to nothing
    assert exact.score(reference, reference) == found == 1.0
    assert contains.score(f"{before} , {reference} , {after}", reference) == 1.0
    assert absent.score(f"{before} , {reference} , {after}", reference) == 0.0


@given(st.text(), st.text(st.characters(categories=["L"], max_codepoint=0x24F), min_size=1))
def test_exact_implies_contains_implies_substring(prediction, reference):
    exact = ExactMatch().score(prediction, reference)
    contains = Contains().score(prediction, reference)
    assert exact <= contains <= 1.0 - NotContains().score(prediction, reference)
