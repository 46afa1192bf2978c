"""Checks that read tokens: each threshold, each trap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradian_checks._data_tool import long_rows, loss_on
from gradian_checks.data.added_tokens_untrained import added_tokens_untrained
from gradian_checks.data.completion_truncated import completion_truncated
from gradian_checks.data.loss_mask_coverage import loss_mask_coverage
from gradian_checks.data.missing_eos import missing_eos
from gradian_checks.data.no_supervised_tokens import no_supervised_tokens
from gradian_checks.data.rows_dropped import rows_dropped
from gradian_checks.data.truncated import truncated
from gradian_core.audit.facts import NotAssessed, TokenFacts
from gradian_core.audit.samples import (
    CHATML,
    adapter,
    chat_items,
    chat_rows,
    items,
    rows,
    tokenizer,
    tokens,
    training,
)
from gradian_core.check import Check
from gradian_core.data.tokens import Supervision, TokenizedRows
from gradian_core.runs.artifact import TrainingConfig, Value

Size = tuple[int, int]


def made(
    sizes: Sequence[Size], limit: int | None = None, problems: Mapping[int, str] | None = None
) -> TokenFacts:
    """Return rows of ``(prompt, answer)`` tokens, cut on the right."""
    cap = limit or 1 << 30
    kept = [min(p + a, cap) for p, a in sizes]
    answers = [max(0, k - p) for (p, _), k in zip(sizes, kept, strict=True)]
    mask = [[False] * (k - a) + [True] * a for k, a in zip(kept, answers, strict=True)]
    facts = TokenizedRows(
        ids=tuple(f"{i:012x}-{i}" for i in range(len(sizes))),
        rows=np.arange(len(sizes)),
        input_ids=np.ones(sum(kept), np.int32),
        supervised=np.array([m for row in mask for m in row], np.bool_),
        offsets=np.concatenate(([0], np.cumsum(kept))).astype(np.int64),
        full_lengths=np.array([p + a for p, a in sizes], np.int32),
        full_supervised=np.array([a for _, a in sizes], np.int32),
        supervision=np.full(len(sizes), Supervision.PREFIX, np.uint8),
    )
    return TokenFacts(
        tokens=facts,
        max_seq_length=limit,
        limit_source="sample",
        problems=problems or {},
        ends=np.where(facts.full_supervised > 0, 1, -1).astype(np.int32),
        answer_cut=np.array([a < s[1] for a, s in zip(answers, sizes, strict=True)]),
    )


def verdict(check: Check, **facts: Any) -> str | None:
    found = [f.severity.value for f in check(**facts)]
    assert len(found) <= 1
    return found[0] if found else None


def drop() -> TrainingConfig:
    return training("axolotl", overlong_rows=Value("drop", "default of axolotl", "default"))


# --- completion_truncated and truncated --------------------------------------------------------


@pytest.mark.parametrize(
    ("cut", "severity"),
    [
        (0, None),
        (1, "low"),
        (40, "low"),
        (41, "medium"),
        (160, "medium"),
        (161, "high"),
        (400, "high"),
        (401, "critical"),
        (800, "critical"),
    ],
)
def test_completion_truncated_edges(cut: int, severity: str | None) -> None:
    sizes = [(50, 60)] * cut + [(50, 50)] * (800 - cut)
    assert verdict(completion_truncated, tokens=made(sizes, 100)) == severity


def test_completion_truncated_says_what_is_lost_and_needed() -> None:
    [found] = completion_truncated(tokens=made([(50, 100), (90, 60), (10, 10)], 100))
    # The row that loses the larger part of its answer comes first.
    assert found.example_ids == ("000000000001-1", "000000000000-0")
    assert found.evidence["longest"] == 150
    assert found.evidence["lost_tokens"] == 100


def test_tools_that_drop_or_split_cut_nothing() -> None:
    facts = made([(50, 100)] * 10, 100)
    for rule in ("drop", "split"):
        run = training("axolotl", overlong_rows=rule)
        assert verdict(completion_truncated, tokens=facts, training=run) is None
        assert verdict(truncated, tokens=facts, training=run) is None


def test_length_is_not_assessed_without_a_limit() -> None:
    for check in (completion_truncated, truncated):
        with pytest.raises(NotAssessed, match="No sequence length"):
            list(check(tokens=made([(5, 5)])))


def test_answers_without_a_full_stop_are_not_cut() -> None:
    answers = ("SELECT 1", "def f(): return", "positive", "東京", "fog")
    facts = tokens(items=[{"prompt": "?", "completion": a} for a in answers], max_seq_length=512)
    assert verdict(completion_truncated, tokens=facts) is None


@pytest.mark.parametrize(
    ("cut", "severity"), [(1, None), (2, "low"), (10, "low"), (11, "medium"), (100, "medium")]
)
def test_truncated_edges(cut: int, severity: str | None) -> None:
    left = training("mine", overlong_rows="cut_left")
    sizes = [(80, 60)] * cut + [(50, 50)] * (100 - cut)
    assert verdict(truncated, tokens=made(sizes, 100), training=left) == severity
    assert verdict(completion_truncated, tokens=made(sizes, 100), training=left) is None


def test_one_cause_one_finding() -> None:
    facts = made([(50, 100)] * 10, 100)
    assert verdict(completion_truncated, tokens=facts) == "critical"
    assert verdict(truncated, tokens=facts) is None


@given(
    st.lists(st.tuples(st.integers(1, 400), st.integers(0, 400)), min_size=1, max_size=20),
    st.integers(1, 500),
)
def test_proportional_cut_is_the_tools_own(sizes: list[Size], limit: int) -> None:
    def kept(source: int, target: int) -> int:
        # LLaMA-Factory, infer_seqlen
        if target * 2 < limit:
            room = limit
        elif source * 2 < limit:
            room = limit - source
        else:
            room = int(limit * (target / (source + target)))
        return min(room, target)

    run = training("llamafactory", overlong_rows="cut_both")
    left = long_rows(made(sizes, limit), run).targets
    assert left.tolist() == [kept(p, a) for p, a in sizes]


@given(
    st.lists(st.tuples(st.integers(1, 99), st.integers(0, 99)), min_size=1, max_size=20),
    st.integers(1, 150),
    st.sampled_from(["cut_right", "cut_left", "cut_both", "drop", "split"]),
)
def test_every_row_has_one_fate(sizes: list[Size], limit: int, rule: str) -> None:
    long = long_rows(made(sizes, limit), training("mine", overlong_rows=rule))
    fates = long.dropped.astype(int) + long.answer_cut + long.prompt_cut
    assert (fates <= 1).all()
    assert (fates[~long.over] == 0).all()
    assert (long.targets <= [a for _, a in sizes]).all()


# --- no_supervised_tokens ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("empty", "severity"),
    [
        (0, None),
        (1, "low"),
        (40, "low"),
        (41, "medium"),
        (160, "medium"),
        (161, "high"),
        (266, "high"),
        (267, "critical"),
    ],
)
def test_no_supervised_tokens_edges(empty: int, severity: str | None) -> None:
    sizes = [(120, 20)] * empty + [(50, 20)] * (800 - empty)
    assert verdict(no_supervised_tokens, tokens=made(sizes, 100)) == severity


def test_rows_without_targets_are_told_by_reason() -> None:
    problems = {1: "there is no assistant turn", 2: "the chat template refuses it: no system"}
    facts = made([(120, 20), (50, 0), (50, 0), (50, 0), (20, 20)], 100, problems)
    [found] = no_supervised_tokens(tokens=facts)
    # What the template refuses is another finding.
    assert found.evidence["rows"] == 3
    assert found.evidence["reasons"] == {
        "the prompt fills the sequence length": 1,
        "there is no assistant turn": 1,
        "the answer is empty": 1,
    }


def test_dropped_rows_are_not_counted_twice() -> None:
    facts = made([(120, 20)] * 10 + [(20, 20)] * 10, 100)
    assert verdict(no_supervised_tokens, tokens=facts, training=drop()) is None
    assert verdict(rows_dropped, tokens=facts, training=drop()) == "medium"


def test_preference_data_and_loss_on_prompts_are_not_assessed() -> None:
    facts = made([(120, 20)], 100)
    with pytest.raises(NotAssessed, match="dpo"):
        list(no_supervised_tokens(tokens=facts, training=training("trl", stage="dpo")))
    with pytest.raises(NotAssessed, match="prompts as well"):
        list(no_supervised_tokens(tokens=facts, training=training(train_on_prompt=True)))
    # trl's default for messages is not a choice of the run: rows without an answer still matter.
    assert verdict(no_supervised_tokens, tokens=facts, training=training("trl")) == "critical"


@pytest.mark.parametrize(
    ("version", "severity"), [("0.24.0", "critical"), ("1.0.9", "critical"), ("1.1.0", None)]
)
def test_assistant_only_loss_without_markers(version: str, severity: str | None) -> None:
    run = training("trl", version, assistant_only_loss=True)
    given_facts = {"tokens": made([(50, 20)] * 9), "training": run, "tokenizer": tokenizer()}
    assert verdict(no_supervised_tokens, **given_facts) == severity
    marked = CHATML.replace("m.content", "m.content + ''") + "{% generation %}{% endgeneration %}"
    given_facts["tokenizer"] = replace(tokenizer(), chat_template=marked)
    assert verdict(no_supervised_tokens, **given_facts) is None


def test_assistant_only_loss_is_not_judged_without_a_version() -> None:
    run = training("trl", assistant_only_loss=True)
    facts = {"tokens": made([(50, 20)] * 9), "training": run, "tokenizer": tokenizer()}
    assert verdict(no_supervised_tokens, **facts) is None


def test_tools_that_leave_out_such_rows_are_named() -> None:
    facts = made([(120, 20), (20, 20)], 100)
    for run, left_out in (
        (training("trl", "1.9.0"), True),
        (training("unsloth"), True),
        (training("trl", "1.8.0"), False),
        (None, False),
    ):
        [found] = no_supervised_tokens(tokens=facts, training=run)
        assert ("leaves them out" in found.detail) is left_out


def test_eval_rows_without_targets() -> None:
    facts = {"tokens": made([(50, 20)]), "eval_tokens": made([(50, 0), (50, 20)])}
    [found] = no_supervised_tokens(**facts)
    assert found.severity == "medium"
    assert "eval" in found.title


# --- missing_eos -------------------------------------------------------------------------------

OPEN = (
    "{% for m in messages %}{{ m.role + ': ' + m.content + '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ 'assistant: ' }}{% endif %}"
)


@pytest.mark.parametrize(
    ("open_ended", "severity"),
    [(0, None), (5, None), (6, "medium"), (50, "medium"), (51, "high"), (100, "high")],
)
def test_missing_eos_edges(open_ended: int, severity: str | None) -> None:
    made_tokenizer = tokenizer()
    facts = tokens(items=chat_items(100), tokenizer=made_tokenizer)
    ends = facts.ends.copy()
    ends[:open_ended] = 0
    facts = replace(facts, ends=ends)
    assert verdict(missing_eos, tokens=facts, tokenizer=made_tokenizer) == severity


def test_template_that_closes_no_turn() -> None:
    made_tokenizer = tokenizer(chat_template=OPEN)
    facts = tokens(items=chat_items(20), tokenizer=made_tokenizer)
    assert verdict(missing_eos, tokens=facts, tokenizer=made_tokenizer) == "high"


def test_white_space_after_the_end_token_is_looked_past() -> None:
    marked = (
        "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' }}{% if m.role == 'assistant' %}"
        "{% generation %}{{ m.content + '<|im_end|>\n' }}{% endgeneration %}{% else %}"
        "{{ m.content + '<|im_end|>\n' }}{% endif %}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
    )
    made_tokenizer = tokenizer(chat_template=marked)
    facts = tokens(items=chat_items(20), tokenizer=made_tokenizer)
    assert (facts.tokens.supervision == Supervision.MARKERS).all()
    newline = int(facts.ends[0])
    assert made_tokenizer.tokenizer.decode([newline]) == "\n"
    assert verdict(missing_eos, tokens=facts, tokenizer=made_tokenizer) is None


def test_end_of_turn_that_only_the_generation_config_names() -> None:
    gemma = CHATML.replace("<|im_end|>", "<end_of_turn>").replace("<|im_start|>", "<start_of_turn>")
    made_tokenizer = tokenizer(
        chat_template=gemma, eos="<eos>", extra_tokens=["<start_of_turn>", "<end_of_turn>"]
    )
    facts = tokens(items=chat_items(20), tokenizer=made_tokenizer)
    assert verdict(missing_eos, tokens=facts, tokenizer=made_tokenizer) is None


@pytest.mark.parametrize(
    ("run", "severity"),
    [
        (training("trl", "0.15.2"), "high"),
        (training("trl", "0.16.0"), None),
        (training("transformers"), "high"),
        (training("axolotl"), None),
        (training("llamafactory"), None),
        (training("mlx-lm"), None),
        (training("torchtune"), None),
    ],
)
@pytest.mark.parametrize("shape", ["text", "pair"])
def test_plain_rows_end_as_the_tool_ends_them(
    run: TrainingConfig, severity: str | None, shape: str
) -> None:
    made_tokenizer = tokenizer(chat_template=None)
    made_rows = items(20) if shape == "pair" else [{"text": f"Stop {i}."} for i in range(20)]
    facts = tokens(items=made_rows, tokenizer=made_tokenizer)
    given_facts = {"tokens": facts, "tokenizer": made_tokenizer, "training": run}
    assert verdict(missing_eos, **given_facts) == severity


def test_plain_rows_of_an_unknown_tool_are_not_assessed() -> None:
    made_tokenizer = tokenizer(chat_template=None)
    facts = tokens(items=items(20), tokenizer=made_tokenizer)
    for run in (None, training("trl"), training("mine")):
        with pytest.raises(NotAssessed, match="--run"):
            list(missing_eos(tokens=facts, tokenizer=made_tokenizer, training=run))


def test_text_rows_that_write_the_end_token_themselves() -> None:
    made_tokenizer = tokenizer(chat_template=None)
    facts = tokens(
        items=[{"text": f"Stop {i}.<|im_end|>"} for i in range(20)], tokenizer=made_tokenizer
    )
    run = training("transformers")
    assert verdict(missing_eos, tokens=facts, tokenizer=made_tokenizer, training=run) is None


SCRIPT = training(collator="DataCollatorForLanguageModeling", pad_token="tokenizer.eos_token")


@pytest.mark.parametrize(
    ("run", "severity"),
    [
        (SCRIPT, "high"),
        (training("trl", "0.16.1"), "high"),
        (training("trl", "0.17.0"), None),
        (training("trl", "0.19.0", collator="DataCollatorForCompletionOnlyLM"), "high"),
        (training("axolotl"), None),
        (training("llamafactory"), None),
    ],
)
def test_padding_with_the_end_token(run: TrainingConfig, severity: str | None) -> None:
    made_tokenizer = tokenizer(pad="<|im_end|>")
    facts = tokens(items=chat_items(20), tokenizer=made_tokenizer)
    given_facts = {"tokens": facts, "tokenizer": made_tokenizer, "training": run}
    assert verdict(missing_eos, **given_facts) == severity
    if severity:
        [found] = missing_eos(**given_facts)
        assert found.because_of == "config.pad_equals_eos"


def test_script_alone_is_enough_to_see_the_masked_end() -> None:
    assert verdict(missing_eos, training=SCRIPT) == "high"
    with pytest.raises(NotAssessed, match="base model"):
        list(missing_eos(training=training("trl", "0.24.0")))


# --- loss_mask_coverage ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prompt", "answer", "severity"),
    [(3167, 32, None), (3168, 32, None), (3169, 32, "medium"), (3200, 31, None)],
)
def test_small_share_edges(prompt: int, answer: int, severity: str | None) -> None:
    facts = {"tokens": made([(prompt, answer)] * 9), "training": training(train_on_prompt=False)}
    assert verdict(loss_mask_coverage, **facts) == severity


@pytest.mark.parametrize(
    ("run", "chat", "severity"),
    [
        (training("trl", "0.24.0"), True, "low"),
        (training("trl", "0.24.0"), False, None),
        (training("trl", "0.24.0", completion_only_loss=False), False, "low"),
        (training("trl", "0.15.0", collator="DataCollatorForCompletionOnlyLM"), True, None),
        (training("mlx-lm", train_on_prompt=True), True, "low"),
        (training("axolotl", train_on_prompt=False), True, None),
        (training(collator="DataCollatorForLanguageModeling"), True, "low"),
        (None, True, None),
    ],
)
def test_loss_on_prompts(run: TrainingConfig | None, chat: bool, severity: str | None) -> None:
    made_rows = chat_items(20) if chat else items(20)
    facts = {"tokens": tokens(items=made_rows), "examples": rows(items=made_rows), "training": run}
    assert verdict(loss_mask_coverage, **facts) == severity


def test_loss_on_prompts_is_seen_in_a_run_alone_if_the_run_says_so() -> None:
    said = training("axolotl", train_on_prompt=True)
    assert verdict(loss_mask_coverage, training=said) == "low"
    tools = training("mlx-lm", train_on_prompt=Value(True, "default of mlx-lm", "default"))
    with pytest.raises(NotAssessed, match="does not say"):
        list(loss_mask_coverage(training=tools))


def test_raw_text_and_other_stages_are_not_assessed() -> None:
    made_rows = [{"text": f"Stop {i}."} for i in range(9)]
    with pytest.raises(NotAssessed, match="raw text"):
        list(loss_mask_coverage(tokens=tokens(items=made_rows), examples=rows(items=made_rows)))
    with pytest.raises(NotAssessed, match="dpo"):
        list(loss_mask_coverage(tokens=tokens(n=3), training=training("trl", stage="dpo")))
    with pytest.raises(NotAssessed, match="Needs"):
        list(loss_mask_coverage())


def marking(answers: bool, prompts: bool) -> str:
    def wrapped(mark: bool) -> str:
        body = "{{ m.content + '<|im_end|>' }}"
        return f"{{% generation %}}{body}{{% endgeneration %}}" if mark else body

    return (
        "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' }}{% if m.role == 'assistant' %}"
        f"{wrapped(answers)}{{% else %}}{wrapped(prompts)}{{% endif %}}{{{{ '\n' }}}}{{% endfor %}}"
        "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
    )


@pytest.mark.parametrize(
    ("answers", "prompts", "severity"), [(True, False, None), (True, True, "high")]
)
def test_markers_that_are_not_where_the_answers_are(
    answers: bool, prompts: bool, severity: str | None
) -> None:
    made_tokenizer = tokenizer(chat_template=marking(answers, prompts))
    facts = {
        "tokens": tokens(items=chat_items(20), tokenizer=made_tokenizer),
        "examples": chat_rows(20),
        "tokenizer": made_tokenizer,
    }
    run = training("trl", "1.2.0", assistant_only_loss=True)
    assert verdict(loss_mask_coverage, **facts, training=run) == severity
    # Markers that the run does not use decide nothing.
    assert verdict(loss_mask_coverage, **facts, training=training(train_on_prompt=False)) is None


def test_defaults_do_not_beat_the_tools_rule_for_the_shape() -> None:
    by_default = training("trl", completion_only_loss=Value(None, "default of trl", "default"))
    assert loss_on(by_default, prompted=True) == "answers"
    assert loss_on(by_default, prompted=False) == "all"
    assert loss_on(by_default, prompted=None) == "unknown"
    assert loss_on(None, prompted=True) == "unknown"
    assert loss_on(training("mine"), prompted=True) == "unknown"


# --- rows_dropped ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("long", "severity"),
    [(0, None), (1, "info"), (2, "info"), (3, "low"), (20, "low"), (21, "medium"), (101, "high")],
)
def test_rows_dropped_edges(long: int, severity: str | None) -> None:
    facts = made([(80, 80)] * long + [(20, 20)] * (200 - long), 100)
    assert verdict(rows_dropped, tokens=facts, training=drop()) == severity
    if severity:
        [found] = rows_dropped(tokens=facts, training=drop())
        assert found.evidence["left"] == 200 - long


def test_what_is_dropped_depends_on_the_tool() -> None:
    empty = made([(50, 0)] * 10 + [(50, 50)] * 90)
    for run, severity in (
        (training("axolotl"), "low"),
        (training("unsloth"), "low"),
        (training("trl", "1.9.0"), "low"),
        (training("trl", "1.8.0"), None),
        (training("trl"), None),
        (training("mlx-lm"), None),
    ):
        assert verdict(rows_dropped, tokens=empty, training=run) == severity


def test_llamafactory_skips_turns_out_of_order() -> None:
    right = [("user", "a"), ("assistant", "b")]
    wrong = [("assistant", "Hello"), ("user", "a"), ("assistant", "b"), ("user", "c")]
    double = [("user", "a"), ("user", "b"), ("assistant", "c")]
    talks = chat_items(conversations=[*([right] * 18), wrong, double])
    run = training("llamafactory", overlong_rows="cut_both")
    facts = {"tokens": tokens(items=talks), "examples": rows(items=talks), "training": run}
    [found] = rows_dropped(**facts)
    assert found.evidence["reasons"] == {"turns that do not alternate": 2}
    assert verdict(rows_dropped, **{**facts, "training": training("trl")}) is None


def test_tool_calls_are_not_out_of_order() -> None:
    talk = [
        {"from": "human", "value": "Weather?"},
        {"from": "function_call", "value": '{"name": "weather", "arguments": {}}'},
        {"from": "observation", "value": "sun"},
        {"from": "gpt", "value": "It is sunny."},
    ]
    facts = rows(items=[{"conversations": talk}])
    run = training("llamafactory")
    assert verdict(rows_dropped, tokens=made([(9, 9)]), examples=facts, training=run) is None


# --- added_tokens_untrained --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "severity"),
    [
        ({}, "high"),
        ({"modules_to_save": ["embed_tokens", "lm_head"]}, None),
        ({"target_modules": ["q_proj", "embed_tokens"]}, None),
        ({"trainable_token_indices": [256, 257]}, None),
        ({"trainable_token_indices": {"embed_tokens": [256, 257]}}, None),
        ({"trainable_token_indices": [256]}, "high"),
        ({"target_modules": "all-linear"}, "high"),
    ],
)
def test_new_tokens(raw: dict[str, Any], severity: str | None) -> None:
    made_tokenizer = replace(tokenizer(), model_vocab_size=256)
    facts = tokens(items=chat_items(20), tokenizer=made_tokenizer)
    given_facts = {"tokens": facts, "tokenizer": made_tokenizer, "adapter": adapter(**raw)}
    assert verdict(added_tokens_untrained, **given_facts) == severity


def test_tokens_inside_the_models_vocabulary_are_not_new() -> None:
    made_tokenizer = replace(tokenizer(), model_vocab_size=512)
    facts = tokens(items=chat_items(20), tokenizer=made_tokenizer)
    given_facts = {"tokens": facts, "tokenizer": made_tokenizer, "adapter": adapter()}
    assert verdict(added_tokens_untrained, **given_facts) is None


@pytest.mark.parametrize(
    ("base", "severity"),
    [
        ("meta-llama/Meta-Llama-3-8B", "medium"),
        ("meta-llama/Llama-3.2-1B", "medium"),
        ("meta-llama/Llama-3.2-1B-Instruct", None),
        ("unsloth/Llama-3.2-1B-Instruct-bnb-4bit", None),
    ],
)
def test_end_token_that_base_llama_3_never_saw(base: str, severity: str | None) -> None:
    template = CHATML.replace("<|im_end|>", "<|eot_id|>")
    made_tokenizer = tokenizer(chat_template=template, eos="<|eot_id|>")
    facts = tokens(items=chat_items(20), tokenizer=made_tokenizer)
    run_adapter = adapter(base_model_name_or_path=base)
    given_facts = {"tokens": facts, "tokenizer": made_tokenizer, "adapter": run_adapter}
    assert verdict(added_tokens_untrained, **given_facts) == severity


def test_new_tokens_are_not_assessed_without_the_vocabulary_or_for_other_adapters() -> None:
    made_tokenizer = tokenizer()
    facts = {"tokens": tokens(items=chat_items(3)), "tokenizer": made_tokenizer}
    with pytest.raises(NotAssessed, match="vocabulary"):
        list(added_tokens_untrained(**facts, adapter=adapter()))
    with pytest.raises(NotAssessed, match="IA3"):
        list(added_tokens_untrained(**facts, adapter=adapter(peft_type="IA3")))


def test_findings_of_a_sample_say_so() -> None:
    facts = replace(made([(50, 100)] * 10, 100), sampled=np.arange(10))
    [found] = completion_truncated(tokens=facts)
    assert "random sample of 10 rows" in found.detail
