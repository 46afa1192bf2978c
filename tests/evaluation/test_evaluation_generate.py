"""Generation against a plain loop: one prompt at a time, no padding, no cache, argmax."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import GenerationConfig

from gradian_core.errors import CannotRunError, InputError
from gradian_core.evaluation.generate import _Gumbel, generate

NEW = 12
PROMPTS = [
    list(np.random.default_rng(i).integers(0, 256, size=length))
    for i, length in enumerate((3, 17, 8, 8, 30, 1, 12, 25, 5))
]


def loop(model, prompt, stops=(256,), new=NEW):
    ids = list(map(int, prompt))
    for _ in range(new):
        with torch.no_grad():
            token = int(model(torch.tensor([ids])).logits[0, -1].argmax())
        if token in stops:
            return ids[len(prompt) :], True
        ids.append(token)
    return ids[len(prompt) :], False


def run(model, tokenizer, prompts=PROMPTS, **settings):
    settings = {"max_new_tokens": NEW, "batch_size": 4, "pad_token_id": 259} | settings
    return generate(model, tokenizer, prompts, **settings)


def texts(tokenizer, found):
    return [tokenizer.decode(ids, skip_special_tokens=True) for ids, _ in found]


@pytest.mark.parametrize("architecture", ["llama", "gemma2", "gpt2", "bloom"])
@pytest.mark.parametrize("batch_size", [1, 8])
def test_equals_a_plain_loop(build, tokenizer, architecture, batch_size):
    model = build.base(architecture)
    wanted = [loop(model, prompt) for prompt in PROMPTS]
    answers = run(model, tokenizer, batch_size=batch_size)
    assert [answer.text for answer in answers] == texts(tokenizer, wanted)
    assert [answer.complete for answer in answers] == [ended for _, ended in wanted]


@pytest.mark.parametrize("greedy", [True, False])
def test_neither_batches_nor_order_matter(llama, tokenizer, greedy):
    alone = run(llama, tokenizer, batch_size=1, greedy=greedy, seed=5)
    together = run(llama, tokenizer, batch_size=8, greedy=greedy, seed=5)
    backwards = run(llama, tokenizer, PROMPTS[::-1], batch_size=3, greedy=greedy, seed=5)
    assert alone == together == backwards[::-1]


def test_equals_a_plain_loop_in_float64(build, tokenizer):
    model = build.base("llama", torch.float64)
    wanted = texts(tokenizer, [loop(model, prompt) for prompt in PROMPTS])
    assert [answer.text for answer in run(model, tokenizer, batch_size=8)] == wanted


def test_the_checkpoints_generation_config_is_not_applied(build, tokenizer):
    plain = run(build.base(), tokenizer)
    model = build.base()
    wild = GenerationConfig(
        do_sample=True,
        temperature=5.0,
        top_k=2,
        repetition_penalty=3.0,
        no_repeat_ngram_size=1,
        suppress_tokens=list(range(60)),
        begin_suppress_tokens=list(range(100, 200)),
        forced_bos_token_id=65,
        forced_eos_token_id=66,
        min_new_tokens=5,
        max_length=7,
        num_beams=3,
        bad_words_ids=[[i] for i in range(50)],
        exponential_decay_length_penalty=(1, 9.0),
        cache_implementation="static",
    )
    model.generation_config = wild
    assert run(model, tokenizer) == plain
    assert model.generation_config is wild


def test_config_is_restored_after_a_failure(build, tokenizer, monkeypatch):
    model = build.base()
    kept = model.generation_config

    def exhaust(*args, **kwargs):
        raise torch.OutOfMemoryError

    monkeypatch.setattr(model, "forward", exhaust)
    with pytest.raises(CannotRunError, match=r"evaluation\.batch_size"):
        run(model, tokenizer)
    assert model.generation_config is kept


@pytest.mark.parametrize("where", ["generation_config", "config", "tokenizer", "template"])
def test_stops_at_every_end_token(build, where):
    model = build.base()
    tokenizer = build.tokenizer()
    ids, _ = loop(model, PROMPTS[1], stops=())
    end = ids[4]
    first = ids.index(end)
    model.generation_config.eos_token_id = [256]
    if where == "generation_config":
        model.generation_config.eos_token_id = [256, end]
    elif where == "config":
        model.config.eos_token_id = end
    elif where == "tokenizer":
        tokenizer.eos_token = tokenizer.convert_ids_to_tokens(end)
    else:
        name = tokenizer.convert_ids_to_tokens(end)
        tokenizer.add_tokens([name], special_tokens=True)
        tokenizer.chat_template = "{% for m in messages %}{{ m.content }}" + name + "{% endfor %}"
    (answer,) = run(model, tokenizer, [PROMPTS[1]])
    assert answer.complete
    assert answer.text == tokenizer.decode(ids[:first])


def test_special_tokens_go_and_white_space_stays(build, tokenizer, monkeypatch):
    model = build.base()
    wanted = [*tokenizer.encode("  so it is "), 257, *tokenizer.encode("\n"), 256, 65]

    def fixed(input_ids, **kwargs):
        tail = torch.tensor([wanted]).expand(len(input_ids), -1)
        return torch.cat([input_ids, tail], dim=1)

    monkeypatch.setattr(model, "generate", fixed)
    assert run(model, tokenizer, [[1, 2], [3]])[1].text == "  so it is \n"


@pytest.mark.parametrize("padding", [0, 255, 256])
def test_the_padding_token_does_not_matter(llama, tokenizer, padding):
    assert run(llama, tokenizer, pad_token_id=padding) == run(llama, tokenizer)


def test_nothing_is_printed(llama, tokenizer, capfd):
    run(llama, tokenizer)
    assert capfd.readouterr() == ("", "")


def test_progress_counts_prompts(llama, tokenizer):
    seen = []
    run(llama, tokenizer, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(4, 9), (8, 9), (9, 9)]


def test_no_prompt_no_answer(llama, tokenizer):
    assert run(llama, tokenizer, []) == []


def test_too_long_a_prompt_is_named(llama, tokenizer):
    assert len(run(llama, tokenizer, [[5] * (160 - NEW)])) == 1
    with pytest.raises(InputError, match=r"row 7 has a prompt of 149 tokens.*160.*max_new_tokens"):
        run(llama, tokenizer, [[5], [5] * 149], names=["row 2", "row 7"])
    with pytest.raises(InputError, match="prompt 1"):
        run(llama, tokenizer, [[5], [5] * 500])


def test_an_empty_prompt_is_named(llama, tokenizer):
    with pytest.raises(InputError, match="prompt 0 has an empty prompt"):
        run(llama, tokenizer, [[]])


def test_nan_logits_are_an_error_for_people(build, tokenizer):
    model = build.base()
    model.lm_head.weight.data[5] = float("nan")
    with pytest.raises(CannotRunError, match="NaN"):
        run(model, tokenizer)


def test_sampling_depends_on_the_seed_and_equal_prompts_draw_alike(llama, tokenizer):
    prompts = [PROMPTS[0], PROMPTS[1], PROMPTS[0]]
    first, other, again = run(llama, tokenizer, prompts, greedy=False, seed=1)
    assert first == again
    assert [first, other, again] != run(llama, tokenizer, prompts, greedy=False, seed=2)
    assert [first, other, again] != run(llama, tokenizer, prompts)


def test_gumbel_noise_samples_the_softmax():
    scores = torch.log(torch.tensor([0.5, 0.3, 0.15, 0.05]))
    sampler = _Gumbel([[i] for i in range(20_000)], seed=3)
    drawn = sampler(torch.empty(0), scores.expand(20_000, -1)).argmax(-1)
    shares = torch.bincount(drawn, minlength=4) / 20_000
    # four standard errors of a share near one half
    torch.testing.assert_close(shares, scores.exp(), rtol=0, atol=4 * (0.25 / 20_000) ** 0.5)


def test_an_adapter_changes_answers_and_is_switched(loaded):
    tuned = run(loaded.model, loaded.tokenizer)
    with loaded.base() as model:
        base = run(model, loaded.tokenizer)
    assert base != tuned
    assert run(loaded.model, loaded.tokenizer) == tuned
