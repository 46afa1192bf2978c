"""Uptake as the report and its findings tell it."""

import pytest

from gradian_core.attribution.uptake import Phrase, Uptake
from gradian_core.findings import Severity
from gradian_core.report.uptake import UptakeReport, uptake_findings

IDS = [f"{i:012x}-{i}" for i in range(50)]


def uptake(*groups):
    """Groups of ``(items, rows)``; items are counted through."""
    phrases, item = [], 0
    for number, (n, rows) in enumerate(groups):
        items = tuple(range(item, item + n))
        phrases.append(
            Phrase(text=f"p{number}", items=items, rows=tuple(rows), plain=False, whole=False)
        )
        item += n
    return Uptake(phrases=tuple(phrases), n_rows=len(IDS))


def test_shares_rows_and_order(samples):
    told = UptakeReport.of(uptake((1, [3]), (4, range(25)), (3, [])), samples.capability(), IDS)
    assert (told.n_items, told.n_taught, told.n_rows, told.share) == (8, 5, 25, 0.625)
    assert [phrase.text for phrase in told.phrases] == ["p1", "p2", "p0"]
    assert told.phrases[0].example_ids == tuple(IDS[:20])
    assert told.phrases[0].n_rows == 25
    lost = [item.id for item in samples.capability().items if item.regressed]
    assert told.phrases[2].eval_ids == (lost[0],)
    assert "teach 5 of the 8 wrong answers (uptake 0.62): 25 rows" in told.sentence


@pytest.mark.parametrize(
    ("groups", "found", "words"),
    [
        ([(4, [3]), (4, [])], "attribution.learned_from_rows", "4 of 8 wrong answers stand in"),
        ([(3, [3]), (5, [])], "attribution.displaced_not_learned", "teach 3 of 8"),
        ([(8, [])], "attribution.displaced_not_learned", "no training row teaches any of the 8"),
    ],
)
def test_one_finding_says_which(samples, groups, found, words):
    measured = uptake(*groups)
    (finding,) = uptake_findings(measured, samples.capability(), IDS)
    assert finding.id == found
    assert finding.severity is Severity.MEDIUM
    assert words in finding.title
    assert f"uptake {measured.share:.2f}" in finding.title
    assert finding.evidence["uptake"] == measured.share
    assert finding.example_ids == tuple(IDS[row] for row in measured.teachers())


def test_rows_that_explain_most_come_first(samples):
    (finding,) = uptake_findings(uptake((2, [7, 9]), (3, [9]), (3, [1])), samples.capability(), IDS)
    assert finding.example_ids == (IDS[9], IDS[1], IDS[7])


def test_nothing_taught_is_a_sentence_without_numbers_of_rows(samples):
    told = UptakeReport.of(uptake((8, [])), samples.capability(), IDS)
    assert told.sentence.startswith("None of the 8 wrong answers stands in a training row")
