"""Token facts against a second tokenisation under the real limit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradian_core.audit import collect_tokens as module
from gradian_core.audit.collect_tokens import collect_tokens, error_bound
from gradian_core.audit.samples import CHATML, chat_items, items, tokenizer, tokens, training
from gradian_core.data.encode import encode
from gradian_core.data.files import dataset_from_rows
from gradian_core.runs.artifact import Value

TOKENIZER = tokenizer()
ROWS = [*items(7), {"text": "raw"}, {"prompt": "p" * 300, "completion": "c"}]
DATASET = dataset_from_rows(ROWS)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 400))
def test_arithmetic_cuts_as_the_tokenizer_does(limit):
    facts = collect_tokens(DATASET, TOKENIZER, None, limit)
    wanted = encode(DATASET, TOKENIZER.tokenizer, max_seq_length=limit)
    for name in ("input_ids", "supervised", "offsets", "full_lengths", "full_supervised", "rows"):
        assert np.array_equal(getattr(facts.tokens, name), getattr(wanted.tokens, name)), name
    assert facts.tokens.ids == wanted.tokens.ids
    lost = wanted.tokens.full_supervised > wanted.tokens.supervised_counts
    assert np.array_equal(facts.answer_cut, lost)


@pytest.mark.parametrize("limit", [None, 1, 60])
def test_ends_are_those_of_whole_rows(limit):
    facts = collect_tokens(DATASET, TOKENIZER, None, limit)
    whole = encode(DATASET, TOKENIZER.tokenizer, max_seq_length=10**6).tokens
    for index, end in enumerate(facts.ends):
        ids, supervised = whole.row(index)
        assert end == ids[supervised][-1]
    assert TOKENIZER.tokenizer.convert_ids_to_tokens(int(facts.ends[0])) == "<|im_end|>"


def test_rows_without_targets_have_no_end():
    rows = [{"messages": [{"role": "user", "content": "alone"}]}, *items(2)]
    facts = tokens(items=rows)
    assert facts.ends.tolist()[0] == -1
    assert facts.problems == {0: "there is no assistant turn"}
    assert not facts.answer_cut.any()
    only = tokens(items=rows[:1])
    assert only.ends.tolist() == [-1]


@pytest.mark.parametrize(
    ("given_limit", "setting", "model", "limit", "source"),
    [
        (None, None, None, None, "no limit was found"),
        (100, Value(50, "axolotl.yml:3"), None, 100, "--max-seq-length"),
        (None, Value(50, "axolotl.yml:3"), None, 50, "axolotl.yml:3"),
        (None, Value(512.0, "default of axolotl"), 256, 256, "model_max_length of the tokenizer"),
        (None, Value(None, "torchtune.yaml:2"), None, None, "no limit was found"),
        (None, Value("long", "x"), 77, 77, "model_max_length of the tokenizer"),
        (None, Value(True, "x"), None, None, "no limit was found"),
        (100, None, 99, 99, "model_max_length of the tokenizer"),
    ],
)
def test_the_effective_limit_and_its_source(given_limit, setting, model, limit, source):
    values = {} if setting is None else {"max_seq_length": setting}
    facts = collect_tokens(
        dataset_from_rows(items(2)),
        tokenizer(model_max_length=model),
        training(**values),
        given_limit,
    )
    assert facts.max_seq_length == limit
    assert facts.limit_source == source


def test_a_template_that_refuses_everything_is_told_and_not_fatal():
    refusing = tokenizer(chat_template="{{ raise_exception('no') }}")
    facts = tokens(3, tokenizer=refusing)
    assert facts.problems == dict.fromkeys(range(3), "the chat template refuses it: no")
    assert facts.ends.tolist() == [-1, -1, -1]


def test_a_sample_says_so_and_is_the_same_each_time():
    dataset = dataset_from_rows(chat_items(50))
    facts = collect_tokens(dataset, TOKENIZER, sample=10)
    again = collect_tokens(dataset, TOKENIZER, sample=10)
    assert len(facts.tokens) == 10
    assert facts.sampled is not None
    assert facts.sampled.tolist() == again.sampled.tolist() == sorted(set(facts.sampled.tolist()))
    assert facts.tokens.ids == tuple(dataset[int(i)].id for i in facts.sampled)
    assert facts.notes[-1].startswith("10 of 50 rows were tokenised, drawn at random")
    assert collect_tokens(dataset, TOKENIZER, sample=50).sampled is None


def test_large_data_sets_are_sampled_by_themselves(monkeypatch):
    monkeypatch.setattr(module, "SAMPLE_ABOVE", 20)
    monkeypatch.setattr(module, "SAMPLE_SIZE", 5)
    assert len(collect_tokens(dataset_from_rows(items(21)), TOKENIZER).tokens) == 5
    assert len(collect_tokens(dataset_from_rows(items(20)), TOKENIZER).tokens) == 20


def test_the_error_bound_covers():
    draw = np.random.default_rng(0)
    shares = draw.binomial(400, 0.5, size=2000) / 400
    assert 0.93 <= np.mean(np.abs(shares - 0.5) <= error_bound(400)) <= 0.98


def test_tokens_are_kept_and_found_again(tmp_path, monkeypatch):
    first = collect_tokens(DATASET, TOKENIZER, None, 60, cache_dir=tmp_path)
    monkeypatch.setattr("gradian_core.data.cache.encode", None)
    # one entry serves every limit
    second = collect_tokens(DATASET, TOKENIZER, None, 60, cache_dir=tmp_path)
    third = collect_tokens(DATASET, TOKENIZER, None, 10, cache_dir=tmp_path)
    assert np.array_equal(first.tokens.input_ids, second.tokens.input_ids)
    assert first.ends.tolist() == third.ends.tolist()
    assert third.tokens.lengths.max() == 10


@pytest.mark.parametrize("limit", [None, 10])
def test_arrays_cannot_be_changed_by_a_check(limit):
    facts = tokens(3, max_seq_length=limit)
    for array in (
        facts.ends,
        facts.answer_cut,
        *(getattr(facts.tokens, n) for n in ("input_ids", "supervised", "offsets", "full_lengths")),
        *(getattr(facts.tokens, n) for n in ("full_supervised", "rows", "supervision")),
    ):
        assert not array.flags.writeable


def test_what_is_known_of_a_tokenizer():
    facts = tokenizer(bos="<s>", eos="<|endoftext|>", pad=None, generation_eos=[257, 999])
    assert facts.bos == ("<s>", 260)
    assert facts.eos == ("<|endoftext|>", 258)
    assert facts.pad is None
    assert facts.end_of_turn == ("<|im_end|>", 257)
    assert facts.end_tokens == {257, 258, 999}
    assert facts.generation_eos == {257, 999}
    assert facts.chat_template == CHATML
    assert facts.model_max_length is None
    assert facts.vocab_size == 261
    bare = tokenizer(chat_template=None, eos=None)
    assert bare.end_of_turn is bare.chat_template is bare.eos is None
    assert bare.end_tokens == frozenset()
