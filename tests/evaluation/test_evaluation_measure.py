"""Measuring a capability from rows to result."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from gradian_core.config.models import EvaluationSection
from gradian_core.data.example import Example, Turn
from gradian_core.errors import InputError, PluginError
from gradian_core.evaluation.findings import evaluation_findings
from gradian_core.evaluation.judge import Judge
from gradian_core.evaluation.margin import preference_margins
from gradian_core.evaluation.measure import measure
from gradian_core.specs import MetricSpec

TEXT = MetricSpec(name="letters", summary="", factory="house.metrics:Letters")
ABSENT = replace(TEXT, reference_is_answer=False)
LIKELY = replace(TEXT, name="likely", needs="likelihood")
SETTINGS = EvaluationSection(max_new_tokens=8, batch_size=3, n_bootstrap=200)


class Fake:
    """A metric that answers with a function."""

    def __init__(self, function):
        self.score = function


def digest(prediction, reference):
    """An arbitrary score in {0, 1} that depends on both texts."""
    return float((sum(map(ord, prediction)) + len(reference)) % 3 != 0)


MEAN = Fake(lambda logprobs: float(logprobs.mean()))
DIGEST = Fake(digest)


@pytest.fixture
def examples(build):
    rows = ["capital of Peru", "2 + 2", "a longer question about weather", "x", "name a river"]
    return [build.example(i, prompt, f"answer {i}") for i, prompt in enumerate(rows)]


def run(loaded, examples, metric=DIGEST, spec=TEXT, settings=SETTINGS, **more):
    return measure(loaded, examples, metric, spec, settings, name="capability", seed=7, **more)


def chat(prompt, answer=""):
    return f"<|im_start|>user\n{prompt}<|im_end|>\n<|im_start|>assistant\n{answer}"


def greedy(model, tokenizer, prompt, new=8):
    """A plain loop without padding or cache."""
    ids = tokenizer.encode(chat(prompt))
    start = len(ids)
    for _ in range(new):
        with torch.no_grad():
            token = int(model(torch.tensor([ids])).logits[0, -1].argmax())
        if token in {256, 258}:
            break
        ids.append(token)
    return tokenizer.decode(ids[start:], skip_special_tokens=True)


def total(model, tokenizer, prompt, answer):
    """Log-probability of an answer and the end of its turn, from full logits."""
    ids = tokenizer.encode(chat(prompt, answer) + "<|im_end|>")
    start = len(tokenizer.encode(chat(prompt)))
    with torch.no_grad():
        logprobs = torch.log_softmax(model(torch.tensor([ids])).logits[0].double(), -1)
    return [float(logprobs[t - 1, ids[t]]) for t in range(start, len(ids))]


def test_answers_are_those_of_base_and_tuned_model(loaded, examples):
    result = run(loaded, examples)
    for item, example in zip(result.items, examples, strict=True):
        prompt = example.prompt[0].content
        tuned = greedy(loaded.model, loaded.tokenizer, prompt)
        with loaded.base() as model:
            base = greedy(model, loaded.tokenizer, prompt)
        assert (item.base_output, item.tuned_output) == (base, tuned)
        assert item.base_score == digest(base, example.answer)
        assert item.tuned_score == digest(tuned, example.answer)
        assert (item.id, item.row) == (example.id, example.row)
        assert (item.prompt, item.reference) == (prompt, example.answer)
    assert any(item.base_output != item.tuned_output for item in result.items)
    assert result.base == np.mean([item.base_score for item in result.items])
    assert result.delta == pytest.approx(result.tuned - result.base)
    assert result.base_failures == sum(item.base_score == 0 for item in result.items)
    assert (result.name, result.metric, result.proxy_used) == ("capability", "letters", False)


@pytest.mark.parametrize("greedily", [True, False])
def test_the_same_whatever_the_batch_size(loaded, examples, greedily):
    settings = SETTINGS.model_copy(update={"greedy": greedily})
    results = [
        run(loaded, examples, settings=settings.model_copy(update={"batch_size": size}))
        for size in (1, 8)
    ]
    plain = [
        replace(result, items=tuple(replace(item, margin=None) for item in result.items))
        for result in results
    ]
    assert plain[0] == plain[1]
    assert run(loaded, examples, settings=settings) == run(loaded, examples, settings=settings)
    sampled = any("sampled" in note for note in results[0].notes)
    assert sampled != greedily


def always_regressing(texts):
    """A metric under which each item is right for the base model only."""
    return Fake(lambda prediction, reference: float(prediction in texts))


@pytest.mark.parametrize("spec", [TEXT, ABSENT], ids=["reference", "base-output"])
def test_margins_of_regressed_items(build, examples, spec):
    loaded = build.loaded()
    base_texts = {item.base_output for item in run(loaded, examples).items}
    result = run(loaded, examples, always_regressing(base_texts), spec)
    assert result.flipped
    for item, example in zip(result.items, examples, strict=True):
        if not item.regressed:
            assert item.margin is None
            continue
        correct = item.reference if spec.reference_is_answer else item.base_output
        prompt = example.prompt[0].content
        with loaded.base() as model:
            right = sum(total(model, loaded.tokenizer, prompt, correct))
            said = sum(total(model, loaded.tokenizer, prompt, item.tuned_output))
        assert item.margin == pytest.approx(right - said, rel=1e-4, abs=1e-3)


def test_likelihoods_are_those_of_the_answer_and_its_end(loaded, examples):
    result = run(loaded, examples, MEAN, LIKELY)
    assert result.proxy_used
    for item, example in zip(result.items, examples, strict=True):
        prompt = example.prompt[0].content
        tuned = np.mean(total(loaded.model, loaded.tokenizer, prompt, example.answer))
        with loaded.base() as model:
            base = np.mean(total(model, loaded.tokenizer, prompt, example.answer))
        assert item.base_score == pytest.approx(base, rel=1e-5)
        assert item.tuned_score == pytest.approx(tuned, rel=1e-5)
        assert item.base_output is item.tuned_output is item.margin is None
    assert result.base_failures == 0


def test_an_adapter_at_zero_changes_nothing_at_all(build, examples):
    loaded = build.loaded(scale=0.0)
    for metric, spec in ((DIGEST, TEXT), (MEAN, LIKELY)):
        result = run(loaded, examples, metric, spec)
        assert (result.delta, result.verdict) == (0.0, "undecidable")


def test_the_model_is_left_as_it_was(loaded, examples):
    before = {name: tensor.clone() for name, tensor in loaded.model.state_dict().items()}
    states = {name: module.training for name, module in loaded.model.named_modules()}
    hooks = sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in loaded.model.modules())
    config = loaded.model.get_base_model().generation_config
    ids = torch.arange(9)[None]
    with torch.no_grad():
        tuned = loaded.model(ids).logits
        run(loaded, examples)
        run(loaded, examples, MEAN, LIKELY)
        assert torch.equal(loaded.model(ids).logits, tuned)
        with loaded.base() as model:
            assert not torch.equal(model(ids).logits, tuned)
    after = loaded.model.state_dict()
    assert all(torch.equal(after[name], tensor) for name, tensor in before.items())
    assert {name: module.training for name, module in loaded.model.named_modules()} == states
    assert hooks == sum(
        len(m._forward_hooks) + len(m._forward_pre_hooks) for m in loaded.model.modules()
    )
    assert loaded.model.get_base_model().generation_config is config
    assert all(p.grad is None for p in loaded.model.parameters())


def test_the_adapter_is_on_again_after_a_failure(loaded, examples):
    ids = torch.arange(9)[None]
    with torch.no_grad():
        tuned = loaded.model(ids).logits

        def stop(stage, done, total):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            run(loaded, examples, progress=stop)
        assert torch.equal(loaded.model(ids).logits, tuned)


def test_progress_names_stages(loaded, examples):
    seen = []
    run(loaded, examples, MEAN, LIKELY, progress=lambda *step: seen.append(step))
    assert seen == [("base", 3, 5), ("base", 5, 5), ("tuned", 3, 5), ("tuned", 5, 5)]
    seen.clear()
    run(loaded, examples, progress=lambda *step: seen.append(step))
    assert [step[0] for step in seen[:4]] == ["base", "base", "tuned", "tuned"]


def test_copies_of_an_item_count_once(loaded, build):
    rows = [build.example(i, "question", "answer") for i in range(19)]
    rows.append(build.example(19, "another", "answer"))
    once = run(loaded, rows[18:])
    result = run(loaded, rows)
    assert (len(result.items), result.n_distinct, once.n_distinct) == (20, 2, 2)
    for field in ("base", "tuned", "delta", "ci_low", "ci_high", "verdict", "p_value"):
        assert getattr(result, field) == getattr(once, field)
    assert "attribution.repeated_eval_items" in {f.id for f in evaluation_findings(result)}


def test_twenty_copies_of_one_lost_item_are_no_regression(loaded, build):
    rows = [build.example(i, "question", "answer") for i in range(20)]
    said = {item.base_output for item in run(loaded, rows).items}
    result = run(loaded, rows, always_regressing(said))
    assert all(item.regressed for item in result.items)
    assert (result.verdict, result.n_distinct) == ("undecidable", 1)


def test_answers_that_were_cut_off_are_counted(loaded, examples):
    result = run(loaded, examples)
    whole = []
    with loaded.base() as model:
        for example in examples:
            text = greedy(model, loaded.tokenizer, example.prompt[0].content, new=60)
            whole.append(text == greedy(model, loaded.tokenizer, example.prompt[0].content))
    assert [not item.base_cut for item in result.items] == whole
    assert result.max_new_tokens == 8
    (finding,) = [f for f in evaluation_findings(result) if f.id == "attribution.cut_answers"]
    assert finding.evidence["base_cut"] == 5 - sum(whole)
    assert run(loaded, examples, MEAN, LIKELY).max_new_tokens is None


# --- bad input -------------------------------------------------------------------------------


def test_no_rows(loaded):
    with pytest.raises(InputError, match=r"eval\.jsonl has no rows"):
        run(loaded, [], source="eval.jsonl")


@pytest.mark.parametrize("spec", [TEXT, LIKELY])
def test_a_row_without_an_answer(loaded, examples, build, spec):
    rows = [*examples, build.example(17, "what?", None)]
    with pytest.raises(InputError, match=r"eval\.jsonl, row 17 .* no answer"):
        run(loaded, rows, spec=spec, source="eval.jsonl")
    raw = Example(id="0-18", row=18, text="raw text")
    with pytest.raises(InputError, match="row 18"):
        run(loaded, [raw], spec=spec)


def test_rows_that_do_not_fit_are_named(loaded, examples, build):
    long = build.example(11, "x" * 200, "y")
    with pytest.raises(InputError, match=r"row 11 .* has a prompt of \d+ tokens"):
        run(loaded, [*examples, long])
    with pytest.raises(InputError, match=r"row 11 .* has \d+ tokens, more than the 160"):
        run(loaded, [*examples, long], MEAN, LIKELY)


def test_a_reference_that_cannot_be_judged_is_refused_before_anything_is_generated(
    loaded, examples, monkeypatch
):
    def score(prediction, reference):
        if reference == "answer 3":
            raise ValueError("the reference is empty")
        return 1.0

    monkeypatch.setattr(loaded.model, "generate", None)
    with pytest.raises(InputError, match=r"row 3 .* letters cannot judge it: the reference is em"):
        run(loaded, examples, Fake(score))


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (float("nan"), "not a finite number"),
        (float("inf"), "not a finite number"),
        (None, "not a finite number"),
        ("1.0", "not a finite number"),
        (1.5, r"not within \[0, 1\]"),
        (-0.1, r"not within \[0, 1\]"),
    ],
)
def test_scores_out_of_contract_name_the_plugin(loaded, examples, value, words):
    with pytest.raises(PluginError, match=rf"metric letters gave .*row 0.*{words}") as caught:
        run(loaded, examples, Fake(lambda prediction, reference: value))
    assert caught.value.owner == "house.metrics:Letters"


def test_a_failing_metric_is_named(loaded, examples):
    def score(*_given):
        raise KeyError("missing")

    with pytest.raises(PluginError, match=r"letters failed on .*row 0.*KeyError: 'missing'"):
        run(loaded, examples, Fake(score))
    with pytest.raises(PluginError, match=r"likely failed on .*row 0"):
        run(loaded, examples, Fake(score), LIKELY)
    with pytest.raises(PluginError, match="likely gave nan"):
        run(loaded, examples, Fake(lambda logprobs: float("nan")), LIKELY)


def test_a_likelihood_may_be_negative_and_a_bool_is_a_number(build):
    example = build.example(0, "p", "a")
    judge = Judge(metric=Fake(lambda logprobs: np.float32(-3.5)), spec=LIKELY, source="s")
    assert judge.likelihood(np.zeros(1), example) == -3.5
    judge = Judge(metric=Fake(lambda prediction, reference: True), spec=TEXT, source="s")
    assert judge.text("", example) == 1.0


def test_margins_that_cannot_be_measured(loaded, build):
    rows = [build.example(0, "p", "a"), build.example(1, "q", "b")]
    first, second = preference_margins(loaded, rows, ["a", "b" * 300], ["c", "d"], batch_rows=2)
    assert second is None
    assert first == pytest.approx(
        preference_margins(loaded, rows[:1], ["a"], ["c"], batch_rows=1)[0], abs=1e-4
    )
    assert preference_margins(loaded, [], [], [], batch_rows=2) == []


def test_a_system_prompt_and_earlier_turns_are_part_of_the_prompt(loaded):
    turns = (
        Turn("system", "short"),
        Turn("user", "one"),
        Turn("assistant", "1"),
        Turn("user", "two"),
        Turn("assistant", "2"),
    )
    (item,) = run(loaded, [Example(id="0-0", row=0, turns=turns)]).items
    assert item.prompt == "short\none\n1\ntwo"
    assert item.reference == "2"
