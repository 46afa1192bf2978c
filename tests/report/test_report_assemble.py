import numpy as np
import pytest
from pydantic import ValidationError

from gradian_core.data.example import Example
from gradian_core.errors import CannotRunError


def test_parts_of_a_report(samples):
    report = samples.poisoned()
    assert report.n_examples == 12
    assert report.capability.n_flipped == 8
    assert report.capability.n_base_failures == 1
    margins = report.capability.margins
    assert (margins.n, margins.mean, margins.n_weak) == (8, 2.375, 2)
    assert [cluster.cluster for cluster in report.clusters] == ["0", "(none)", "100"]
    assert sum(cluster.share_of_negative for cluster in report.clusters) == pytest.approx(1.0)
    assert report.clusters[2].n_skipped == 1
    assert report.clusters[2].mean == pytest.approx(1.625 / 6)
    assert [row.row for row in report.skipped_rows] == [10]
    assert [finding.id for finding in report.findings] == ["data.duplicates", "config.overtraining"]


def test_ends_of_the_ranking(samples):
    top = samples.poisoned(top=3).top_examples
    # equal scores in the order of the file; the skipped row and zeros in neither list
    assert [example.row for example in top.most_harmful] == [0, 2, 3]
    assert [example.row for example in top.most_helpful] == [8, 9, 5]
    assert [e.row for e in samples.poisoned().top_examples.most_helpful] == [8, 9, 5, 11, 6]
    assert [e.row for e in samples.poisoned().top_examples.most_harmful] == [0, 2, 3, 1, 7, 4]
    first = top.most_harmful[0]
    assert first.predicted_loss_delta_if_removed == -8.0 / 11  # one row has no gradient
    assert first.prompt_excerpt == "What is the capital of France, 0?"
    assert first.answer_excerpt == "Berlin"
    assert first.text == "You are helpful.\nWhat is the capital of France, 0?\nBerlin"


def test_scores_of_every_row(samples):
    scores = samples.poisoned().scores
    assert len(scores) == 12
    np.testing.assert_array_equal(scores.predicted_loss_delta_if_removed, scores.score / 11)
    assert scores.cluster[11] == "(none)"


def test_raw_text_rows_have_a_prompt_excerpt(samples):
    examples = [Example(id=f"{'0' * 12}-{i}", row=i, text=f"once upon {i}") for i in range(2)]
    report = samples.poisoned(
        examples=examples,
        attribution=samples.attribution(examples, [-1.0, 1.0], labels=[0, 0]),
    )
    first = report.top_examples.most_harmful[0]
    assert (first.prompt_excerpt, first.answer_excerpt) == ("once upon 0", "")


def test_long_texts_are_cut_and_say_so(samples):
    report = samples.hostile()
    huge = next(e for e in report.top_examples.most_helpful if e.row == 8)
    assert len(huge.prompt_excerpt) <= 160
    assert huge.text.endswith("more characters]")
    assert len(huge.text) < 4100


def test_a_score_that_is_no_number_is_refused(samples):
    examples = [samples.example(i, "q", "a") for i in range(3)]
    lane = samples.attribution(examples, [1.0, np.nan, np.inf], labels=[0, 0, 0])
    with pytest.raises(
        CannotRunError, match="no finite score for 2 of 3 rows, the first of them row 1"
    ):
        samples.poisoned(examples=examples, attribution=lane)


def test_repeated_notes_appear_once(samples):
    assert samples.poisoned(notes=["a", "b", "a"]).notes == ("a", "b")


def test_audit_only(samples):
    report = samples.poisoned(capability=None, attribution=None)
    assert report.engine is None
    assert report.clusters == ()
    assert report.scores is None


def test_is_frozen(samples):
    with pytest.raises(ValidationError, match="frozen"):
        samples.poisoned().headline = "other"
