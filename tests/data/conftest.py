"""A small byte-level BPE tokenizer that can wear any chat template."""

from __future__ import annotations

from pathlib import Path

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

TEMPLATES = Path(__file__).parent / "templates"
ADDED = {
    "qwen2.5": ("<|im_start|>", "<|im_end|>", "<|endoftext|>"),
    "qwen3": ("<|im_start|>", "<|im_end|>", "<|endoftext|>"),
    "gemma": ("<bos>", "<eos>", "<start_of_turn>", "<end_of_turn>"),
    "llama3": (
        "<|begin_of_text|>",
        "<|end_of_text|>",
        "<|start_header_id|>",
        "<|end_header_id|>",
        "<|eot_id|>",
    ),
    "ministral3": (
        "<s>",
        "</s>",
        "[INST]",
        "[/INST]",
        "[SYSTEM_PROMPT]",
        "[/SYSTEM_PROMPT]",
        "[TOOL_CALLS]",
        "[ARGS]",
        "[TOOL_RESULTS]",
        "[/TOOL_RESULTS]",
    ),
}
BOS = {"gemma": "<bos>", "llama3": "<|begin_of_text|>", "ministral3": "<s>"}
EOS = {
    "qwen2.5": "<|im_end|>",
    "qwen3": "<|im_end|>",
    "gemma": "<eos>",
    "llama3": "<|eot_id|>",
    "ministral3": "</s>",
}
TURN_END = EOS | {"gemma": "<end_of_turn>"}
CORPUS = [
    "the capital of France is Paris. the capital of Spain is Madrid. user assistant system"
] * 3


def build(template=None, added=("<s>", "</s>"), bos="<s>", eos="</s>", adds_bos=False, trim=True):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.add_special_tokens(
        [t if isinstance(t, AddedToken) else AddedToken(t, special=True) for t in added]
    )
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=trim)
    if adds_bos:
        bos_id = tokenizer.token_to_id(bos)
        tokenizer.post_processor = processors.Sequence(
            [
                processors.ByteLevel(trim_offsets=trim),
                processors.TemplateProcessing(single=f"{bos} $A", special_tokens=[(bos, bos_id)]),
            ]
        )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=bos,
        eos_token=eos,
        chat_template=template,
        clean_up_tokenization_spaces=False,
    )


@pytest.fixture(scope="session")
def build_tokenizer():
    """The builder, for templates written in a test."""
    return build


@pytest.fixture(scope="session")
def real_tokenizer():
    """Return a tokenizer with the named real template; built once."""
    made = {}

    def make(name):
        if name not in made:
            text = (TEMPLATES / f"{name}.jinja").read_text(encoding="utf-8")
            made[name] = build(text, ADDED[name], BOS.get(name), EOS[name], adds_bos=name in BOS)
        return made[name]

    return make


@pytest.fixture(scope="session")
def turn_end():
    """Return the token that ends a turn, by template."""
    return TURN_END
