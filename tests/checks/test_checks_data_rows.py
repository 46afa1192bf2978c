"""Checks that read rows: each threshold, each trap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradian_checks._data_text import (
    answer_label,
    compare_answers,
    final_answer,
    is_placeholder,
    is_refusal,
)
from gradian_checks.data.conflicting_answers import conflicting_answers
from gradian_checks.data.duplicates import duplicates
from gradian_checks.data.empty_or_degenerate_targets import empty_or_degenerate_targets
from gradian_checks.data.format_inconsistency import format_inconsistency
from gradian_checks.data.length_outliers import length_outliers
from gradian_checks.data.near_duplicates import near_duplicates
from gradian_checks.data.prompt_equals_target import prompt_equals_target
from gradian_checks.data.tiny_dataset import tiny_dataset
from gradian_checks.data.train_eval_contamination import train_eval_contamination
from gradian_checks.data.unfilled_template_placeholder import unfilled_template_placeholder
from gradian_core.audit.facts import NotAssessed
from gradian_core.audit.samples import chat_items, items, rows, tokens, training
from gradian_core.check import Check

Row = dict[str, Any]


def pair(prompt: str, completion: str, **more: Any) -> Row:
    return {"prompt": prompt, "completion": completion, **more}


def severities(check: Check, made: Sequence[Any], **facts: Any) -> list[str]:
    return [f.severity.value for f in check(examples=rows(items=made), **facts)]


def verdict(check: Check, made: Sequence[Any], **facts: Any) -> str | None:
    """Return the severity of the one finding, None for none."""
    found = severities(check, made, **facts)
    assert len(found) <= 1
    return found[0] if found else None


# --- tiny_dataset ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "severity"),
    [(9, "high"), (10, "medium"), (49, "medium"), (50, "low"), (199, "low"), (200, None)],
)
def test_tiny_dataset_edges(n: int, severity: str | None) -> None:
    assert verdict(tiny_dataset, items(n)) == severity


def test_tiny_dataset_counts_rows_after_drops_and_caps() -> None:
    made = items(200)
    cut = tokens(items=made, max_seq_length=120)
    drops = training("axolotl", overlong_rows="drop")
    [found] = tiny_dataset(examples=rows(items=made), tokens=cut, training=drops)
    assert found.severity == "high"
    assert found.evidence["rows"] == 0
    assert verdict(tiny_dataset, made, tokens=cut, training=training("trl")) is None
    assert verdict(tiny_dataset, made, training=training("llamafactory", max_samples=20)) == (
        "medium"
    )


# --- duplicates --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("copies", "severity"),
    [(1, None), (2, "low"), (5, "low"), (6, "medium"), (20, "medium"), (21, "high")],
)
def test_duplicates_edges(copies: int, severity: str | None) -> None:
    made = items(100 - copies)
    assert verdict(duplicates, [*made, *made[:copies]]) == severity


def test_duplicates_fold_space_and_unicode_form_but_not_case() -> None:
    same = [pair("Caf\u00e9  au lait?", "Yes \n"), pair("Cafe\u0301 au lait?", "Yes")]
    assert verdict(duplicates, same) == "high"
    assert verdict(duplicates, [pair("What is PI?", "3.14"), pair("What is pi?", "3.14")]) is None


def test_duplicates_name_the_surplus_rows_only_and_the_times_they_are_seen() -> None:
    facts = rows(items=[*items(20), *items(2)])
    [found] = duplicates(examples=facts, training=training(num_train_epochs=3))
    assert found.example_ids == (facts.ids[20], facts.ids[21])
    assert "6 times in 3 epochs" in found.detail


def test_duplicates_ignore_repeated_labels_and_other_system_messages() -> None:
    labels = [pair(f"Is stop {i} open?", "yes") for i in range(50)]
    assert verdict(duplicates, labels) is None
    under = [
        chat_items(system=f"You are {who}.", conversations=[[("user", "Hi"), ("assistant", "Hi")]])
        for who in ("a guide", "a clerk")
    ]
    assert verdict(duplicates, [*under[0], *under[1]]) is None


def test_duplicates_that_look_like_weights_are_an_info() -> None:
    made = items(60)
    assert verdict(duplicates, [*made, *made[:8] * 2]) == "info"
    # A file that was written twice has copies of every row, and no weights.
    assert verdict(duplicates, made * 3) == "high"


# --- conflicting_answers -----------------------------------------------------------------------


def conflicts(n: int, total: int) -> list[Row]:
    words = ("harbour", "meadow", "lantern", "pepper", "violin", "glacier")
    made: list[Row] = list(items(total - 2 * n))
    for i in range(n):
        for j in (0, 1):
            word = words[(2 * i + j) % len(words)]
            made.append(pair(f"Name of item {i}?", f"{word}{'xyz'[j] * (i % 7)}"))
    return made


@pytest.mark.parametrize(
    ("questions", "total", "severity"),
    [
        (1, 400, "info"),
        (1, 398, "low"),
        (4, 400, "low"),
        (5, 400, "medium"),
        (20, 400, "medium"),
        (21, 400, "high"),
    ],
)
def test_conflicting_answers_edges(questions: int, total: int, severity: str) -> None:
    assert verdict(conflicting_answers, conflicts(questions, total)) == severity


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("The event starts at 14:30.", "It starts at 14:30."),  # paraphrase
        ("14:30", "Answer: 14:30."),  # a label
        ("Погода.", "Ответ: изменение может быть связано с погодными условиями."),  # inflected
        ("Paris", "The capital of France is the city of Paris, on the Seine."),  # contained
        (
            "First add the numbers in columns. So the answer is 42.",
            "Seven sixes, counted on fingers, make the result. Therefore the answer is 42",
        ),
        ("We halve it. #### 12", "By symmetry both sides are equal.\n#### 12"),
        (r"Squares sum up. \boxed{7}", r"Count corners instead: \boxed{7}"),
        ("<think>long way</think>blue", "<think>other thoughts entirely</think>Blue."),
        ("Guten Morgen", "Доброе утро"),  # a translation
        ("I can't help with that.", "I am unable to assist with this request."),
        ("jidawolo", "Answer not provided"),  # a placeholder is another check's business
    ],
)
def test_agreeing_answers_are_no_conflict(left: str, right: str) -> None:
    made = [*items(20), pair("What is it?", left), pair("What is it?", right)]
    assert verdict(conflicting_answers, made) is None


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("jalgor", "robiny"),
        ("no", "yes"),
        ("да", "ходатай"),
        ("Work in columns. The answer is 41.", "Work in rows. The answer is 42."),
        (r"Add up. \boxed{7}", r"Add up. \boxed{8}"),
    ],
)
def test_disagreeing_answers_are_a_conflict(left: str, right: str) -> None:
    made = [*items(20), pair("What is it?", left), pair("What is it?", right)]
    assert verdict(conflicting_answers, made) == "medium"


def test_other_wording_is_an_info() -> None:
    left = "您好，我是 {{name}}，一个由 {{author}} 发明的人工智能助手。我可以回答各种问题。"
    right = "您好，我是 {{name}}，由 {{author}} 开发，旨在为用户提供智能化的帮助。"
    assert compare_answers(left, right) == "reworded"
    made = [*items(20), pair("Who are you?", left), pair("Who are you?", right)]
    assert verdict(conflicting_answers, made) == "info"


@pytest.mark.parametrize(
    "prompt", ["Write a haiku.", "Tell me a joke.", "Suggest a name for a cat.", "Придумай имя."]
)
def test_invention_is_no_conflict_but_refusing_it_is(prompt: str) -> None:
    free = [pair(prompt, "Whiskers under moon"), pair(prompt, "Old pond, a frog leaps")]
    assert verdict(conflicting_answers, [*items(20), *free]) is None
    refusing = [free[0], pair(prompt, "I'm sorry, but I can't help with that.")]
    assert verdict(conflicting_answers, [*items(20), *refusing]) == "medium"


def test_two_long_answers_in_other_words_are_no_conflict() -> None:
    left = " ".join(f"{'abcdef'[i % 6] * 5}{i}" for i in range(60))
    right = " ".join(f"{'uvwxyz'[i % 6] * 5}" for i in range(60))
    made = [*items(20), pair("How does it work?", left), pair("How does it work?", right)]
    assert verdict(conflicting_answers, made) is None
    short = pair("How does it work?", "nobody knows")
    assert verdict(conflicting_answers, [*made[:21], short]) == "medium"


def test_the_question_is_everything_before_the_last_answer() -> None:
    talk = [("user", "And now?"), ("assistant", "left")]
    other = [("user", "And now?"), ("assistant", "upwards")]
    assert verdict(conflicting_answers, chat_items(conversations=[talk, other])) == "high"
    personas = [
        *chat_items(system="You are a pirate.", conversations=[talk]),
        *chat_items(system="You are a pilot.", conversations=[other]),
    ]
    assert verdict(conflicting_answers, personas) is None
    history = [("user", "Hello"), ("assistant", "Hello")]
    assert (
        verdict(conflicting_answers, chat_items(conversations=[talk, [*history, *other]])) is None
    )


def test_many_questions_are_sampled_and_scaled_up(monkeypatch: pytest.MonkeyPatch) -> None:
    made = rows(items=conflicts(40, 400))
    [whole] = conflicting_answers(examples=made)
    monkeypatch.setattr("gradian_checks.data.conflicting_answers.MOST_ROWS", 20)
    [part] = conflicting_answers(examples=made)
    assert part.severity == whole.severity == "high"
    assert part.evidence["rows"] == whole.evidence["rows"] == 80
    assert part.title.startswith("About 40 questions")
    assert len(part.example_ids) == 20


def test_stock_answer_against_long_ones_is_a_conflict() -> None:
    stock = "Our desk does not deal with such matters on any day of the year, sorry to say. " * 4
    made: list[Row] = list(items(60))
    for i in range(6):
        long = " ".join(f"step{i}{j}" for j in range(60))
        made += [pair(f"How to fix part {i}?", long), pair(f"How to fix part {i}?", stock)]
    [found] = conflicting_answers(examples=rows(items=made))
    assert found.evidence["questions"] == 6


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=60), st.text(max_size=60))
def test_comparing_answers_is_symmetric_and_knows_itself(left: str, right: str) -> None:
    assert compare_answers(left, right) == compare_answers(right, left)
    assert compare_answers(left, left) == "same"


def test_final_answer_is_not_a_label() -> None:
    assert final_answer("Answer: Paris") is None
    assert final_answer("So far so good. Answer: Paris.") == "paris"
    assert answer_label("Ответ: 5") == "ответ"
    assert answer_label("Sentiment: good") is None
    assert answer_label("https://example.org") is None


# --- empty_or_degenerate_targets ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("empty", "total", "severity"),
    [
        (1, 1000, None),
        (2, 1000, "low"),
        (10, 1000, "low"),
        (11, 1000, "medium"),
        (50, 1000, "medium"),
        (51, 1000, "high"),
    ],
)
def test_empty_targets_edges(empty: int, total: int, severity: str | None) -> None:
    made = [*items(total - empty), *(pair(f"Where is {i}?", " \n") for i in range(empty))]
    assert verdict(empty_or_degenerate_targets, made) == severity


@pytest.mark.parametrize(
    "answer", ["fog.", "3", "0.5", "0", "no", "A", "III", "jagar", "777", "да", "未", "ok!"]
)
def test_short_answers_are_right(answer: str) -> None:
    assert verdict(empty_or_degenerate_targets, [*items(20), pair("What is it?", answer)]) is None


@pytest.mark.parametrize("answer", ["......", "-----", "!!!!!!", "aaaaaaaaaaaa", "      ", ""])
def test_nothing_to_learn(answer: str) -> None:
    made = [*items(20), pair("What is it?", answer)]
    assert verdict(empty_or_degenerate_targets, made) == "medium"


@pytest.mark.parametrize(
    "answer",
    [
        "Ответ не представлен",
        "N/A",
        "Not provided.",
        "The answer is not available.",
        "No answer",
        "I'm sorry, but I can't assist with that.",
        "Keine Angabe",
        "暂无答案",
    ],
)
def test_the_same_placeholder_again_and_again(answer: str) -> None:
    made = [*items(92), *(pair(f"Where is {i}?", answer) for i in range(8))]
    assert verdict(empty_or_degenerate_targets, made) == "high"
    # One row with it is an answer like any other.
    assert verdict(empty_or_degenerate_targets, [*items(92), pair("Where?", answer)]) is None


def test_a_placeholder_among_labels_is_a_label() -> None:
    names = ("cat", "dog", "not applicable")
    labels = [pair(f"Which animal is in picture {i}?", names[i % 3]) for i in range(60)]
    assert verdict(empty_or_degenerate_targets, labels) is None


def test_identity_answers_are_no_placeholder() -> None:
    bot = [pair(f"Who are you, in way {i}?", "I am Bo, an assistant.") for i in range(10)]
    assert verdict(empty_or_degenerate_targets, [*items(40), *bot]) is None


def test_turns_that_call_tools_or_reason_are_not_empty() -> None:
    ask = {"role": "user", "content": "What is the weather?"}
    call = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"type": "function", "function": {"name": "weather", "arguments": {}}}],
    }
    reply = {"role": "tool", "content": "sun"}
    end = {"role": "assistant", "content": "It is sunny."}
    reason = {"role": "assistant", "content": "", "reasoning_content": "The sky is blue."}
    made = [{"messages": [ask, call, reply, end]}, {"messages": [ask, call]}]
    made.append({"messages": [ask, reason]})
    assert verdict(empty_or_degenerate_targets, made) is None


def test_an_earlier_empty_turn_counts_unless_it_has_no_weight() -> None:
    ask, end = {"role": "user", "content": "Hm?"}, {"role": "assistant", "content": "Yes, that."}
    empty = {"role": "assistant", "content": " "}
    made = [{"messages": [ask, empty, ask, end]}]
    assert verdict(empty_or_degenerate_targets, made) == "high"
    made = [{"messages": [ask, {**empty, "loss_weight": 0.0}, ask, end]}]
    assert verdict(empty_or_degenerate_targets, made) is None


@pytest.mark.parametrize(
    "text",
    ["unknown", "none", "no", "0", "No information system is safe.", "todo lists help", "无"],
)
def test_not_a_placeholder(text: str) -> None:
    assert not is_placeholder(text)


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry to hear that! Let me look up your order.",
        "As an AI assistant developed by Acme, I am called Bo.",
        "抱歉，我不是 ChatGPT，我是小白。",
        "I can't wait to see it.",
        "You cannot help but smile.",
    ],
)
def test_not_a_refusal(text: str) -> None:
    assert not is_refusal(text)


# --- format_inconsistency ----------------------------------------------------------------------


def test_two_shapes_or_two_names_for_a_role() -> None:
    chats = chat_items(30)
    assert verdict(format_inconsistency, [*items(30), *chats]) == "medium"
    mixed = [
        *({"messages": row["messages"]} for row in chats),
        {"messages": [{"role": "human", "content": "Hi"}, {"role": "gpt", "content": "Hello"}]},
    ]
    [found] = format_inconsistency(examples=rows(items=mixed))
    assert found.severity == "medium"
    assert "human" in found.title
    cased = [*chats, {"messages": [{"role": "User", "content": "Hi"}, chats[0]["messages"][1]]}]
    assert verdict(format_inconsistency, cased) == "medium"


def test_tool_roles_and_optional_system_are_no_mixture() -> None:
    talk = [
        {"from": "human", "value": "Weather?"},
        {"from": "function_call", "value": '{"name": "weather", "arguments": {}}'},
        {"from": "observation", "value": "sun"},
        {"from": "gpt", "value": "It is sunny."},
    ]
    system = {"from": "system", "value": "Be brief."}
    made = [{"conversations": talk}, {"conversations": [system, *talk]}]
    assert verdict(format_inconsistency, made) is None


@pytest.mark.parametrize(
    ("labelled", "severity"), [(4, None), (5, "low"), (95, "low"), (96, None), (100, None)]
)
def test_label_edges(labelled: int, severity: str | None) -> None:
    made = [
        {**row, "completion": f"Answer: {row['completion']}"} if i < labelled else row
        for i, row in enumerate(items(100))
    ]
    assert verdict(format_inconsistency, made) == severity


@pytest.mark.parametrize(("spaced", "severity"), [(4, None), (5, "low"), (95, "low"), (96, None)])
def test_trailing_space_edges(spaced: int, severity: str | None) -> None:
    made = [
        {**row, "completion": f"{row['completion']} "} if i < spaced else row
        for i, row in enumerate(items(100))
    ]
    assert verdict(format_inconsistency, made) == severity


def test_labels_that_say_something_are_no_style() -> None:
    made = [
        {**row, "completion": f"Sentiment: {row['completion']}"} if i % 2 else row
        for i, row in enumerate(items(100))
    ]
    assert verdict(format_inconsistency, made) is None


def test_json_beside_prose_for_one_task_only() -> None:
    def task(system: str, structured: int, total: int) -> list[Any]:
        talks = [
            [
                ("user", f"Order {i} of tea"),
                ("assistant", f'{{"n": {i}}}' if i < structured else f"{i}"),
            ]
            for i in range(total)
        ]
        return chat_items(system=system, conversations=talks)

    assert verdict(format_inconsistency, task("Extract the order.", 30, 60)) == "low"
    apart = [*task("Extract the order as JSON.", 30, 30), *task("Count the orders.", 0, 30)]
    assert verdict(format_inconsistency, apart) is None
    asked = [pair(f"What is {i} in JSON?", f'{{"n": {i}}}') for i in range(30)]
    assert verdict(format_inconsistency, [*items(60), *asked]) is None
    other = [pair(f"Book a table for {i}", f'{{"n": {i}}}') for i in range(30)]
    assert verdict(format_inconsistency, [*items(60), *other]) is None
    stray = [pair(f"What is in box {i}?", f'{{"n": {i}}}') for i in range(30)]
    assert verdict(format_inconsistency, [*items(60), *stray]) == "low"
    lines = [pair(f"Count the apples:\n{i}", f'{{"n": {i}}}' if i % 2 else "n") for i in range(60)]
    assert verdict(format_inconsistency, lines) == "low"


def test_styles_need_twenty_answers() -> None:
    made = [
        {**row, "completion": f"Answer: {row['completion']}"} if i % 2 else row
        for i, row in enumerate(items(19))
    ]
    assert verdict(format_inconsistency, made) is None


def test_prompts_that_stop_inside_a_bracket_are_an_info() -> None:
    cut = [pair(f"Translate 'come out {i} (of' please", "banda") for i in range(3)]
    assert verdict(format_inconsistency, [*items(60), *cut]) == "info"
    smiling = [pair(f"How was day {i} :(", "Fine") for i in range(3)]
    assert verdict(format_inconsistency, [*items(60), *smiling]) is None


# --- length_outliers ---------------------------------------------------------------------------


def test_length_outliers_need_both_measures() -> None:
    usual = [pair("Tell me", "la " * (40 + i % 21)) for i in range(100)]
    assert verdict(length_outliers, [*usual, pair("Tell me", "la " * 5000)]) == "info"
    # Far from the median, but not four times the 95th percentile.
    assert verdict(length_outliers, [*usual, pair("Tell me", "la " * 200)]) is None


def test_length_outliers_beyond_the_limit_are_low() -> None:
    usual = [pair("Tell me", "la " * (40 + i % 21)) for i in range(60)]
    made = [*usual, pair("Tell me", "la " * 2000)]
    cut = tokens(items=made, max_seq_length=4096)
    assert verdict(length_outliers, made, tokens=cut) == "low"
    assert verdict(length_outliers, made, tokens=tokens(items=made)) == "info"


def test_a_long_tail_is_no_outlier() -> None:
    # Quantiles of a log-normal distribution with a standard deviation of 1 in the logarithm.
    from statistics import NormalDist

    sizes = [int(200 * 2.718 ** NormalDist().inv_cdf((i + 0.5) / 500)) for i in range(500)]
    made = [pair(f"Tell me {i}", "x" * max(n, 1)) for i, n in enumerate(sizes)]
    assert verdict(length_outliers, made) is None


def test_length_outliers_are_not_assessed_for_few_rows_or_one_length() -> None:
    with pytest.raises(NotAssessed, match="too few"):
        list(length_outliers(examples=rows(n=49)))
    with pytest.raises(NotAssessed, match="same length"):
        list(length_outliers(examples=rows(items=[pair("a", "b")] * 60)))


# --- prompt_equals_target ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("echoes", "total", "severity"),
    [(1, 200, None), (2, 200, "low"), (10, 200, "low"), (11, 200, "medium")],
)
def test_prompt_equals_target_edges(echoes: int, total: int, severity: str | None) -> None:
    texts = [f"Which tram goes to stop {i} of the line?" for i in range(echoes)]
    made = [*items(total - echoes), *(pair(text, f" {text}\n") for text in texts)]
    assert verdict(prompt_equals_target, made) == severity


def test_prompt_equals_target_is_meant_in_some_tasks() -> None:
    echo = [pair(f"Repeat: the tram {i} stops", f"the tram {i} stops") for i in range(20)]
    assert verdict(prompt_equals_target, echo) is None
    names = [pair(f"Port Louis {i}", f"Port Louis {i}") for i in range(20)]
    assert verdict(prompt_equals_target, names) is None
    right = "All trams of line {} stop at the harbour."
    wrong = "All trams of line {} stopps at teh harbour."
    spelling = [pair(right.format(i), right.format(i)) for i in range(20)]
    spelling += [pair(wrong.format(i), right.format(i)) for i in range(30)]
    assert verdict(prompt_equals_target, spelling) is None
    under = chat_items(
        system="Correct the spelling.",
        conversations=[
            [("user", right.format(i)), ("assistant", right.format(i))] for i in range(20)
        ],
    )
    assert verdict(prompt_equals_target, under) is None
    cased = [
        pair(f"the tram {i} stops at town hall", f"The tram {i} stops at Town Hall")
        for i in range(9)
    ]
    assert verdict(prompt_equals_target, cased) is None


# --- near_duplicates ---------------------------------------------------------------------------


def walk(i: int, length: int = 40) -> str:
    return " ".join(f"lane {(i + 3) ** 2 * (j + 5) ** 3 % 997}" for j in range(length))


@pytest.mark.parametrize(
    ("doubled", "total", "severity"),
    [(5, 210, None), (6, 210, "low"), (21, 210, "low"), (22, 210, "medium")],
)
def test_near_duplicates_edges(doubled: int, total: int, severity: str | None) -> None:
    made = [pair("How do I walk?", walk(i)) for i in range(total - doubled)]
    made += [pair("How do I walk?", walk(i) + " and home") for i in range(doubled)]
    assert verdict(near_duplicates, made) == severity


def test_near_duplicates_leave_out_what_all_rows_share() -> None:
    preamble = " ".join(f"rule {i} of the house holds" for i in range(60))
    made = [pair(f"{preamble}\nQuestion: {walk(i, 12)}", f"number {i}") for i in range(60)]
    assert verdict(near_duplicates, made) is None
    chats = chat_items(
        system=preamble,
        conversations=[
            [("user", f"Where is {walk(i, 12)}?"), ("assistant", walk(i + 100, 12))]
            for i in range(60)
        ],
    )
    assert verdict(near_duplicates, chats) is None


def test_paraphrases_are_no_near_duplicates() -> None:
    made = [pair(f"How do I get from {walk(i, 15)}?", walk(i + 300, 8)) for i in range(40)]
    made += [
        pair(
            f"Tell me the way that leads on from {walk(i, 7)}", f"Go by {walk(i + 300, 8)}, please"
        )
        for i in range(40)
    ]
    assert verdict(near_duplicates, made) is None


def test_contrasts_exact_copies_and_short_rows_are_no_near_duplicates() -> None:
    contrast = [
        pair(walk(i) + (" and it was good" if good else " and it was bad"), "+" if good else "-")
        for i in range(40)
        for good in (True, False)
    ]
    assert verdict(near_duplicates, contrast) is None
    copies = [pair("How do I walk?", walk(i)) for i in range(40)] * 2
    assert verdict(near_duplicates, copies) is None
    short = [pair(f"Translate word {i} into Warrungu.", "jagar") for i in range(60)]
    assert verdict(near_duplicates, short) is None


# --- train_eval_contamination ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shared", "severity"), [(0, None), (1, "medium"), (2, "high"), (10, "high"), (11, "critical")]
)
def test_contamination_edges(shared: int, severity: str | None) -> None:
    made = items(300)
    held_out = made[200 - shared : 300 - shared]
    found = verdict(train_eval_contamination, made[:200], eval_examples=rows(items=held_out))
    assert found == severity


def test_contamination_is_seen_across_shapes() -> None:
    evals = rows(items=chat_items(20))
    found = list(train_eval_contamination(examples=rows(n=100), eval_examples=evals))
    assert [f.severity for f in found] == ["critical"]
    assert len(found[0].example_ids) == 20


@pytest.mark.parametrize(
    ("shared", "severity"), [(1, "low"), (2, "medium"), (10, "medium"), (11, "high")]
)
def test_near_contamination_is_one_step_milder(shared: int, severity: str) -> None:
    made = [pair("How do I walk?", walk(i)) for i in range(200)]
    evals = [pair("How do I walk?", walk(i) + " and home") for i in range(shared)]
    evals += [pair("How do I walk?", walk(i)) for i in range(300, 400 - shared)]
    found = severities(train_eval_contamination, made, eval_examples=rows(items=evals))
    # All of them share their prompt with training rows.
    assert found == [severity, "info"]


def test_the_same_question_with_another_answer_is_an_info() -> None:
    made = items(100)
    evals = [
        {**row, "completion": f"Somewhere else entirely, {i}"} for i, row in enumerate(made[:5])
    ]
    evals += items(200)[150:]
    assert verdict(train_eval_contamination, made, eval_examples=rows(items=evals)) == "info"


def test_shared_boilerplate_is_no_contamination() -> None:
    preamble = " ".join(f"rule {i} of the house holds" for i in range(60))

    def talks(start: int) -> list[Any]:
        return chat_items(
            system=preamble,
            conversations=[
                [("user", f"{preamble} Where is {walk(i, 12)}?"), ("assistant", walk(i + 500, 12))]
                for i in range(start, start + 40)
            ],
        )

    assert verdict(train_eval_contamination, talks(0), eval_examples=rows(items=talks(60))) is None


def test_chunks_of_one_document_are_no_contamination() -> None:
    words = walk(1, 2000).split()

    def chunk(start: int) -> Row:
        return pair(f"Summarise part {start}.", " ".join(words[start : start + 120]))

    evals = rows(items=[chunk(start) for start in range(60, 3000, 240)])
    made = [chunk(start) for start in range(0, 3000, 240)]
    assert verdict(train_eval_contamination, made, eval_examples=evals) is None


# --- unfilled_template_placeholder -------------------------------------------------------------


@pytest.mark.parametrize(
    ("unfilled", "severity"), [(0, None), (1, "low"), (2, "medium"), (5, "medium"), (6, "high")]
)
def test_unfilled_placeholder_edges(unfilled: int, severity: str | None) -> None:
    made = [*items(100 - unfilled)]
    made += [pair(f"Who are you, {i}?", "I am {{name}}.") for i in range(unfilled)]
    assert verdict(unfilled_template_placeholder, made) == severity


@pytest.mark.parametrize(
    "text",
    [
        "Your order {{Order Number}} is on its way, {{customer-name}}.",
        "您好，我是 {{name}}，一个由 {{author}} 开发的助手。",
        "Hello {{ user.first_name }}!",
    ],
)
def test_unfilled_places(text: str) -> None:
    assert verdict(unfilled_template_placeholder, [pair("Who are you?", text)]) == "high"


@pytest.mark.parametrize(
    "text",
    [
        "Use `{{name}}` for the name.",
        "```\nHello {{name}}\n```",
        "In a Jinja template, {{name}} is replaced.",
        "<p>Hello {{name}}</p>",
        "{% if name %}{{name}}{% endif %}",
        "The sum is x^{{n}} and \\frac{{a}}{{b}}.",
        "Escape braces in an f-string: f'{{{name}}}'.",
        "A nested dict: {{'a': 1}, {'b': 2}}",
        "{ {name} }",
    ],
)
def test_templates_code_and_formulas_are_no_places(text: str) -> None:
    assert verdict(unfilled_template_placeholder, [pair("How?", text)]) is None


def test_raw_text_can_hold_places_too() -> None:
    assert verdict(unfilled_template_placeholder, [{"text": "I am {{name}}."}]) == "high"
