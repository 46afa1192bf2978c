"""Checks of the data set, most of them without a tokenizer; this module only declares them."""

from __future__ import annotations

from collections.abc import Iterator

from gradian_core.hookspecs import hookimpl
from gradian_core.specs import CheckSpec

__all__ = ["CORE", "FURTHER", "gradian_checks"]

CORE = (
    ("completion_truncated", "Targets cut off by max_seq_length"),
    ("conflicting_answers", "Same question, disagreeing answers"),
    ("duplicates", "Exact duplicate examples"),
    ("empty_or_degenerate_targets", "Empty or trivially short targets"),
    ("format_inconsistency", "Mixed target formats"),
    ("length_outliers", "Extremely long examples"),
    ("loss_mask_coverage", "Fraction of tokens the loss is computed on"),
    ("missing_eos", "Targets that do not end with EOS"),
    ("near_duplicates", "Near-duplicate examples"),
    ("no_chat_template", "Chat data but no chat template"),
    ("no_supervised_tokens", "Examples that train on nothing"),
    ("prompt_equals_target", "Target identical to the prompt"),
    ("template_prefix_mismatch", "Chat template is not prefix-stable"),
    ("tiny_dataset", "Dataset too small for reliable attribution"),
    ("train_eval_contamination", "Eval items that also appear in training"),
    ("truncated", "Examples truncated at all"),
)
"""``(name, summary)`` of the checks that the reference documentation lists."""

FURTHER = (
    ("added_tokens_untrained", "New tokens in the data, and embeddings that are not trained"),
    ("double_bos", "Rendered text that gets a second begin-of-sequence token"),
    ("eos_mismatch", "Template ends turns with a token that generation does not stop at"),
    ("reasoning_dropped", "Reasoning in the data that the chat template leaves out"),
    ("rows_dropped", "Rows that the tool silently leaves out"),
    ("template_family_mismatch", "Markup of another model family in the data or prompt format"),
    ("template_rejects_rows", "Rows that the chat template refuses"),
    ("unfilled_template_placeholder", "Placeholders such as {{name}} that were never filled in"),
)
"""``(name, summary)`` of the checks beyond them."""


@hookimpl
def gradian_checks() -> Iterator[CheckSpec]:
    """Yield the specs of the checks that read data or tokenizer."""
    for name, summary in CORE + FURTHER:
        yield CheckSpec(
            name=f"data.{name}",
            summary=summary,
            factory=f"gradian_checks.data.{name}:{name}",
        )
