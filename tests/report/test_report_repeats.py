"""Copies of rows, and eval items among them."""

from gradian_core.data.files import dataset_from_rows
from gradian_core.findings import Severity
from gradian_core.report.repeats import duplicate_rows, eval_items_in_training


def rows(*pairs):
    return list(dataset_from_rows([{"prompt": p, "completion": c} for p, c in pairs]))


def test_rows_that_are_all_different_are_no_finding():
    assert duplicate_rows([row.id for row in rows(("a", "b"), ("a", "c"))]) is None


def test_copies_are_counted():
    ids = [row.id for row in rows(("a", "b"), ("c", "d"), ("a", "b"), ("a", "b"))]
    found = duplicate_rows(ids)
    assert found.severity is Severity.MEDIUM
    assert found.evidence == {"n_copies": 2, "n_distinct": 2, "most_copies": 3}
    assert found.example_ids == (ids[0],)


def test_few_copies_among_many_rows_are_a_detail():
    pairs = [(str(i), "x") for i in range(30)]
    assert duplicate_rows([r.id for r in rows(*pairs, pairs[0])]).severity is Severity.LOW


def test_items_that_were_trained_on_are_told_with_what_they_share():
    training = rows(("Capital of  France?", "Paris"), ("Capital of Peru?", "Rome"), ("Hi", "Hi"))
    items = rows(
        ("capital of france?", " paris "), ("Capital of Peru?", "Lima"), ("Capital of Chad?", "x")
    )
    found = eval_items_in_training(items, training)
    assert found.evidence == {"n_same_answer": 1, "n_other_answer": 1, "eval_rows": [0, 1]}
    assert found.severity is Severity.MEDIUM


def test_a_prompt_with_another_answer_is_a_detail():
    found = eval_items_in_training(rows(("q", "right")), rows(("q", "wrong")))
    assert found.severity is Severity.LOW
    assert found.evidence["n_same_answer"] == 0


def test_items_of_their_own_are_no_finding():
    assert eval_items_in_training(rows(("q", "a")), rows(("r", "a"))) is None
