"""Checks of the data set, most of them without a tokenizer; this module only declares them."""

from __future__ import annotations

from collections.abc import Iterator

from gradian_core.hookspecs import hookimpl
from gradian_core.specs import CheckSpec

__all__ = ["CORE", "FURTHER", "gradian_checks"]

Declared = tuple[tuple[str, str, tuple[str, ...]], ...]

CORE: Declared = (
    ("completion_truncated", "Targets cut off by max_seq_length", ("tokens",)),
    ("conflicting_answers", "Same question, disagreeing answers", ("examples",)),
    ("duplicates", "Exact duplicate examples", ("examples",)),
    ("empty_or_degenerate_targets", "Empty or trivially short targets", ("examples",)),
    ("format_inconsistency", "Mixed target formats", ("examples",)),
    ("length_outliers", "Extremely long examples", ("examples",)),
    ("loss_mask_coverage", "Fraction of tokens the loss is computed on", ()),
    ("missing_eos", "Targets that do not end with EOS", ()),
    ("near_duplicates", "Near-duplicate examples", ("examples",)),
    ("no_chat_template", "Chat data but no chat template", ("examples", "tokenizer")),
    ("no_supervised_tokens", "Examples that train on nothing", ("tokens",)),
    ("prompt_equals_target", "Target identical to the prompt", ("examples",)),
    ("template_prefix_mismatch", "Chat template is not prefix-stable", ("examples", "tokenizer")),
    ("tiny_dataset", "Dataset too small for reliable attribution", ("examples",)),
    (
        "train_eval_contamination",
        "Eval items that also appear in training",
        ("examples", "eval_examples"),
    ),
    ("truncated", "Examples truncated at all", ("tokens",)),
)
"""``(name, summary, needs)`` of the checks that the reference documentation lists."""

FURTHER: Declared = (
    (
        "added_tokens_untrained",
        "New tokens in the data, and embeddings that are not trained",
        ("tokenizer", "tokens", "adapter"),
    ),
    (
        "double_bos",
        "Rendered text that gets a second begin-of-sequence token",
        ("examples", "tokenizer"),
    ),
    (
        "eos_mismatch",
        "Template ends turns with a token that generation does not stop at",
        ("tokenizer",),
    ),
    (
        "reasoning_dropped",
        "Reasoning in the data that the chat template leaves out",
        ("examples", "tokenizer"),
    ),
    ("rows_dropped", "Rows that the tool silently leaves out", ("tokens", "training")),
    ("template_family_mismatch", "Markup of another model family in the data or prompt format", ()),
    ("template_rejects_rows", "Rows that the chat template refuses", ("tokens",)),
    (
        "unfilled_template_placeholder",
        "Placeholders such as {{name}} that were never filled in",
        ("examples",),
    ),
    ("unreadable_rows", "Rows that cannot be read", ()),
)
"""``(name, summary, needs)`` of the checks beyond them."""


@hookimpl
def gradian_checks() -> Iterator[CheckSpec]:
    """Yield the specs of the checks that read data or tokenizer."""
    for declared in (CORE, FURTHER):
        for name, summary, needs in declared:
            yield CheckSpec(
                name=f"data.{name}",
                summary=summary,
                factory=f"gradian_checks.data.{name}:{name}",
                needs=needs,
                core=declared is CORE,
            )
