"""Which tokens end an answer."""

from __future__ import annotations

import pytest

from gradian_core.evaluation.stops import context_limit, stop_token_ids

END = 258


def test_the_end_of_a_turn_comes_from_the_template(llama, tokenizer):
    assert tokenizer.eos_token_id == 256
    assert stop_token_ids(llama, tokenizer) == (256, END)


@pytest.mark.parametrize(
    "template",
    [
        None,
        "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}",
        "{{ raise_exception('no such conversation') }}",
        "{{ messages + 1 }}",
        "{% for m in messages %}{{ m.role }}<|im_end|>{% endfor %}",
    ],
    ids=["none", "plain", "raises", "type-error", "answer-not-shown"],
)
def test_templates_that_name_no_end(build, llama, template):
    assert stop_token_ids(llama, build.tokenizer(template)) == (256,)


def test_a_template_with_parts_around_the_answer(build, llama):
    template = (
        "{% for m in messages %}<|im_start|>{{ m.role }}<think></think>{{ m.content | trim }}"
        " <|im_end|>\n{% endfor %}"
    )
    assert stop_token_ids(llama, build.tokenizer(template)) == (256, END)


def test_lists_and_numbers_are_joined(build):
    model = build.base()
    model.generation_config.eos_token_id = [3, 5]
    model.config.eos_token_id = 9
    tokenizer = build.tokenizer(None)
    tokenizer.eos_token = None
    assert stop_token_ids(model, tokenizer) == (3, 5, 9)
    model.generation_config.eos_token_id = model.config.eos_token_id = None
    assert stop_token_ids(model, tokenizer) == ()


def test_context_limit(build):
    assert context_limit(build.base("llama")) == 160
    assert context_limit(build.base("gpt2")) == 160
    assert context_limit(build.base("bloom")) is None
    assert context_limit(build.loaded().model) == 160
