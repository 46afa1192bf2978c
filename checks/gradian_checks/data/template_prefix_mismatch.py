"""Prompts that are not the beginning of the conversation they belong to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gradian_checks._data_grade import grade, pick_ids, plural
from gradian_checks._data_template import (
    Mismatch,
    mismatch,
    require_own_template,
    sampled_chats,
)
from gradian_core.audit.facts import ExampleFacts, NotAssessed, TokenizerFacts
from gradian_core.audit.samples import chat_rows, tokenizer
from gradian_core.check import check
from gradian_core.data.example import Example
from gradian_core.data.template import ChatTemplate, TemplateRefusal
from gradian_core.findings import Finding, Severity
from gradian_core.runs.artifact import TrainingConfig

STEPS = ((0.10, Severity.HIGH), (0.01, Severity.LOW))
BORDER_STEPS = ((0.10, Severity.LOW), (0.01, Severity.INFO))
_THINKING = (
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n<think>\n' }}{% endif %}"
)


@check(
    severity=Severity.HIGH,
    since="0.1",
    trips=lambda: {"examples": chat_rows(n=20), "tokenizer": tokenizer(chat_template=_THINKING)},
    clean=lambda: {"examples": chat_rows(n=20), "tokenizer": tokenizer()},
)
def template_prefix_mismatch(
    examples: ExampleFacts,
    tokenizer: TokenizerFacts,
    training: TrainingConfig | None = None,
) -> Iterator[Finding]:
    """Chat template is not prefix-stable.

    Why it matters: trainers find the answer by rendering the prompt alone and taking what comes
    after it. Where the prompt is not the beginning of the conversation, the mask is shifted:
    loss on prompt tokens, or none on the first words of the answer. And at inference the model
    is asked in a form that it was not trained on.

    How to fix: use a template whose generation prompt is what it writes before answers, and
    that leaves earlier turns as they are; or split conversations into rows with one answer.

    Threshold: rows whose earlier turns change once more turns follow (reasoning that is
    stripped from history, for one) above 1 % low, above 10 % high. A generation prompt that no
    answer is preceded by shifts all rows in one way and is a property of the template: medium.
    Where the texts agree and a token reaches over the border (a prompt that ends with a space),
    the mask is off by one token: info above 1 %, low above 10 %. The finding shows what
    differs.

    Not assessed: for raw text, and where the tool writes rows with a template of its own
    (LLaMA-Factory, torchtune, axolotl with a named template). Up to 400 conversations, evenly
    spread, are rendered.
    """
    require_own_template(training)
    sampled = list(sampled_chats(examples))
    if not sampled:
        raise NotAssessed("No row has a prompt and an answer.")
    found: dict[int, Mismatch] = {}
    same: list[tuple[int, str, str]] = []
    template = ChatTemplate(tokenizer.tokenizer) if tokenizer.chat_template else None
    for place, row in sampled:
        if template is None:
            prompt = "".join(turn.content for turn in row.prompt)
            same.append((place, prompt, prompt + (row.answer or "")))
            continue
        try:
            difference = mismatch(template, row)
        except TemplateRefusal:
            continue
        if difference is not None:
            found[place] = difference
        else:
            same += _last_prompt(template, place, row)
    rows = len(sampled)
    for kind in ("history", "generation"):
        hits = {place: m for place, m in found.items() if m.kind == kind}
        severity = grade(len(hits) / rows, STEPS)
        if severity is not None:
            yield _finding(examples, kind, hits, rows, severity)
    yield from _border(examples, tokenizer, same, rows)


def _last_prompt(template: ChatTemplate, place: int, row: Example) -> list[tuple[int, str, str]]:
    if not row.prompt:
        return []
    opened = template.render(row.prompt, row.tools, generation_prompt=True)
    whole = template.render(row.turns, row.tools)
    return [(place, opened, whole)] if whole.startswith(opened) else []


def _finding(
    examples: ExampleFacts, kind: str, hits: dict[int, Mismatch], rows: int, severity: Severity
) -> Finding:
    first = next(iter(hits.values()))
    share = len(hits) / rows
    shown = f"Rendered alone it goes on with {first.alone!r}, in the conversation {first.whole!r}."
    evidence = {
        "rows": len(hits),
        "sampled": rows,
        "share": share,
        "alone": first.alone,
        "in_conversation": first.whole,
        "kind": kind,
    }
    if kind == "generation":
        return Finding(
            id="data.template_prefix_mismatch",
            severity=Severity.MEDIUM,
            title="The template's generation prompt is not what stands before answers",
            detail=f"{shown} A mask that is measured from the prompt is off by the same number "
            "of tokens in every such row.",
            fix="Train with a template whose generation prompt matches, or write the same "
            "beginning into the answers.",
            evidence=evidence,
        )
    return Finding(
        id="data.template_prefix_mismatch",
        severity=severity,
        title=f"In {share:.1%} of the conversations earlier turns change once more turns follow",
        detail=f"{shown} Measured on {plural(rows, 'conversation')}.",
        fix="Split these conversations into rows with one answer each, or use a template that "
        "leaves earlier turns as they are.",
        evidence=evidence,
        example_ids=pick_ids(examples.ids, sorted(hits)),
        # Where the template strips reasoning, that is why.
        because_of="data.reasoning_dropped",
    )


def _border(
    examples: ExampleFacts,
    tokenizer: TokenizerFacts,
    texts: Sequence[tuple[int, str, str]],
    rows: int,
) -> Iterator[Finding]:
    """Find tokens that hold the end of a prompt and the beginning of its answer."""
    if not texts:
        return
    prompts = _ids(tokenizer, [prompt for _, prompt, _ in texts])
    wholes = _ids(tokenizer, [whole for _, _, whole in texts])
    hits = {}
    for (place, _, _), prompt, whole in zip(texts, prompts, wholes, strict=True):
        if whole[: len(prompt)] != prompt:
            at = next(i for i, token in enumerate(prompt) if whole[i : i + 1] != [token])
            hits[place] = (prompt[at : at + 3], whole[at : at + 3])
    share = len(hits) / rows
    severity = grade(share, BORDER_STEPS)
    if severity is None:
        return
    alone, joined = next(iter(hits.values()))
    decode = tokenizer.tokenizer.convert_ids_to_tokens
    yield Finding(
        id="data.template_prefix_mismatch",
        severity=severity,
        title=f"In {share:.1%} of the rows a token reaches from the prompt into the answer",
        detail=f"The prompt alone ends in the tokens {decode(alone)}, with the answer they are "
        f"{decode(joined)}. The mask is off by a token there, and a prompt that ends this way "
        "asks in tokens that training did not show.",
        fix="Strip white space from the ends of prompts and let the answers start with it.",
        evidence={
            "rows": len(hits),
            "sampled": rows,
            "share": share,
            "tokens_alone": list(decode(alone)),
            "tokens_joined": list(decode(joined)),
            "kind": "border",
        },
        example_ids=pick_ids(examples.ids, sorted(hits)),
    )


def _ids(tokenizer: TokenizerFacts, texts: list[str]) -> list[list[int]]:
    made = tokenizer.tokenizer(texts, add_special_tokens=False, verbose=False)["input_ids"]
    return [list(ids) for ids in made]
