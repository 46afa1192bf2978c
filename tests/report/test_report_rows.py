import numpy as np
import pytest

from gradian_core.data.example import Example, Turn, example_id
from gradian_core.report.rows import chosen_rows
from gradian_core.report.scores import ScoreTable


def examples(n):
    made = []
    for i in range(n):
        turns = (Turn("user", f"question {i}"), Turn("assistant", f"answer {i}"))
        made.append(Example(id=example_id(i, turns=turns), row=i, turns=turns))
    return made


def table(rows):
    n = len(rows)
    scores = np.random.default_rng(7).normal(size=n)
    return ScoreTable(
        example_id=tuple(row.id for row in rows),
        row=np.arange(n),
        cluster=tuple(str(i % 3) for i in range(n)),
        score=scores,
        net=scores,
        predicted_loss_delta_if_removed=scores / n,
    )


@pytest.mark.parametrize("n", [1, 300])
def test_a_small_data_set_is_listed_whole_worst_first(n):
    rows = examples(n)
    found = chosen_rows(rows, table(rows), ())
    assert found.complete
    assert sorted(row.row for row in found.listed) == list(range(n))
    scores = [row.score for row in found.listed]
    assert scores == sorted(scores)


@pytest.mark.parametrize("n", [301, 5000])
def test_a_large_one_by_its_ends_what_findings_name_and_a_sample(n):
    rows = examples(n)
    scored = table(rows)
    order = np.argsort(scored.score)
    named = [rows[int(i)].id for i in order[150:160]]
    found = chosen_rows(rows, scored, named)
    listed = [row.row for row in found.listed]
    assert len(listed) == len(set(listed)) == 300
    assert not found.complete
    assert listed[:120] == order[:120].tolist()
    assert listed[-60:] == order[-60:].tolist()
    assert set(order[150:160].tolist()) <= set(listed)
    assert "120 most harmful" in found.how
    assert "10 more that a finding names" in found.how
    assert found == chosen_rows(rows, scored, named)


def test_without_scores_what_findings_name():
    rows = examples(400)
    found = chosen_rows(rows, None, [rows[9].id, rows[3].id, "0123456789ab-9", "x-99999", "eval"])
    assert [(row.row, row.score, row.cluster) for row in found.listed] == [
        (3, None, None),
        (9, None, None),
    ]
    assert chosen_rows(rows, None, ()).listed == ()


def test_long_rows_are_cut():
    turns = (Turn("user", "x" * 10_000), Turn("assistant", "y" * 10_000))
    rows = [Example(id=example_id(0, turns=turns), row=0, turns=turns)]
    (row,) = chosen_rows(rows, table(rows), ()).listed
    assert len(row.prompt) == len(row.answer) == 160
