"""The house rules, case by case."""

import pytest
from gradian_check_example.emails_in_answers import emails_in_answers
from gradian_check_example.too_many_epochs import too_many_epochs

from gradian_core.audit.facts import NotAssessed
from gradian_core.audit.samples import rows, training


def answers(*texts):
    return rows(items=[{"prompt": f"Q{i}", "completion": text} for i, text in enumerate(texts)])


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("Write to ann@acme.com.", True),
        ("Write to ann.lee+news@mail.acme.co.uk!", True),
        ("Write to ann@example.com.", False),
        ("Write to ann@mail.example.org.", False),
        ("Write to ann@host.test.", False),
        ("ann@example.com, or ann@notexample.com", True),
        ("Meet me @ noon.", False),
        ("", False),
    ],
)
def test_addresses(answer, found):
    assert bool(list(emails_in_answers(examples=answers(answer, "Fine.")))) is found


def test_rows_are_named():
    (finding,) = emails_in_answers(examples=answers("Fine.", "a@b.com", "Fine.", "c@d.com"))
    assert [name.rpartition("-")[2] for name in finding.example_ids] == ["1", "3"]
    assert finding.title == "Email addresses in the answers of 2 of 4 rows"


@pytest.mark.parametrize(("epochs", "found"), [(3, False), (3.5, True), (1, False), (10, True)])
def test_epochs(epochs, found):
    facts = training(num_train_epochs=epochs)
    assert bool(list(too_many_epochs(training=facts))) is found


@pytest.mark.parametrize("epochs", [None, "three", True])
def test_unknown_epochs_are_not_assessed(epochs):
    with pytest.raises(NotAssessed):
        list(too_many_epochs(training=training(num_train_epochs=epochs)))
