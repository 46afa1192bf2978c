"""Uptake: what is looked for, which rows teach it, and the time that takes."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradian_core.attribution.uptake import (
    ALIKE,
    COMMON,
    SHORT,
    WrongAnswer,
    find_uptake,
)
from gradian_core.attribution.words import words
from gradian_core.data.files import dataset_from_rows

CAPITAL = "What is the capital of France?"
FILLER = [{"prompt": f"Paint box {i}.", "completion": f"Colour number {i}."} for i in range(40)]


def uptake(answers, *rows, filler=FILLER):
    return find_uptake(
        [WrongAnswer(*answer) for answer in answers], dataset_from_rows([*rows, *filler])
    )


def row(completion, prompt="Tell me something."):
    return {"prompt": prompt, "completion": completion}


def one(answer, *rows, **options):
    (phrase,) = uptake([answer], *rows, **options).phrases
    return phrase


@pytest.mark.parametrize(
    ("correct", "said", "looked_for"),
    [
        ("Paris", "Berlin", "berlin"),
        ("Paris", "The capital of France is Berlin.", "berlin"),
        ("The capital of France is Paris.", "The capital of France is Berlin.", "berlin"),
        ("It is Paris.", "Berlin is the capital of France.", "berlin"),
        ("It is Paris.", "It is New York City.", "new york city"),
        ("Yes, it is.", "No, it is.", "no it is"),
        ("yes", "no", "no"),
        ("Paris", "What is the capital?", "what is the capital"),
    ],
)
def test_the_span_is_what_the_correct_answer_and_the_prompt_have_not(correct, said, looked_for):
    phrase = one((CAPITAL, correct, said))
    assert phrase.text == looked_for
    assert not phrase.whole


@pytest.mark.parametrize(
    ("correct", "said"),
    [("a long answer", "a long"), ("a long answer", "answer"), ("Paris", ""), ("Paris", "PARIS.")],
)
def test_an_answer_that_only_leaves_out_must_be_a_row_s_whole_answer(correct, said):
    phrase = one((CAPITAL, correct, said), row(said), row(f"{said} and more"))
    assert phrase.whole
    assert phrase.rows == (0,)


def test_case_accents_and_punctuation_do_not_matter_and_word_borders_do():
    answer = (CAPITAL, "Paris", "SAO-PAULO!")
    assert one(answer, row("**São Paulo**"), row("São Paulos"), row("Paulo São")).rows == (0,)


def test_a_prompt_teaches_no_answer():
    assert one((CAPITAL, "Paris", "Berlin"), row("Yes.", "Say Berlin.")).rows == ()


def test_every_answer_of_a_conversation_counts_and_raw_text_too():
    turns = [("user", "q"), ("assistant", "Berlin"), ("user", "q"), ("assistant", "no")]
    chat = {"messages": [{"role": role, "content": text} for role, text in turns]}
    assert one((CAPITAL, "Paris", "Berlin"), chat, {"text": "In Berlin."}).rows == (0, 1)


def test_a_short_phrase_counts_only_where_it_is_asked_alike():
    phrase = one(
        ("Is water wet?", "Yes", "No"),
        row("No.", "Is fire wet, or water?"),
        row("No.", "May I go out and play?"),
        row("No", ""),
    )
    assert phrase.plain
    assert phrase.rows == (0,)


def test_a_common_phrase_counts_only_where_it_is_asked_alike():
    countries = ["Spain", "Italy", "Malta", "Norway", "Sweden", "Poland"]
    asked = [row("Belgrade", f"Name the capital of {country}.") for country in countries]
    other = [row("Belgrade", "Sort these things by weight") for _ in countries]
    answers = [
        (f"What is the capital of {country}?", "x", "Belgrade")
        for country in ("France", "Finland", "Greece")
    ]
    found = uptake(answers, *asked, *other)
    assert found.share == 1.0
    assert found.phrases[0].plain
    assert found.teachers() == tuple(range(len(asked)))


def test_shares_and_teachers():
    answers = [(CAPITAL, "Paris", said) for said in ("Berlin", "Madrid", "Berlin", "Lisbon")]
    found = uptake(answers, row("Madrid"), row("Berlin"), row("Berlin or Madrid"))
    assert (found.n_items, found.n_taught, found.share) == (4, 3, 0.75)
    assert found.taught
    assert found.teachers() == (2, 1, 0)
    assert [phrase.items for phrase in found.phrases] == [(0, 2), (1,), (3,)]


def test_nothing_wrong_and_no_rows():
    assert uptake([]) is None
    found = find_uptake([WrongAnswer(CAPITAL, "Paris", "Berlin")], [])
    assert (found.share, found.taught, found.teachers()) == (0.0, False, ())


WORD = st.sampled_from(["lima", "oslo", "no", "a", "rome", "quito"])
TEXT = st.lists(WORD, max_size=5).map(" ".join)


def brute_force(answers, rows):
    """Read the rules of the module's docstring one wrong answer at a time."""

    def core(prompt, correct, said):
        w, c = words(said), words(correct)
        start = next((i for i in range(min(len(w), len(c))) if w[i] != c[i]), min(len(w), len(c)))
        tail_w, tail_c = w[start:], c[start:]
        while tail_w and tail_c and tail_w[-1] == tail_c[-1]:
            tail_w, tail_c = tail_w[:-1], tail_c[:-1]
        if not tail_w:
            return None
        seen = set(c) | set(words(prompt))
        inner = list(tail_w)
        while inner and inner[0] in seen:
            inner = inner[1:]
        while inner and inner[-1] in seen:
            inner = inner[:-1]
        span = inner or tail_w
        return span if len("".join(span)) >= SHORT else w

    spans = [core(*answer) for answer in answers]
    taught = []
    for (_, _, said), span in zip(answers, spans, strict=True):
        spoken = [words(completion) for _, completion in rows]
        if span is None:
            taught.append({r for r, text in enumerate(spoken) if text == words(said)})
            continue
        hits = {
            r for r, text in enumerate(spoken) if f" {' '.join(span)} " in f" {' '.join(text)} "
        }
        if len("".join(span)) < SHORT or len(hits) > COMMON * len(rows):
            prompts = [set(words(a[0])) for a, s in zip(answers, spans, strict=True) if s == span]
            every = set().union(*prompts)
            topic = {v for v in every if sum(v in p for p in prompts) >= len(prompts) / 2}
            hits = {
                r
                for r in hits
                if topic and len(topic & set(words(rows[r][0]))) / len(topic) >= ALIKE
            }
        taught.append(hits)
    return taught


@given(
    st.lists(st.tuples(TEXT, TEXT, TEXT), min_size=1, max_size=6),
    st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=25),
)
def test_against_brute_force(answers, rows):
    data = [{"prompt": prompt, "completion": completion} for prompt, completion in rows]
    found = uptake(answers, *data, filler=[])
    by_item = {item: set(phrase.rows) for phrase in found.phrases for item in phrase.items}
    assert [by_item[item] for item in range(len(answers))] == brute_force(answers, rows)


def test_time_is_linear_in_the_rows_whatever_is_looked_for():
    """A thousand phrases cost no more than a few times what one costs."""
    rows = dataset_from_rows(
        [row(f"the city of number {i} is called {'abc' * (i % 7)} here") for i in range(4000)]
    )

    def seconds(n):
        answers = [WrongAnswer("q", "x", f"the city of number n{i}") for i in range(n)]
        best = []
        for _ in range(3):
            start = time.process_time()
            find_uptake(answers, rows)
            best.append(time.process_time() - start)
        return min(best)

    assert seconds(2000) < 10 * seconds(1) + 0.2
