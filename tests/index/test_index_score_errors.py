"""What scoring refuses, and whom it names."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gradian_core.attribution.point import Queries
from gradian_core.attribution.score import score
from gradian_core.errors import CannotRunError, InputError, PluginError
from gradian_engines._graddot import GradDot, GradDotSettings


def graddot():
    return GradDot(GradDotSettings())


def test_indexes_that_do_not_belong_together(fakes, tokens, setting, tmp_path):
    _, queries = setting
    other = fakes.make_index(tmp_path / "p", tokens, spec={"projection_dim": 30})
    with pytest.raises(InputError, match="differ in: blocks"):
        score(other, queries, graddot())
    seeded = {
        seed: fakes.make_index(
            tmp_path / str(seed), tokens, spec={"projection_dim": 30, "projection_seed": seed}
        )
        for seed in (0, 1)
    }
    combination = np.eye(25)
    with pytest.raises(InputError, match="differ in: projection"):
        score(seeded[0], Queries(index=seeded[1], combination=combination), graddot())


@pytest.mark.parametrize(
    "combination", [np.zeros((2, 5)), np.zeros(6), np.zeros((0, 6)), np.full((1, 6), np.nan)]
)
def test_combinations_that_are_none(setting, combination):
    index, queries = setting
    with pytest.raises(ValueError, match="combination"):
        score(index, replace(queries, combination=combination), graddot())


class Broken:
    def __init__(self, answer):
        self.answer = answer

    def score_block(self, block, vectors, context):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def caveats(self, context):
        return ()


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (np.zeros((3, 5)), r"shape \(3, 5\).*not scores of shape \(3, 23\)"),
        (np.full((3, 23), np.nan), "not finite"),
        (np.full((3, 23), "x"), "not scores"),
        (None, "not scores"),
        (ZeroDivisionError("oops"), "ZeroDivisionError: oops"),
    ],
)
def test_an_engine_that_breaks_its_contract_is_named(setting, answer, message):
    index, queries = setting
    with pytest.raises(PluginError, match=message) as caught:
        score(index, queries, Broken(answer), owner="thing 1.0 (thing-dist)")
    assert caught.value.owner == "thing 1.0 (thing-dist)"
    assert "lower" in caught.value.message


def test_an_engines_error_for_people_passes(setting):
    index, queries = setting
    with pytest.raises(CannotRunError, match="too big"):
        score(index, queries, Broken(CannotRunError("too big")))


def test_caveats_that_fail_are_named(setting):
    index, queries = setting

    class Speechless(GradDot):
        def caveats(self, context):
            raise RuntimeError("no words")

    with pytest.raises(PluginError, match=r"caveats: RuntimeError: no words.*Speechless"):
        score(index, queries, Speechless(GradDotSettings()))
