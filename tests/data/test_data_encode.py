"""Plain text, truncation, slow tokenizers and the promise to tokenise each row once."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers
from transformers import PreTrainedTokenizer, PreTrainedTokenizerFast

from gradian_core.data.cache import tokenizer_fingerprint
from gradian_core.data.encode import encode, prompt_ids
from gradian_core.data.files import dataset_from_rows
from gradian_core.data.tokens import Supervision
from gradian_core.errors import InputError

CHAT = (
    "{% for m in messages %}{{ m.role[0] }}:{{ m.content }}</s>{% endfor %}"
    "{% if add_generation_prompt %}a:{% endif %}"
)


@pytest.fixture(scope="module")
def plain(build_tokenizer):
    return build_tokenizer(adds_bos=True)


@pytest.fixture(scope="module")
def chat(build_tokenizer):
    return build_tokenizer(CHAT)


@pytest.fixture(scope="module")
def trimming(build_tokenizer):
    return {trim: build_tokenizer(CHAT, trim=trim) for trim in (True, False)}


def run(tokenizer, *rows, **options):
    return encode(dataset_from_rows(rows), tokenizer, **{"max_seq_length": 1000, **options})


def split(encoded, tokenizer, index=0):
    """Text of the prompt tokens and of the target tokens."""
    ids, mask = encoded.tokens.row(index)
    return tokenizer.decode(ids[~mask]), tokenizer.decode(ids[mask])


class TestWithoutTemplate:
    @pytest.mark.parametrize(
        ("prompt", "completion", "expected"),
        [
            ("What?", "Paris", ("<s>What?\n", "Paris</s>")),
            ("The sky is", " blue", ("<s>The sky is", " blue</s>")),
            ("Q:\n", "Paris", ("<s>Q:\n", "Paris</s>")),
            ("", "Paris", ("<s>", "Paris</s>")),
            ("Q", "", ("<s>Q\n", "</s>")),
            ("", "", ("<s>", "</s>")),
        ],
    )
    def test_prompt_and_answer(self, plain, prompt, completion, expected):
        encoded = run(plain, {"prompt": prompt, "completion": completion})
        assert split(encoded, plain) == expected
        assert encoded.counts == {Supervision.PROMPT: 1}
        assert "no chat template" in encoded.notes[0]

    def test_prompt_ids_are_a_prefix(self, plain):
        rows = [{"prompt": "What?", "completion": "a"}, {"prompt": "It is", "completion": " a"}]
        encoded = run(plain, *rows)
        for index, example in enumerate(dataset_from_rows(rows)):
            ids, mask = encoded.tokens.row(index)
            assert prompt_ids(example, plain) == ids[: np.flatnonzero(mask)[0]].tolist()

    def test_what_follows_the_answer_is_left_out(self, plain):
        messages = [{"role": r, "content": r[0]} for r in ("user", "assistant", "user")]
        assert split(run(plain, {"messages": messages}), plain) == ("<s>u\n", "a</s>")

    def test_system_turn_is_prompt(self, plain):
        encoded = run(plain, {"system": "Be brief.", "prompt": "What?", "completion": "Paris"})
        assert split(encoded, plain) == ("<s>Be brief.\nWhat?\n", "Paris</s>")

    def test_several_answers_are_supervised_whole_and_reported(self, plain):
        row = {"messages": [{"role": r, "content": r[0]} for r in ("user", "assistant") * 2]}
        encoded = run(plain, row)
        assert split(encoded, plain) == ("<s>", "u\na\nu\na")
        assert encoded.counts == {Supervision.WHOLE: 1}
        assert "several answers" in encoded.notes[0]
        last = run(plain, row, supervise="last")
        assert split(last, plain) == ("<s>u\na\nu\n", "a</s>")

    def test_no_answer_means_no_target(self, plain):
        encoded = run(plain, {"messages": [{"role": "user", "content": "What?"}]})
        assert split(encoded, plain) == ("<s>What?", "")
        assert encoded.problems == {0: "there is no assistant turn"}

    def test_eos_of_the_tokenizer_is_not_doubled(self, build_tokenizer):
        from tokenizers import processors

        tokenizer = build_tokenizer()
        end = tokenizer.eos_token_id
        tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
            single="$A </s>", special_tokens=[("</s>", end)]
        )
        encoded = run(tokenizer, {"prompt": "What?", "completion": "Paris"})
        assert split(encoded, tokenizer) == ("What?\n", "Paris</s>")
        example = dataset_from_rows([{"prompt": "What?", "completion": "Paris"}])[0]
        assert tokenizer.decode(prompt_ids(example, tokenizer)) == "What?\n"

    def test_no_eos_token(self, build_tokenizer):
        tokenizer = build_tokenizer(added=("<s>",), bos="<s>", eos=None)
        encoded = run(tokenizer, {"prompt": "What?", "completion": "Paris"})
        assert split(encoded, tokenizer)[1] == "Paris"
        assert any("no end-of-sequence token" in note for note in encoded.notes)


class TestRawText:
    def test_whole_row(self, plain):
        encoded = run(plain, {"text": "the capital"})
        assert split(encoded, plain) == ("<s>", "the capital")
        assert encoded.counts == {Supervision.WHOLE: 1}
        assert encoded.notes == ()

    def test_begin_of_sequence_once(self, plain):
        encoded = run(plain, {"text": "<s>the capital"}, {"text": "the capital"})
        assert encoded.tokens.row(0)[0].tolist() == encoded.tokens.row(1)[0].tolist()
        assert encoded.notes[0].startswith("1 of 2 rows write the begin-of-sequence token")

    def test_with_a_template_too(self, chat):
        encoded = run(chat, {"text": "the capital"}, {"prompt": "q", "completion": "a"})
        assert encoded.counts == {Supervision.WHOLE: 1, Supervision.PREFIX: 1}

    def test_empty(self, chat):
        encoded = run(chat, {"text": ""})
        assert encoded.tokens.lengths.tolist() == [0]
        assert encoded.unsupervised.tolist() == [0]

    def test_has_no_prompt(self, chat):
        with pytest.raises(InputError, match="raw text"):
            prompt_ids(dataset_from_rows([{"text": "x"}])[0], chat)


class TestTruncation:
    def test_keeps_the_first_tokens_and_the_full_numbers(self, chat):
        rows = [{"prompt": "q" * n, "completion": "a" * 9} for n in (3, 30)]
        whole = run(chat, *rows)
        cut = run(chat, *rows, max_seq_length=12)
        for index in range(2):
            for kept, full in zip(cut.tokens.row(index), whole.tokens.row(index), strict=True):
                assert kept.tolist() == full[:12].tolist()
        assert cut.tokens.full_lengths.tolist() == whole.tokens.lengths.tolist()
        assert cut.tokens.full_supervised.tolist() == whole.tokens.supervised_counts.tolist()
        assert cut.truncated.tolist() == [0, 1]
        assert whole.truncated.tolist() == []
        assert cut.unsupervised.tolist() == [1]
        assert cut.problems == {}

    def test_the_first_token_is_never_a_target(self, build_tokenizer):
        tokenizer = build_tokenizer()
        encoded = run(tokenizer, {"text": "abc"}, {"prompt": "", "completion": "xyz"})
        for index in range(2):
            assert not encoded.tokens.row(index)[1][0]
        assert encoded.tokens.full_supervised.tolist() == [2, 3]


class TestOffsets:
    @settings(
        max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
    )
    @given(prompt=st.text(max_size=10), answer=st.text(max_size=10), trim=st.booleans())
    def test_every_character_of_the_answer_is_in_a_target(self, prompt, answer, trim, trimming):
        tokenizer = trimming[trim]
        encoded = run(tokenizer, {"prompt": prompt, "completion": answer})
        ids, mask = encoded.tokens.row(0)
        # A byte-level tokenizer loses nothing: targets must hold the answer's bytes to the end.
        text = tokenizer.decode(ids[mask])
        assert text.endswith(f"{answer}</s>")
        before = tokenizer.decode(ids[~mask])
        assert len(text) - len(f"{answer}</s>") + len(before) == len(f"u:{prompt}</s>a:")


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    prompt=st.text("ab é👍", max_size=8),
    answer=st.text("ab é👍", max_size=8),
    chat_too=st.booleans(),
)
def test_sentencepiece_style(prompt, answer, chat_too, sentencepiece_style):
    tokenizer = sentencepiece_style[chat_too]
    encoded = run(tokenizer, {"prompt": f"b{prompt}", "completion": answer})
    ids, mask = encoded.tokens.row(0)
    text = "".join(tokenizer.convert_ids_to_tokens(ids[mask].tolist()))
    wanted = "".join(
        piece
        if piece in "ab"
        else "▁"
        if piece == " "
        else "".join(f"<0x{b:02X}>" for b in piece.encode())
        for piece in answer
    )
    assert text.endswith(f"{wanted}</s>")
    # A merge such as ▁a may reach one character into the prompt, never further.
    assert len(text) - len(f"{wanted}</s>") <= 1


@pytest.fixture(scope="module")
def sentencepiece_style():
    """Llama 2 style: spaces become ▁, one is put in front, unknown characters become bytes."""
    pieces = [
        "<unk>",
        "<s>",
        "</s>",
        *(f"<0x{b:02X}>" for b in range(256)),
        "▁",
        "a",
        "b",
        ":",
        "u",
    ]
    merges = [("▁", "a"), ("a", "b"), ("b", "a"), ("▁", "▁")]
    pieces += ["".join(merge) for merge in merges]
    core = Tokenizer(
        models.BPE(
            {piece: i for i, piece in enumerate(pieces)},
            merges,
            byte_fallback=True,
            unk_token="<unk>",
        )
    )
    core.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    return [
        PreTrainedTokenizerFast(
            tokenizer_object=core, bos_token="<s>", eos_token="</s>", chat_template=template
        )
        for template in (None, CHAT)
    ]


def test_each_row_is_tokenised_once_in_batches(chat, monkeypatch):
    calls = []
    original = type(chat).__call__

    def counting(self, texts, **options):
        calls.append(list(texts))
        return original(self, texts, **options)

    monkeypatch.setattr(type(chat), "__call__", counting)
    rows = [{"prompt": f"q{i}", "completion": f"a{i}"} for i in range(700)]
    encoded = run(chat, *rows)
    assert [len(texts) for texts in calls] == [512, 188]
    assert [text for texts in calls for text in texts] == [
        f"u:q{i}</s>a:a{i}</s>" for i in range(700)
    ]
    assert len(encoded.tokens) == 700


def test_batches_do_not_show(chat):
    rows = [{"prompt": "q" * (i % 7), "completion": "a" * (i % 5)} for i in range(1100)]
    encoded = run(chat, *rows)
    for index in (0, 511, 512, 1023, 1024, 1099):
        (ids, mask) = run(chat, rows[index]).tokens.row(0)
        assert encoded.tokens.row(index)[0].tolist() == ids.tolist()
        assert encoded.tokens.row(index)[1].tolist() == mask.tolist()
    assert encoded.tokens.rows.tolist() == list(range(1100))
    assert encoded.tokens.ids[512].endswith("-512")


def test_no_rows(chat):
    encoded = encode((), chat, max_seq_length=8)
    assert len(encoded.tokens) == 0
    assert encoded.tokens.offsets.tolist() == [0]


class SlowTokenizer(PreTrainedTokenizer):
    """One token a character, or a pair of equal ones: not stable under prefixes."""

    pairs = False

    def __init__(self, **options):
        self._vocabulary = {chr(code): code for code in range(128)} | {"<unk>": 128, "</s>": 129}
        super().__init__(eos_token="</s>", unk_token="<unk>", **options)

    @property
    def vocab_size(self):
        return len(self._vocabulary)

    def get_vocab(self):
        return dict(self._vocabulary)

    def _tokenize(self, text, **_):
        return list(text[::-1]) if self.pairs else list(text)

    def _convert_token_to_id(self, token):
        return self._vocabulary.get(token, 128)

    def _convert_id_to_token(self, index):
        return next(token for token, i in self._vocabulary.items() if i == index)


class TestSlowTokenizer:
    def test_prefixes_of_ids(self):
        tokenizer = SlowTokenizer(chat_template=CHAT)
        encoded = run(tokenizer, {"prompt": "qq", "completion": "aa"}, {"text": "xy"})
        ids, mask = encoded.tokens.row(0)
        tokens = np.array(tokenizer.convert_ids_to_tokens(ids.tolist()))
        assert tokens[mask].tolist() == ["a", "a", "</s>"]
        assert encoded.tokens.row(1)[1].tolist() == [False, True]
        example = dataset_from_rows([{"prompt": "qq", "completion": "aa"}])[0]
        assert prompt_ids(example, tokenizer) == ids[~mask].tolist()

    def test_fingerprint(self):
        one, two = (SlowTokenizer(chat_template=template) for template in (CHAT, CHAT + " "))
        assert tokenizer_fingerprint(one) == tokenizer_fingerprint(
            SlowTokenizer(chat_template=CHAT)
        )
        assert tokenizer_fingerprint(one) != tokenizer_fingerprint(two)

    def test_unstable_prefixes_are_refused_by_row(self, monkeypatch):
        monkeypatch.setattr(SlowTokenizer, "pairs", True)
        tokenizer = SlowTokenizer(chat_template=CHAT.replace("</s>", ";"))
        encoded = run(tokenizer, {"prompt": "q", "completion": "a"})
        assert encoded.unsupervised.tolist() == [0]
        assert "no character offsets" in encoded.problems[0]
        assert "no character offsets" in encoded.notes[0]


def test_torch_is_not_imported():
    code = (
        "import sys, gradian_core.data.cache, gradian_core.data.encode, gradian_core.data.files\n"
        "assert not {'torch', 'transformers', 'pyarrow', 'datasets'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
