"""Every check has an answer, and none takes another one down."""

from __future__ import annotations

import pytest

from gradian_core.audit.gather import GivenFacts, Missing
from gradian_core.audit.run import Answer, run_checks
from gradian_core.audit.samples import rows
from gradian_core.audit.select import selected
from gradian_core.errors import InputError, UsageError
from gradian_core.findings import Finding, Severity

FACTS = GivenFacts({"examples": rows(n=3)})


def answers(result):
    return {outcome.check.removeprefix("house."): outcome.answer for outcome in result.outcomes}


def test_the_four_answers(house):
    def locked(examples, log):
        """Need a log."""
        return ()

    registry = house(a=house.found("a"), b=house.clean, c=house.unable, d=house.broken, e=locked)
    result = run_checks(registry, FACTS)
    assert answers(result) == {
        "a": Answer.FOUND,
        "b": Answer.CLEAN,
        "c": Answer.NOT_ASSESSED,
        "d": Answer.FAILED,
        "e": Answer.NOT_ASSESSED,
    }
    assert [finding.id for finding in result.findings] == ["house.a"]
    by_name = {outcome.check: outcome for outcome in result.outcomes}
    assert by_name["house.c"].why == "There is too little of it."
    assert by_name["house.e"].why == "log was not given."
    failed = by_name["house.d"].why
    assert "ZeroDivisionError: nothing to divide by" in failed
    assert "house, house-checks 1.2" in failed


@pytest.mark.parametrize(
    ("yielded", "complaint"),
    [
        ("a word", "yielded str, not a Finding"),
        (
            Finding(id="data.duplicates", severity=Severity.LOW, title="not its own"),
            "yielded a finding called 'data.duplicates'",
        ),
    ],
)
def test_what_a_check_must_not_yield(house, yielded, complaint):
    def strange(examples):
        yield yielded

    result = run_checks(house(strange=strange, b=house.clean), FACTS)
    assert answers(result) == {"strange": Answer.FAILED, "b": Answer.CLEAN}
    assert complaint in result.of(Answer.FAILED)[0].why
    assert result.findings == ()


def test_a_check_that_is_no_check_or_cannot_be_imported(house):
    registry = house(a=house.found("a"), plain="not a function")
    result = run_checks(registry, FACTS)
    assert answers(result) == {"a": Answer.FOUND, "plain": Answer.FAILED}
    assert "does not implement Check" in result.of(Answer.FAILED)[0].why


def test_a_failing_generator_gives_nothing_it_yielded_before(house):
    def half(examples):
        yield Finding(id="house.half", severity=Severity.LOW, title="first")
        raise SystemExit(3)

    result = run_checks(house(half=half), FACTS)
    assert answers(result) == {"half": Answer.FAILED}
    assert result.findings == ()


def test_optional_facts_are_none_where_they_are_missing(house):
    seen = []

    def curious(examples, log=None, training=None):
        seen.append((examples, log, training))
        return ()

    facts = GivenFacts({"examples": 1, "training": 2, "log": Missing("none")})
    run_checks(house(curious=curious), facts)
    assert seen == [(1, None, 2)]


def test_facts_that_nobody_asks_for_are_not_computed(house):
    class Greedy:
        def get(self, name):
            assert name == "examples"
            return 1

    assert answers(run_checks(house(b=house.clean), Greedy())) == {"b": Answer.CLEAN}


def test_why_names_every_missing_fact_once(house):
    def hungry(examples, tokens, eval_tokens):
        return ()

    facts = GivenFacts(
        {
            "examples": Missing("No rows.", ("--dataset",)),
            "tokens": Missing("No tokenizer.", ("--dataset", "--base-model")),
            "eval_tokens": Missing("No tokenizer.", ("--eval-dataset",)),
        }
    )
    (outcome,) = run_checks(house(hungry=hungry), facts).outcomes
    assert outcome.why == "No rows. No tokenizer."
    assert outcome.unlock == ("--base-model", "--dataset", "--eval-dataset")


def test_unreadable_input_is_the_users_business_and_not_the_checks(house):
    class Damaged:
        def get(self, name):
            raise InputError("train.jsonl:3: broken.")

    with pytest.raises(InputError, match="broken"):
        run_checks(house(b=house.clean), Damaged())


def test_no_memory_is_not_the_checks_fault(house):
    def large(examples):
        raise MemoryError

    with pytest.raises(Exception, match="MemoryError"):
        run_checks(house(large=large), FACTS)


def test_selection(house):
    registry = house(a=house.clean, ab=house.clean, b=house.clean)
    result = run_checks(registry, FACTS, select=["house.a*"], ignore=["house.ab"])
    assert answers(result) == {"a": Answer.CLEAN}


NAMES = ("config.lr_too_high", "data.duplicates", "data.truncated")


@pytest.mark.parametrize(
    ("select", "ignore", "names"),
    [
        ((), (), NAMES),
        (("data.*",), (), NAMES[1:]),
        (("data.*", "config.lr_too_high"), ("*.duplicates",), (NAMES[0], NAMES[2])),
        ((), ("*",), ()),
        (("data.trun?ated", "data.truncated"), (), NAMES[2:]),
    ],
)
def test_ids_and_patterns(select, ignore, names):
    assert selected(reversed(NAMES), select, ignore) == names


@pytest.mark.parametrize(
    ("flag", "pattern", "words"),
    [
        ("--select", "data.duplicate", "Did you mean data.duplicates?"),
        ("--ignore", "confg.*", "--ignore confg.* matches no check"),
        ("--select", "\x1b[31mx", "--select x matches no check"),
        ("--select", "DATA.TRUNCATED", "matches no check"),
    ],
)
def test_what_matches_nothing_is_refused(flag, pattern, words):
    chosen = {flag.removeprefix("--"): [pattern]}
    with pytest.raises(UsageError) as caught:
        selected(NAMES, **chosen)
    assert words in str(caught.value)
    assert "\x1b" not in str(caught.value)
    assert "gradian checks" in str(caught.value)
