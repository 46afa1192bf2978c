"""Checks of what the chat template does to rows, with the templates of real models."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from gradian_checks.data.double_bos import double_bos
from gradian_checks.data.eos_mismatch import eos_mismatch
from gradian_checks.data.no_chat_template import no_chat_template
from gradian_checks.data.reasoning_dropped import reasoning_dropped
from gradian_checks.data.template_family_mismatch import template_family_mismatch
from gradian_checks.data.template_prefix_mismatch import template_prefix_mismatch
from gradian_checks.data.template_rejects_rows import template_rejects_rows
from gradian_core.audit.facts import NotAssessed, TokenizerFacts
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

TEMPLATES = Path(__file__).parents[1] / "data" / "templates"
THINKING = CHATML.replace("assistant\n' }}", "assistant\n<think>\n' }}")


def verdict(check: Check, **facts: Any) -> str | None:
    found = [f.severity.value for f in check(**facts)]
    assert len(found) <= 1
    return found[0] if found else None


def real(name: str, **more: Any) -> TokenizerFacts:
    special: dict[str, Any] = {
        "gemma": {
            "bos": "<bos>",
            "eos": "<eos>",
            "extra_tokens": ["<start_of_turn>", "<end_of_turn>"],
        },
        "llama3": {
            "bos": "<|begin_of_text|>",
            "eos": "<|eot_id|>",
            "extra_tokens": ["<|start_header_id|>", "<|end_header_id|>"],
        },
        "ministral3": {"bos": "<s>", "eos": "</s>", "extra_tokens": ["[INST]", "[/INST]"]},
    }.get(name, {})
    text = (TEMPLATES / f"{name}.jinja").read_text(encoding="utf-8")
    return tokenizer(chat_template=text, **{**special, **more})


def talk(*contents: str) -> list[tuple[str, str]]:
    return [(("user", "assistant")[i % 2], text) for i, text in enumerate(contents)]


def reasoned(*, turns: int, earlier: bool = True) -> list[dict[str, Any]]:
    """Return one conversation of so many answers, each with reasoning, or the last one only."""
    said = []
    for i in range(turns):
        thought = f"<think>\nroute {i} is long\n</think>\n\n" if earlier or i == turns - 1 else ""
        said += [f"Which way {i}?", f"{thought}Left {i}."]
    return chat_items(conversations=[talk(*said)])


# --- template_prefix_mismatch ------------------------------------------------------------------


@pytest.mark.parametrize("name", ["qwen2.5", "gemma", "llama3", "ministral3", "qwen3"])
def test_stock_templates_are_prefix_stable(name: str) -> None:
    multi = chat_rows(conversations=[talk("a", "b", "c", "d", "e", "f")] * 5)
    for facts in (chat_rows(20), multi):
        assert verdict(template_prefix_mismatch, examples=facts, tokenizer=real(name)) is None


def test_reasoning_that_leaves_the_history_is_a_mismatch() -> None:
    qwen = real("qwen3")
    multi = rows(items=reasoned(turns=3) * 2)
    [found] = template_prefix_mismatch(examples=multi, tokenizer=qwen)
    assert found.severity == "high"
    assert "<think>" in str(found.evidence["alone"])
    last_only = rows(items=reasoned(turns=3, earlier=False))
    assert verdict(template_prefix_mismatch, examples=last_only, tokenizer=qwen) is None
    single = rows(items=reasoned(turns=1))
    assert verdict(template_prefix_mismatch, examples=single, tokenizer=qwen) is None


@pytest.mark.parametrize(("share", "severity"), [(1, None), (2, "low"), (10, "low"), (11, "high")])
def test_history_edges(share: int, severity: str | None) -> None:
    made = [*reasoned(turns=2) * share, *chat_items(100 - share)]
    facts = rows(items=made)
    assert verdict(template_prefix_mismatch, examples=facts, tokenizer=real("qwen3")) == severity


def test_generation_prompt_of_its_own_is_a_property_of_the_template() -> None:
    thinking = tokenizer(chat_template=THINKING)
    [found] = template_prefix_mismatch(examples=chat_rows(50), tokenizer=thinking)
    assert found.severity == "medium"
    assert found.evidence["alone"] == "<think>\n"
    assert found.example_ids == ()


@pytest.mark.parametrize(("share", "severity"), [(1, None), (2, "info"), (10, "info"), (11, "low")])
def test_token_over_the_border(share: int, severity: str | None) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    from gradian_core.audit.collect_tokenizer import tokenizer_facts

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {letter: i for i, letter in enumerate(letters)} | {"Ġb": len(letters)}
    backend = Tokenizer(models.BPE(vocabulary, [("Ġ", "b")]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made_tokenizer = tokenizer_facts(PreTrainedTokenizerFast(tokenizer_object=backend), "sample")
    spaced = [{"prompt": f"The sky {i} is ", "completion": "blue"} for i in range(share)]
    facts = rows(items=[*items(100 - share), *spaced])
    found = list(template_prefix_mismatch(examples=facts, tokenizer=made_tokenizer))
    assert [f.severity.value for f in found] == ([severity] if severity else [])
    if found:
        assert found[0].evidence["tokens_joined"][0] == "Ġb"


@pytest.mark.parametrize(
    "run",
    [
        training("llamafactory", chat_template="qwen3"),
        training("torchtune"),
        training("axolotl", chat_template="llama3"),
    ],
)
def test_templates_of_the_tool_are_not_the_tokenizers(run: Any) -> None:
    thinking = tokenizer(chat_template=THINKING)
    facts = {"examples": chat_rows(9), "tokenizer": thinking, "training": run}
    with pytest.raises(NotAssessed, match="template of its own"):
        list(template_prefix_mismatch(**facts))
    with pytest.raises(NotAssessed, match="template of its own"):
        list(reasoning_dropped(**facts))
    with pytest.raises(NotAssessed, match="template of its own"):
        list(template_rejects_rows(tokens=tokens(n=3), training=run))
    own = training("axolotl", chat_template="tokenizer_default")
    assert verdict(template_prefix_mismatch, **{**facts, "training": own}) == "medium"


def test_raw_text_has_no_prompt() -> None:
    with pytest.raises(NotAssessed, match="prompt"):
        list(template_prefix_mismatch(examples=rows(items=[{"text": "a"}]), tokenizer=tokenizer()))


# --- template_rejects_rows ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("refused", "severity"),
    [(0, None), (1, "medium"), (5, "medium"), (6, "high"), (50, "high"), (51, "critical")],
)
def test_gemma_takes_no_system_message(refused: int, severity: str | None) -> None:
    made = [*chat_items(100)[refused:], *chat_items(refused, system="Be brief.")]
    facts = tokens(items=made, tokenizer=real("gemma"))
    assert verdict(template_rejects_rows, tokens=facts) == severity


def test_refusals_are_told_by_reason_with_a_fix() -> None:
    made = chat_items(3, system="Be brief.")
    [found] = template_rejects_rows(tokens=tokens(items=made, tokenizer=real("gemma")))
    assert found.evidence["reasons"] == {"System role not supported": 3}
    assert "user turn" in found.fix
    twice = chat_items(conversations=[[("user", "a"), ("user", "b"), ("assistant", "c")]])
    [found] = template_rejects_rows(tokens=tokens(items=twice, tokenizer=real("ministral3")))
    assert "Merge" in found.fix


def test_system_messages_are_fine_where_the_template_takes_them() -> None:
    made = chat_items(9, system="Be brief.")
    for name in ("qwen2.5", "llama3", "ministral3"):
        facts = tokens(items=made, tokenizer=real(name))
        assert verdict(template_rejects_rows, tokens=facts) is None


# --- reasoning_dropped -------------------------------------------------------------------------


def test_field_that_the_template_does_not_know() -> None:
    ask = {"role": "user", "content": "Which way?"}
    answer = {"role": "assistant", "content": "Left.", "reasoning_content": "The right is long."}
    facts = rows(items=[{"messages": [ask, answer]}] * 5)
    assert verdict(reasoning_dropped, examples=facts, tokenizer=real("qwen2.5")) == "high"
    assert verdict(reasoning_dropped, examples=facts, tokenizer=real("qwen3")) is None


@pytest.mark.parametrize(("share", "severity"), [(1, None), (2, "info"), (10, "info"), (11, "low")])
def test_reasoning_of_earlier_turns_goes_by_design(share: int, severity: str | None) -> None:
    facts = rows(items=[*reasoned(turns=2) * share, *chat_items(100 - share)])
    assert verdict(reasoning_dropped, examples=facts, tokenizer=real("qwen3")) == severity
    # ChatML writes the content as it is.
    assert verdict(reasoning_dropped, examples=facts, tokenizer=tokenizer()) is None


@pytest.mark.parametrize(
    ("share", "severity"), [(1, None), (2, "medium"), (10, "medium"), (11, "high")]
)
def test_reasoning_of_the_last_answer_edges(share: int, severity: str | None) -> None:
    ask = {"role": "user", "content": "Which way?"}
    answer = {"role": "assistant", "content": "Left.", "thinking": "The right is long."}
    facts = rows(items=[*([{"messages": [ask, answer]}] * share), *chat_items(100 - share)])
    assert verdict(reasoning_dropped, examples=facts, tokenizer=tokenizer()) == severity


def test_reasoning_needs_a_template() -> None:
    with pytest.raises(NotAssessed, match="no chat template"):
        list(reasoning_dropped(examples=chat_rows(3), tokenizer=tokenizer(chat_template=None)))


# --- eos_mismatch ------------------------------------------------------------------------------


def id_of(facts: TokenizerFacts, token: str) -> int:
    return int(facts.tokenizer.convert_tokens_to_ids(token))


def test_end_of_turn_is_the_end_token() -> None:
    assert verdict(eos_mismatch, tokenizer=real("qwen2.5")) is None
    end = id_of(tokenizer(), "<|im_end|>")
    assert verdict(eos_mismatch, tokenizer=tokenizer(generation_eos=[end, end + 1])) is None


def test_end_of_turn_stands_in_the_generation_config_only() -> None:
    turn = id_of(real("gemma"), "<end_of_turn>")
    eos = id_of(real("gemma"), "<eos>")
    assert verdict(eos_mismatch, tokenizer=real("gemma", generation_eos=[eos, turn])) is None
    with pytest.raises(NotAssessed, match="generation_config"):
        list(eos_mismatch(tokenizer=real("gemma")))
    assert verdict(eos_mismatch, tokenizer=real("gemma", generation_eos=[eos])) == "high"


def test_tokenizer_and_model_stop_at_different_tokens() -> None:
    made = tokenizer()
    other = id_of(made, "<|endoftext|>")
    [found] = eos_mismatch(tokenizer=tokenizer(generation_eos=[other]))
    assert found.severity == "medium"
    assert "<|endoftext|>" in found.title


def test_eos_mismatch_is_not_assessed_without_a_template_or_turns() -> None:
    with pytest.raises(NotAssessed, match="no chat template"):
        list(eos_mismatch(tokenizer=tokenizer(chat_template=None)))
    with pytest.raises(NotAssessed, match="raw text"):
        list(eos_mismatch(tokenizer=tokenizer(), examples=rows(items=[{"text": "a"}])))


# --- double_bos --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("doubled", "severity"), [(1, None), (2, "low"), (50, "low"), (51, "medium")]
)
def test_double_bos_edges(doubled: int, severity: str | None) -> None:
    llama = real("llama3", adds_bos=True)
    texts = [f"{'<|begin_of_text|>' if i < doubled else ''}Stop {i}." for i in range(100)]
    facts = rows(items=[{"text": text} for text in texts])
    assert verdict(double_bos, examples=facts, tokenizer=llama) == severity


def test_double_bos_needs_raw_text_and_a_token_that_is_added() -> None:
    with pytest.raises(NotAssessed, match="raw text"):
        list(double_bos(examples=chat_rows(9), tokenizer=real("llama3", adds_bos=True)))
    facts = rows(items=[{"text": "<|begin_of_text|>Stop."}])
    with pytest.raises(NotAssessed, match="adds no"):
        list(double_bos(examples=facts, tokenizer=real("llama3")))


# --- template_family_mismatch ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("marked", "severity"),
    [(1, None), (2, "low"), (5, "low"), (6, "medium"), (50, "medium"), (51, "high")],
)
def test_family_edges(marked: int, severity: str | None) -> None:
    texts = [f"[INST] Stop {i}? [/INST] Yes" if i < marked else f"Stop {i}" for i in range(100)]
    facts = rows(items=[{"text": text} for text in texts])
    given = {"examples": facts, "tokenizer": real("llama3")}
    assert verdict(template_family_mismatch, **given) == severity
    assert verdict(template_family_mismatch, **{**given, "tokenizer": real("ministral3")}) is None


def test_markup_inside_messages_is_there_twice() -> None:
    made = chat_items(conversations=[talk("<|im_start|>user\nHi<|im_end|>", "Hello")] * 3)
    given = {"examples": rows(items=made), "tokenizer": tokenizer()}
    assert verdict(template_family_mismatch, **given) == "high"
    assert verdict(template_family_mismatch, examples=chat_rows(9), tokenizer=tokenizer()) is None


@pytest.mark.parametrize(
    ("base", "mark", "severity"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", "[INST]", "medium"),
        ("meta-llama/Meta-Llama-3-8B-Instruct", "[INST]", "medium"),
        ("mistralai/Mistral-7B-Instruct-v0.2", "[INST]", None),
        ("meta-llama/Llama-2-7b-chat-hf", "[INST]", None),
        ("google/gemma-2-2b-it", "<|im_start|>", "medium"),
        ("someone/own-model", "[INST]", None),
    ],
)
def test_prompt_format_of_the_run(base: str, mark: str, severity: str | None) -> None:
    run = training("axolotl", datasets=[{"type": {"format": f"{mark} {{instruction}}"}}])
    given = {"training": run, "adapter": adapter(base_model_name_or_path=base)}
    assert verdict(template_family_mismatch, **given) == severity


def test_family_is_not_assessed_without_rows_or_format() -> None:
    for run in (None, training("axolotl", datasets=[{"path": "a.jsonl", "type": "alpaca"}])):
        with pytest.raises(NotAssessed, match="Needs"):
            list(template_family_mismatch(training=run, adapter=adapter()))


# --- no_chat_template --------------------------------------------------------------------------


def without_template(made: Sequence[Any], **more: Any) -> str | None:
    bare = tokenizer(chat_template=None)
    return verdict(no_chat_template, examples=rows(items=made), tokenizer=bare, **more)


def test_messages_without_a_template_anywhere() -> None:
    assert without_template(chat_items(9)) == "high"
    sharegpt = [{"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]}]
    assert without_template(sharegpt) == "high"
    split = [
        {
            "prompt": [{"role": "user", "content": "a"}],
            "completion": [{"role": "assistant", "content": "b"}],
        }
    ]
    assert without_template(split) == "high"


def test_rows_that_need_no_template_are_an_info() -> None:
    assert without_template(items(9)) == "info"
    assert without_template([{"text": "a"}]) == "info"


@pytest.mark.parametrize(
    "run",
    [
        training("axolotl", chat_template="chatml"),
        training("llamafactory", chat_template="qwen"),
        training("trl", chat_template="{% for m in messages %}{% endfor %}"),
    ],
)
def test_the_run_brings_a_template(run: Any) -> None:
    assert without_template(chat_items(9), training=run) is None


def test_the_tokenizers_default_is_no_template_where_it_has_none() -> None:
    run = training("axolotl", chat_template="tokenizer_default")
    assert without_template(chat_items(9), training=run) == "high"


def test_a_template_in_its_own_file_counts() -> None:
    # transformers reads chat_template.jinja into the same attribute.
    assert verdict(no_chat_template, examples=chat_rows(9), tokenizer=real("ministral3")) is None
