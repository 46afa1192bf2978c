"""Complaints about values, for models that are not ours."""

import pytest
from pydantic import BaseModel, ConfigDict, Field

from gradian_core.config.problems import InvalidValues, validate


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid")
    width: int


class Outer(BaseModel):
    model_config = ConfigDict(extra="allow")
    inner: Inner | None = None
    many: list[Inner] = []
    alias: int = Field(0, validation_alias="other_name")


def complaints(values):
    with pytest.raises(InvalidValues) as caught:
        validate(Outer, values)
    return [str(problem) for problem in caught.value.problems]


def test_unknown_keys_are_refused_whatever_the_model_says():
    assert complaints({"iner": 1}) == ["iner: unknown key. Did you mean inner?"]


def test_problems_in_lists_and_optional_sections():
    assert complaints({"many": [{"width": 1}, {"widht": 1}], "inner": {}}) == [
        "inner.width: is required",
        "many.1.width: is required",
        "many.1.widht: unknown key. Did you mean width?",
    ]


def test_aliases_are_keys():
    assert validate(Outer, {"other_name": 3}).alias == 3
