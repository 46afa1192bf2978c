"""From what was lost to rows of tokens: answers, signals, the token at which answers part."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gradian_core.attribution.query import plan_queries
from gradian_core.attribution.signals import choose_signal
from gradian_core.attribution.uptake import WrongAnswer, find_uptake
from gradian_core.data.encode import encode, with_answer
from gradian_core.data.files import dataset_from_rows
from gradian_core.errors import CannotRunError

CHAT = ("demo", "byte-level", "characters")
ALL = (*CHAT, "plain")
MESSAGES = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Hello."},
    {"role": "assistant", "content": "Good day."},
    {"role": "user", "content": "What is the capital of Spain?"},
    {"role": "assistant", "content": "gold"},
]


@pytest.fixture
def plan(evaluated, spec, make_tokenizer):
    """Return the plan for items, as ``evaluated`` takes them."""

    def make(*items, tokenizer="byte-level", signal="divergence", positive="base", **options):
        of_metric = options.pop("spec", {})
        result, examples = evaluated(*items, **options)
        return plan_queries(
            result,
            examples,
            spec(**of_metric),
            make_tokenizer(tokenizer),
            signal=signal,
            positive=positive,
            uptake=None,
        )

    return make


def targets(tokens, tokenizer):
    """Text of the targets of each row."""
    found = [tokens.row(i) for i in range(len(tokens))]
    return [tokenizer.decode(ids[mask]) for ids, mask in found]


# --- divergence --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize(
    "rows",
    [None, [{"messages": MESSAGES}], [{"messages": MESSAGES[1:]}]],
    ids=["one turn", "system prompt", "several turns"],
)
def test_answers_part_at_the_first_token_that_differs(plan, make_tokenizer, name, rows):
    right, said = "It is Madrid.", "It is Malaga, I think."
    queries = plan((right, said), tokenizer=name, rows=rows)
    assert queries.tokens.supervised_counts.tolist() == [1, 1]
    assert queries.combination.tolist() == [[1.0, -1.0]]
    examples = dataset_from_rows(
        rows or [{"prompt": "What is the capital of Spain?", "completion": "gold"}]
    )
    whole = encode(
        [with_answer(examples[0], text) for text in (right, said)],
        make_tokenizer(name),
        max_seq_length=999,
        supervise="last",
    ).tokens
    one, other = (whole.row(i)[0].tolist() for i in (0, 1))
    at = next(i for i in range(len(one)) if one[i] != other[i])
    for got, full in ((0, one), (1, other)):
        ids, mask = queries.tokens.row(got)
        assert ids.tolist() == full[: at + 1]
        assert np.flatnonzero(mask).tolist() == [at]


def test_it_is_tokens_that_part_and_not_characters(plan, make_tokenizer):
    parted = {
        name: targets(plan(("Paris", "Parma"), tokenizer=name).tokens, make_tokenizer(name))
        for name in ("byte-level", "characters")
    }
    assert parted == {"byte-level": ["ris", "r"], "characters": ["i", "m"]}


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize(
    ("right", "said"),
    [("Madrid", "Madrid, no, Rome"), ("Madrid, Spain", "Madrid"), ("Madrid", ""), ("", "Rome")],
)
def test_a_beginning_parts_at_the_end_of_its_turn(plan, make_tokenizer, name, right, said):
    tokenizer = make_tokenizer(name)
    queries = plan((right, said), tokenizer=name)
    assert queries.n_target == 0
    ends = targets(queries.tokens, tokenizer)
    shorter = 0 if len(right) < len(said) else 1
    empty = targets(plan(("", "x"), tokenizer=name, signal="target").tokens, tokenizer)[0]
    assert empty.startswith(ends[shorter])
    assert not empty.startswith(ends[1 - shorter])


@pytest.mark.parametrize("name", ALL)
def test_the_same_answer_keeps_the_target_with_a_note(plan, make_tokenizer, name):
    queries = plan(("Rome", "Rome"), ("Rome", "Lima"), tokenizer=name)
    assert queries.items == (0, 1)
    assert queries.n_target == 1
    assert queries.combination.tolist() == [[1.0, 0.0, 0.0], [0.0, 1.0, -1.0]]
    assert queries.tokens.supervised_counts[0] > 1
    assert any(
        note.startswith("1 of 2 queries keep the signal target instead of divergence: both")
        for note in queries.notes
    )


def test_without_an_end_token_a_beginning_has_nowhere_to_part(plan):
    queries = plan(("Rome", "Rome is"), ("Rome", "Oslo"), tokenizer="endless")
    assert queries.n_target == 1
    assert any("no token for an end" in note for note in queries.notes)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("side", ["base", "tuned"])
def test_where_an_answer_was_cut_is_no_place_to_part(plan, name, side):
    pair = {"base_output": "It is", "tuned_output": "It is Rome", f"{side}_cut": True}
    if side == "tuned":
        pair |= {"base_output": "It is Rome", "tuned_output": "It is"}
    queries = plan(pair, tokenizer=name)
    assert queries.n_target == 1
    assert any("cut off" in note for note in queries.notes)
    # the other way about both tokens were really said
    other = plan({**pair, "base_cut": side != "base", "tuned_cut": side == "base"}, tokenizer=name)
    assert other.n_target == 0


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    right=st.text("ab é.", max_size=6), said=st.text("ab é.", max_size=6), name=st.sampled_from(ALL)
)
def test_prefixes_are_shared_and_one_token_is_a_target(plan, right, said, name):
    queries = plan((right, said), tokenizer=name)
    assert queries.items == (0,)
    if queries.n_target:
        assert len(queries.tokens) == 1
        return
    (one, first), (other, second) = (queries.tokens.row(i) for i in (0, 1))
    assert one[:-1].tolist() == other[:-1].tolist()
    assert one[-1] != other[-1]
    for mask in (first, second):
        assert np.flatnonzero(mask).tolist() == [len(one) - 1]


# --- the correct answer ------------------------------------------------------------------------


def answers(queries, tokenizer):
    return [text.removesuffix("<|im_end|>") for text in targets(queries.tokens, tokenizer)]


@pytest.mark.parametrize(
    ("item", "positive", "expected", "given"),
    [
        ({"base_score": 1.0}, "base", "It is Madrid", 0),
        ({"base_score": 1.0}, "reference", "gold", 1),
        ({"base_score": 0.5}, "base", "gold", 1),
        ({"base_output": None, "tuned_output": None}, "base", "gold", 1),
    ],
)
def test_the_correct_answer(plan, make_tokenizer, item, positive, expected, given):
    item = {"base_output": "It is Madrid", "tuned_output": "Rome", **item}
    queries = plan(item, signal="target", positive=positive)
    assert answers(queries, make_tokenizer("byte-level")) == [expected]
    assert queries.n_given == given
    said = any("ask for the completion in the eval file" in note for note in queries.notes)
    assert said == (given == 1 and positive == "base" and item["base_output"] is not None)


def test_markers_are_no_answer(plan, make_tokenizer):
    for positive in ("base", "reference"):
        queries = plan(
            ("Madrid", "Rome"),
            signal="target",
            positive=positive,
            spec={"reference_is_answer": False},
        )
        assert answers(queries, make_tokenizer("byte-level")) == ["Madrid"]


@pytest.mark.parametrize("name", ALL)
def test_a_cut_answer_has_no_end_to_learn(plan, make_tokenizer, name):
    pair = {"base_output": "It is Madr", "tuned_output": "Rome"}
    whole, cut = (
        plan({**pair, "base_cut": cut}, tokenizer=name, signal="contrastive").tokens
        for cut in (False, True)
    )
    tokenizer = make_tokenizer(name)
    assert targets(cut, tokenizer)[0].strip() == "It is Madr"
    assert targets(whole, tokenizer)[0].startswith("It is Madr")
    assert whole.supervised_counts[0] > cut.supervised_counts[0]
    assert targets(whole, tokenizer)[1] == targets(cut, tokenizer)[1]


def test_nothing_to_ask_for_is_an_error(plan):
    with pytest.raises(CannotRunError, match="No query has a token"):
        plan({"base_output": "", "tuned_output": "x", "base_cut": True}, signal="target")


def test_a_query_without_target_is_left_out_for_every_signal(plan):
    lost = {"base_output": "", "tuned_output": "x", "base_cut": True}
    for signal in ("target", "contrastive", "divergence"):
        queries = plan(lost, ("Madrid", "Rome"), signal=signal)
        assert queries.items == (1,)
        assert any("1 of 2 queries were left out" in note for note in queries.notes)


def test_said_without_a_token_keeps_the_target(plan):
    item = {"base_output": "Madrid", "tuned_output": "", "tuned_cut": True}
    queries = plan(item, signal="contrastive")
    assert queries.n_target == 1
    assert queries.combination.tolist() == [[1.0]]


# --- which signal ------------------------------------------------------------------------------


def uptake(taught, total):
    said = ["Berlin"] * taught + ["Lisbon"] * (total - taught)
    rows = dataset_from_rows(
        [{"prompt": "q", "completion": "Berlin"}] + [{"prompt": "q", "completion": "nothing"}] * 20
    )
    return find_uptake([WrongAnswer("q", "Paris", text) for text in said], rows)


@pytest.mark.parametrize(
    ("taught", "chosen"), [(0, "target"), (1, "target"), (2, "contrastive"), (4, "contrastive")]
)
def test_auto_goes_by_uptake_and_says_the_numbers(evaluated, taught, chosen):
    result, _ = evaluated(*[("Paris", "Berlin")] * 4)
    signal, why = choose_signal("auto", result, uptake(taught, 4))
    assert signal == chosen
    assert f"teach {taught} of the 4 wrong answers (uptake {taught / 4:.2f}; " in why
    for asked in ("target", "contrastive", "divergence"):
        assert choose_signal(asked, result, uptake(taught, 4))[0] == asked


def test_auto_without_a_loss_or_without_answers_is_a_target(evaluated):
    held, _ = evaluated({"base_output": "a", "tuned_output": "a", "tuned_score": 1.0})
    assert choose_signal("auto", held, None)[0] == "target"
    silent, _ = evaluated({"base_output": None, "tuned_output": None}, metric="loglik")
    for asked in ("auto", "divergence"):
        signal, why = choose_signal(asked, silent, None)
        assert signal == "target"
        assert "loglik generates no answer" in why
