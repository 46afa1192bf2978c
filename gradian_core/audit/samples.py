"""Small facts for the examples that every check ships, made by the code that makes real ones.

>>> facts = rows(n=50)
>>> len(facts)
50
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from gradian_core.audit.collect_examples import collect_examples
from gradian_core.audit.collect_log import collect_log
from gradian_core.audit.collect_tokenizer import tokenizer_facts
from gradian_core.audit.collect_tokens import collect_tokens
from gradian_core.audit.facts import ExampleFacts, LogFacts, TokenFacts, TokenizerFacts
from gradian_core.data.files import dataset_from_rows
from gradian_core.runs.artifact import AdapterInfo, TrainerLog, TrainingConfig, Value

__all__ = [
    "CHATML",
    "adapter",
    "chat_items",
    "chat_rows",
    "items",
    "log",
    "rows",
    "tokenizer",
    "tokens",
    "training",
]

Row = Mapping[str, Any]

CHATML = (
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
"""A chat template without surprises."""
_PLACES = ("harbour", "market", "library", "station", "garden", "bridge", "museum", "airport")
_THINGS = ("opening hours", "address", "history", "ticket price", "nearest tram stop")
_LINEAR = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


def items(n: int = 200) -> list[Row]:
    """Return ``n`` ordinary prompt and completion rows, all different."""
    made: list[Row] = []
    for i in range(n):
        thing, place = _THINGS[i % len(_THINGS)], _PLACES[i // len(_THINGS) % len(_PLACES)]
        town = f"town {i // (len(_THINGS) * len(_PLACES))}"
        made.append(
            {
                "prompt": f"What is the {thing} of the {place} in {town}?",
                "completion": f"For the {place} of {town} the {thing} is on file under number {i}.",
            }
        )
    return made


def rows(n: int = 200, items: Iterable[Row] | None = None) -> ExampleFacts:
    """Return facts of rows.

    Parameters
    ----------
    n
        How many ordinary rows, where no rows are given.
    items
        The rows, in any shape that a file may have.
    """
    return collect_examples(dataset_from_rows(_ordinary(n) if items is None else items))


def chat_rows(
    n: int = 200,
    *,
    system: str | None = None,
    conversations: Iterable[Sequence[tuple[str, str]]] | None = None,
) -> ExampleFacts:
    """Return facts of ``messages`` rows.

    Parameters
    ----------
    n
        How many ordinary conversations, where none are given.
    system
        System message in front of each.
    conversations
        ``(role, content)`` pairs of each.
    """
    return rows(items=chat_items(n, system=system, conversations=conversations))


def chat_items(
    n: int = 200,
    *,
    system: str | None = None,
    conversations: Iterable[Sequence[tuple[str, str]]] | None = None,
) -> list[Row]:
    """Return ``messages`` rows; see :func:`chat_rows`."""
    if conversations is None:
        conversations = [
            (("user", row["prompt"]), ("assistant", row["completion"])) for row in _ordinary(n)
        ]
    head = () if system is None else (("system", system),)
    return [
        {"messages": [{"role": role, "content": text} for role, text in (*head, *turns)]}
        for turns in conversations
    ]


def tokens(
    n: int = 200,
    items: Iterable[Row] | None = None,
    *,
    tokenizer: TokenizerFacts | None = None,
    training: TrainingConfig | None = None,
    max_seq_length: int | None = None,
) -> TokenFacts:
    """Return token facts of rows; with the default tokenizer, one ASCII letter is one token.

    Parameters
    ----------
    n, items
        As for :func:`rows`.
    tokenizer
        The tokenizer; ChatML if None.
    training, max_seq_length
        As for :func:`gradian_core.audit.collect_tokens.collect_tokens`.
    """
    dataset = dataset_from_rows(_ordinary(n) if items is None else items)
    return collect_tokens(dataset, tokenizer or _default_tokenizer(), training, max_seq_length)


def tokenizer(
    *,
    chat_template: str | None = CHATML,
    bos: str | None = None,
    eos: str | None = "<|im_end|>",
    pad: str | None = "<|pad|>",
    model_max_length: int | None = None,
    adds_bos: bool = False,
    generation_eos: Iterable[int] = (),
    extra_tokens: Sequence[str] = (),
) -> TokenizerFacts:
    """Return a byte-level tokenizer in memory: special tokens and, for the rest, bytes.

    Parameters
    ----------
    chat_template
        Its template, None for none.
    bos, eos, pad
        Special tokens, None for none.
    model_max_length
        Its limit, None for none.
    adds_bos
        Whether it puts ``bos`` in front of plain text by itself.
    generation_eos
        ``eos_token_id`` of the generation config.
    extra_tokens
        Further added tokens.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    special = ["<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|pad|>", *extra_tokens]
    special += [token for token in (bos, eos, pad) if token and token not in special]
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    backend = Tokenizer(models.BPE({letter: i for i, letter in enumerate(letters)}, []))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens(special)
    if adds_bos and bos:
        backend.post_processor = processors.TemplateProcessing(
            single=f"{bos} $A", special_tokens=[(bos, backend.token_to_id(bos))]
        )
    limit = {} if model_max_length is None else {"model_max_length": model_max_length}
    made = PreTrainedTokenizerFast(
        tokenizer_object=backend, bos_token=bos, eos_token=eos, pad_token=pad, **limit
    )
    made.chat_template = chat_template
    return tokenizer_facts(made, "sample", generation_eos=generation_eos)


def training(
    tool: str = "transformers", version: str | None = None, **values: Any
) -> TrainingConfig:
    """Return settings under transformers' names, each from ``sample``; a Value is taken as it is.

    Nothing is filled in: what is not given was not found anywhere.
    """
    settings = {
        key: value if isinstance(value, Value) else Value(value, "sample")
        for key, value in values.items()
    }
    return TrainingConfig(tool=tool, version=version, values=settings)


def adapter(**raw: Any) -> AdapterInfo:
    """Return a LoRA adapter of rank 16 and alpha 32 on all linear layers.

    Parameters
    ----------
    **raw
        Keys of ``adapter_config.json`` that differ; None leaves a key out.
    """
    body: dict[str, Any] = {
        "peft_type": "LORA",
        "base_model_name_or_path": "example/base-1b",
        "r": 16,
        "lora_alpha": 32,
        "lora_dropout": 0.0,
        "target_modules": list(_LINEAR),
        "use_rslora": False,
        **raw,
    }
    body = {key: value for key, value in body.items() if value is not None}
    return AdapterInfo(
        path=Path(body.pop("path", "sample-adapter")),
        peft_type=body.get("peft_type", "LORA"),
        base_model=body.get("base_model_name_or_path"),
        r=body.get("r"),
        lora_alpha=body.get("lora_alpha"),
        raw=body,
    )


def log(
    loss: Sequence[float | str | None] = (),
    *,
    grad_norm: Sequence[float | str | None] = (),
    learning_rate: Sequence[float | None] = (),
    eval: Iterable[tuple[int, float | str]] = (),  # noqa: A002 - the name that logs use
    steps: Sequence[int] | None = None,
    epochs: float | None = None,
    global_step: int | None = None,
    max_steps: int | None = None,
    closing: Mapping[str, Any] | None = None,
) -> LogFacts:
    """Return log facts, one record a value and step.

    Parameters
    ----------
    loss, grad_norm, learning_rate
        Values of the training records; None leaves one out. Shorter ones end early.
    eval
        ``(step, eval_loss)`` of the evaluations.
    steps
        Steps of the training records; 1, 2, … if None.
    epochs
        Epochs of the whole log; 1 if None.
    global_step, max_steps
        Steps taken and planned; the last step if None.
    closing
        The closing record, such as ``{"train_loss": 1.2}``.
    """
    columns = {"loss": loss, "grad_norm": grad_norm, "learning_rate": learning_rate}
    count = max(map(len, columns.values()))
    numbers = list(range(1, count + 1)) if steps is None else list(steps)
    evals = list(eval)
    last = max([*numbers, *(step for step, _ in evals)], default=0)
    per_step = (1.0 if epochs is None else epochs) / max(last, 1)
    records: list[dict[str, Any]] = []
    for i, step in enumerate(numbers):
        values = {k: c[i] for k, c in columns.items() if i < len(c) and c[i] is not None}
        records.append({"step": step, "epoch": step * per_step, **values})
    records += [{"step": s, "epoch": s * per_step, "eval_loss": value} for s, value in evals]
    records.sort(key=lambda record: record["step"])
    if closing is not None:
        records.append({"step": last, **closing})
    return collect_log(
        TrainerLog(
            records=tuple(records),
            global_step=last if global_step is None else global_step,
            max_steps=last if max_steps is None else max_steps,
        )
    )


_ordinary = items


@cache
def _default_tokenizer() -> TokenizerFacts:
    return tokenizer()
