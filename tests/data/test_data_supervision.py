"""Masks against an oracle that knows the answers: decode what is supervised."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gradian_core.data.encode import encode, prompt_ids, with_answer
from gradian_core.data.example import Example, Turn
from gradian_core.data.files import dataset_from_rows
from gradian_core.data.tokens import Supervision
from gradian_core.errors import InputError

REAL = ("qwen2.5", "qwen3", "gemma", "llama3", "ministral3")
MARKED = (
    "{% for m in messages %}{% if m.role == 'assistant' %}<|a|>"
    "{% generation %}{{ m.content }}<|e|>{% endgeneration %}{{ '\n' }}"
    "{% else %}<|{{ m.role[0] }}|>{{ m.content }}<|e|>{{ '\n' }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|a|>{% endif %}"
)
MARKED_ADDED = ("<|a|>", "<|u|>", "<|s|>", "<|t|>", "<|e|>")


def conversation(*contents, system=None):
    messages = [{"role": "system", "content": system}] if system is not None else []
    messages += [
        {"role": ("user", "assistant")[i % 2], "content": text} for i, text in enumerate(contents)
    ]
    return {"messages": messages}


def examples(*rows):
    return list(dataset_from_rows(rows))


def targets(encoded, tokenizer, index=0):
    """Texts of the supervised stretches of a row."""
    ids, mask = encoded.tokens.row(index)
    edges = np.flatnonzero(np.diff(np.concatenate(([0], mask, [0]))))
    return [
        tokenizer.decode(ids[a:b], skip_special_tokens=False)
        for a, b in zip(edges[::2], edges[1::2], strict=True)
    ]


def run(tokenizer, *rows, **options):
    options = {"max_seq_length": 10_000, **options}
    return encode(examples(*rows), tokenizer, **options)


@pytest.mark.parametrize("name", REAL)
class TestRealTemplates:
    def test_targets_are_the_answers_and_the_turn_ends(self, name, real_tokenizer, turn_end):
        tokenizer = real_tokenizer(name)
        encoded = run(
            tokenizer, conversation("2+2?", "four", "3+3?", "six"), conversation("a", "b")
        )
        end = turn_end[name]
        # Qwen3 puts an empty reasoning block before its last answer, as generation would.
        think = "<think>\n\n</think>\n\n" if name == "qwen3" else ""
        assert targets(encoded, tokenizer) == [f"four{end}", f"{think}six{end}"]
        assert targets(encoded, tokenizer, 1) == [f"{think}b{end}"]
        assert encoded.counts == {Supervision.PREFIX: 2}
        assert encoded.problems == {}
        assert not encoded.notes

    def test_last_is_the_last_answer_only(self, name, real_tokenizer, turn_end):
        tokenizer = real_tokenizer(name)
        row = conversation("2+2?", "four", "3+3?", "six", "and?")
        (text,) = targets(run(tokenizer, row, supervise="last"), tokenizer)
        assert text.removeprefix("<think>\n\n</think>\n\n") == f"six{turn_end[name]}"

    def test_prompt_ids_are_what_stands_before_the_answer(self, name, real_tokenizer):
        tokenizer = real_tokenizer(name)
        for row in (conversation("2+2?", "four", "3+3?", "six"), conversation("a", " b\n")):
            encoded = run(tokenizer, row, supervise="last")
            ids, mask = encoded.tokens.row(0)
            prompt = prompt_ids(examples(row)[0], tokenizer)
            assert prompt == ids[: len(prompt)].tolist()
            assert np.flatnonzero(mask)[0] == len(prompt)

    def test_the_text_is_the_templates_own(self, name, real_tokenizer):
        tokenizer = real_tokenizer(name)
        row = conversation("2+2?", "four", "3+3?", "six")
        whole = tokenizer.apply_chat_template(row["messages"], tokenize=False)
        ids, _ = run(tokenizer, row).tokens.row(0)
        assert ids.tolist() == tokenizer(whole, add_special_tokens=False)["input_ids"]

    def test_no_second_bos(self, name, real_tokenizer):
        tokenizer = real_tokenizer(name)
        row = conversation("2+2?", "four")
        ids, _ = run(tokenizer, row).tokens.row(0)
        prompt = prompt_ids(examples(row)[0], tokenizer)
        if tokenizer.bos_token_id is not None:
            assert ids.tolist().count(tokenizer.bos_token_id) == 1
            assert prompt.count(tokenizer.bos_token_id) == 1

    def test_system_turn_or_its_refusal(self, name, real_tokenizer):
        tokenizer = real_tokenizer(name)
        rows = (conversation("a", "b", system="Be brief."), conversation("c", "d"))
        encoded = run(tokenizer, *rows)
        if name == "gemma":
            assert encoded.problems == {
                0: "the chat template refuses it: System role not supported"
            }
            assert encoded.unsupervised.tolist() == [0]
            assert encoded.notes[0].startswith(
                "1 of 2 rows (first: row 0): the chat template refuses"
            )
            with pytest.raises(InputError, match=r"All 1 conversations.*System role"):
                run(tokenizer, rows[0])
            with pytest.raises(InputError, match="prompt of row 0: System role"):
                prompt_ids(examples(rows[0])[0], tokenizer)
        else:
            assert encoded.problems == {}
            assert targets(encoded, tokenizer)[0].endswith(targets(encoded, tokenizer)[-1])
            assert "Be brief." not in "".join(targets(encoded, tokenizer))


class TestQwen3Reasoning:
    def test_earlier_reasoning_is_dropped_and_the_answer_still_found(self, real_tokenizer):
        tokenizer = real_tokenizer("qwen3")
        row = conversation(
            "q", "<think>\nr1\n</think>\n\nfour", "q", "<think>\nr2\n</think>\n\nsix"
        )
        encoded = run(tokenizer, row)
        assert targets(encoded, tokenizer) == [
            "four<|im_end|>",
            "<think>\nr2\n</think>\n\nsix<|im_end|>",
        ]
        assert encoded.problems == {}

    def test_tool_calls(self, real_tokenizer):
        tokenizer = real_tokenizer("qwen3")
        call = {"type": "function", "function": {"name": "add", "arguments": {"a": 2}}}
        row = {
            "messages": [
                {"role": "user", "content": "2+2?"},
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "content": "4"},
                {"role": "assistant", "content": "four"},
            ],
            "tools": [{"type": "function", "function": {"name": "add"}}],
        }
        encoded = run(tokenizer, row)
        first, second = targets(encoded, tokenizer)
        assert '{"name": "add", "arguments": {"a": 2}}' in first
        assert first.endswith("</tool_call><|im_end|>")
        assert second.endswith("four<|im_end|>")
        assert encoded.problems == {}


TEXTS = st.text(max_size=12) | st.sampled_from(
    (
        "",
        " ",
        "\n",
        "q",
        "<|im_end|>",
        "<|im_start|>assistant\n",
        "<end_of_turn>",
        "</s>",
        "é\u0301",
        "👍🏽",
    )
)


@pytest.fixture(scope="module")
def marked_and_bare(build_tokenizer):
    return [
        build_tokenizer(template, MARKED_ADDED, None, "<|e|>")
        for template in (MARKED, re.sub(r"{% (end)?generation %}", "", MARKED))
    ]


class TestArbitraryContent:
    @settings(
        max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
    )
    @given(name=st.sampled_from(REAL), contents=st.lists(TEXTS, min_size=2, max_size=6))
    def test_targets_are_the_rendered_answers(self, name, contents, real_tokenizer, turn_end):
        contents = contents[: len(contents) // 2 * 2]
        if any("think>" in text for text in contents):
            return
        tokenizer = real_tokenizer(name)
        encoded = run(tokenizer, conversation(*contents))
        assert encoded.problems == {}
        ids, mask = encoded.tokens.row(0)
        got = tokenizer.decode(ids[mask], skip_special_tokens=False)
        # gemma and llama3 trim what they are given.
        trim = name in {"gemma", "llama3"}
        answers = [text.strip() if trim else text for text in contents[1::2]]
        if name == "qwen3":
            answers[-1] = "<think>\n\n</think>\n\n" + answers[-1].lstrip("\n")
        want = "".join(f"{text}{turn_end[name]}" for text in answers)
        # Header and answer may share a token where the answer starts with white space.
        assert got.endswith(want)
        assert not got[: len(got) - len(want)].strip()

    @settings(
        max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
    )
    @given(contents=st.lists(TEXTS, min_size=2, max_size=6), last=st.booleans())
    def test_markers_and_prefixes_agree(self, contents, last, marked_and_bare):
        contents = contents[: len(contents) // 2 * 2]
        options = {"supervise": "last" if last else "all"}
        one, two = (run(t, conversation(*contents), **options) for t in marked_and_bare)
        assert one.counts == {Supervision.MARKERS: 1}
        assert two.counts == {Supervision.PREFIX: 1}
        assert np.array_equal(one.tokens.input_ids, two.tokens.input_ids)
        assert np.array_equal(one.tokens.supervised, two.tokens.supervised)


class TestMarkers:
    def test_against_transformers_own_mask(self, build_tokenizer):
        tokenizer = build_tokenizer(MARKED, MARKED_ADDED, None, "<|e|>")
        row = conversation("2+2?", "four", "3+3?", "six")
        oracle = tokenizer.apply_chat_template(
            row["messages"], return_assistant_tokens_mask=True, return_dict=True
        )
        ids, mask = run(tokenizer, row).tokens.row(0)
        assert ids.tolist() == oracle["input_ids"]
        assert mask.astype(int).tolist() == oracle["assistant_masks"]

    @pytest.mark.parametrize(
        "template",
        [
            # marks everything, prompts as well
            "{% generation %}"
            + re.sub(r"{% (end)?generation %}", "", MARKED)
            + "{% endgeneration %}",
            # marks nothing
            "{% if false %}{% generation %}{% endgeneration %}{% endif %}"
            + re.sub(r"{% (end)?generation %}", "", MARKED),
            # marks the user
            re.sub(r"{% (end)?generation %}", "", MARKED).replace(
                "{% else %}<|{{ m.role[0] }}|>{{ m.content }}",
                "{% else %}<|{{ m.role[0] }}|>{% generation %}{{ m.content }}{% endgeneration %}",
            ),
        ],
        ids=["all", "none", "user"],
    )
    def test_markers_that_lie_are_not_believed(self, template, build_tokenizer):
        tokenizer = build_tokenizer(template, MARKED_ADDED, None, "<|e|>")
        encoded = run(tokenizer, conversation("2+2?", "four"))
        assert targets(encoded, tokenizer) == ["four<|e|>"]
        assert encoded.counts == {Supervision.PREFIX: 1}
        assert "generation markers do not fit" in encoded.notes[0]

    def test_several_markers_in_one_answer(self, build_tokenizer):
        template = MARKED.replace(
            "{% generation %}{{ m.content }}<|e|>{% endgeneration %}",
            "{% generation %}{{ m.content[:2] }}{% endgeneration %}|"
            "{% generation %}{{ m.content[2:] }}<|e|>{% endgeneration %}",
        )
        tokenizer = build_tokenizer(template, MARKED_ADDED, None, "<|e|>")
        encoded = run(tokenizer, conversation("q", "xyzw"))
        assert targets(encoded, tokenizer) == ["xy", "zw<|e|>"]
        assert encoded.counts == {Supervision.MARKERS: 1}


class TestOddTemplates:
    PLAIN = "{% for m in messages %}<|{{ m.role[0] }}|>{{ m.content }}<|e|>\n{% endfor %}"

    def test_without_generation_prompt_the_header_is_no_target(self, build_tokenizer):
        tokenizer = build_tokenizer(self.PLAIN, MARKED_ADDED, None, "<|e|>")
        row = conversation("q", "a1", "q", "a2")
        assert targets(run(tokenizer, row), tokenizer) == ["a1<|e|>", "a2<|e|>"]
        ids, mask = run(tokenizer, row, supervise="last").tokens.row(0)
        prompt = prompt_ids(examples(row)[0], tokenizer)
        assert prompt == ids[: np.flatnonzero(mask)[0]].tolist()
        assert tokenizer.decode(prompt).endswith("<|a|>")

    def test_assistant_first(self, build_tokenizer):
        tokenizer = build_tokenizer(self.PLAIN, MARKED_ADDED, None, "<|e|>")
        row = {
            "messages": [
                {"role": "assistant", "content": "hello"},
                {"role": "user", "content": "q"},
            ]
        }
        encoded = run(tokenizer, row)
        assert targets(encoded, tokenizer) == ["hello<|e|>"]
        assert tokenizer.decode(prompt_ids(examples(row)[0], tokenizer)) == "<|a|>"

    def test_generation_prompt_that_answers_do_not_have(self, build_tokenizer):
        template = self.PLAIN + "{% if add_generation_prompt %}<|a|><think>\n{% endif %}"
        tokenizer = build_tokenizer(template, MARKED_ADDED, None, "<|e|>")
        row = conversation("q", "a1", "q", "a2")
        assert targets(run(tokenizer, row), tokenizer) == ["a1<|e|>", "a2<|e|>"]
        assert tokenizer.decode(prompt_ids(examples(row)[0], tokenizer)).endswith("<think>\n")

    def test_no_end_token_means_that_all_the_template_writes_is_a_target(self, build_tokenizer):
        template = (
            "{% for m in messages %}{{ '### ' + m.role + '\n' + m.content + '\n\n' }}{% endfor %}"
            "{% if add_generation_prompt %}{{ '### assistant\n' }}{% endif %}"
        )
        tokenizer = build_tokenizer(template)
        assert targets(run(tokenizer, conversation("q", "a1", "q", "a2")), tokenizer) == [
            "a1\n\n",
            "a2\n\n",
        ]

    def test_text_after_the_whole_conversation(self, build_tokenizer):
        template = MARKED + "{% if not add_generation_prompt %}</s>{% endif %}"
        template = re.sub(r"{% (end)?generation %}", "", template)
        tokenizer = build_tokenizer(template, (*MARKED_ADDED, "</s>"), None, "</s>")
        assert targets(run(tokenizer, conversation("q", "a1", "q", "a2")), tokenizer) == [
            "a1<|e|>",
            "a2<|e|>\n</s>",
        ]

    def test_an_answer_that_cannot_be_found_is_left_out_and_reported(self, build_tokenizer):
        template = "{% for m in messages %}{{ m.content | length }};{{ m.content }}{% endfor %}"
        tokenizer = build_tokenizer(template)
        encoded = run(tokenizer, conversation("q", "a"), {"text": "the capital"})
        assert targets(encoded, tokenizer) == []
        assert encoded.problems == {
            0: "the place of an answer in the rendered text could not be found"
        }
        assert encoded.unsupervised.tolist() == [0]

    def test_named_templates(self, build_tokenizer):
        tokenizer = build_tokenizer({"default": MARKED, "rag": "x"}, MARKED_ADDED, None, "<|e|>")
        assert targets(run(tokenizer, conversation("q", "a")), tokenizer) == ["a<|e|>"]
        tokenizer = build_tokenizer({"rag": "x"}, MARKED_ADDED, None, "<|e|>")
        with pytest.raises(InputError, match=r"All 1 conversations.*multiple chat templates"):
            run(tokenizer, conversation("q", "a"))

    def test_end_of_prompt_token_that_swallows_white_space_is_no_target(self, build_tokenizer):
        from tokenizers import AddedToken

        template = MARKED.replace("{% generation %}", "").replace("{% endgeneration %}", "")
        added = (AddedToken("<|a|>", rstrip=True, special=True), *MARKED_ADDED[1:])
        tokenizer = build_tokenizer(template, added, None, "<|e|>")
        encoded = run(tokenizer, conversation("q", "  a"))
        assert targets(encoded, tokenizer) == ["a<|e|>"]

    def test_date_is_reported(self, build_tokenizer):
        tokenizer = build_tokenizer(
            "{% set d = strftime_now('%Y') %}" + MARKED, MARKED_ADDED, None, "<|e|>"
        )
        assert "today's date" in run(tokenizer, conversation("q", "a")).notes[0]

    def test_prompt_only_row(self, real_tokenizer):
        encoded = run(real_tokenizer("qwen2.5"), {"messages": [{"role": "user", "content": "q"}]})
        assert encoded.problems == {0: "there is no assistant turn"}


def test_with_answer_keeps_the_prompt():
    turns = (Turn("user", "q"), Turn("assistant", "a"), Turn("user", "r"), Turn("assistant", "b"))
    example = Example(id="0-7", row=7, turns=turns, cluster="c")
    other = with_answer(example, "z")
    assert other.turns == (*turns[:3], Turn("assistant", "z"))
    assert (other.row, other.cluster, other.id[-2:]) == (7, "c", "-7")
    assert with_answer(Example(id="0-0", row=0, turns=turns[:1]), "z").answer == "z"
    with pytest.raises(InputError, match="raw text"):
        with_answer(Example(id="0-0", row=0, text="t"), "z")
