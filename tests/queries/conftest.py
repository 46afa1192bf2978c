"""Tokenizers of several kinds, and results of an evaluation that nobody had to run."""

from __future__ import annotations

from pathlib import Path

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from gradian_core.data.files import dataset_from_rows
from gradian_core.evaluation.result import CapabilityResult, ItemOutcome
from gradian_core.specs import MetricSpec

TEMPLATES = Path(__file__).parents[1] / "data" / "templates"
ADDED = ["<s>", "</s>", "<|im_start|>", "<|im_end|>", "<|endoftext|>", "<unk>"]
CORPUS = ["the capital of France is Paris. the capital of Spain is Madrid. user assistant system"]


def byte_level(template, eos):
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=330, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(CORPUS * 3, trainer)
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token in ADDED])
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token=eos, chat_template=template
    )


def characters(template, eos):
    """One token a character."""
    from transformers import PreTrainedTokenizerFast

    marks = {mark: i for i, mark in enumerate(ADDED)}
    vocab = marks | {chr(c): len(ADDED) + i for i, c in enumerate([10, *range(32, 127)])}
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=[], unk_token="<unk>"))
    tokenizer.decoder = decoders.Fuse()
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token in ADDED])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token=eos, chat_template=template
    )


def demo(_template, _eos):
    from transformers import AutoTokenizer

    from gradian_core.demo import MODEL_FOLDER

    return AutoTokenizer.from_pretrained(MODEL_FOLDER)


@pytest.fixture(scope="session")
def make_tokenizer():
    """Return the named tokenizer; built once."""
    qwen = (TEMPLATES / "qwen2.5.jinja").read_text(encoding="utf-8")
    made = {}
    kinds = {
        "demo": (demo, None, None),
        "byte-level": (byte_level, qwen, "<|im_end|>"),
        "characters": (characters, qwen, "<|im_end|>"),
        "plain": (byte_level, None, "</s>"),
        "endless": (byte_level, None, None),
    }

    def make(name):
        if name not in made:
            build, template, eos = kinds[name]
            made[name] = build(template, eos)
        return made[name]

    return make


@pytest.fixture(scope="session")
def evaluated():
    """Return eval rows and a result: items as ``(base, tuned)`` or dicts of outcome fields."""

    def make(*items, prompt="What is the capital of Spain?", metric="contains", rows=None):
        rows = rows or [{"prompt": prompt, "completion": "gold"}] * len(items)
        examples = dataset_from_rows(rows)
        outcomes = []
        for example, item in zip(examples, items, strict=True):
            given = (
                item
                if isinstance(item, dict)
                else dict(zip(("base_output", "tuned_output"), item, strict=True))
            )
            values = {
                "id": example.id,
                "row": example.row,
                "prompt": example.prompt[-1].content,
                "reference": example.answer,
                "base_score": 1.0,
                "tuned_score": 0.0,
                **given,
            }
            outcomes.append(ItemOutcome(**values))
        n = len(outcomes)
        base = sum(o.base_score for o in outcomes) / n
        tuned = sum(o.tuned_score for o in outcomes) / n
        result = CapabilityResult(
            name="c", metric=metric, proxy_used=False, items=tuple(outcomes), base=base,
            tuned=tuned, delta=tuned - base, ci_low=-1.0, ci_high=0.0, ci_level=0.95,
            verdict="regressed", base_failures=0,
        )  # fmt: skip
        return result, list(examples)

    return make


@pytest.fixture(scope="session")
def spec():
    """Return the spec of a metric."""

    def make(**changes):
        values = {"name": "contains", "summary": "s", "factory": "a.b:C", **changes}
        return MetricSpec(**values)

    return make
