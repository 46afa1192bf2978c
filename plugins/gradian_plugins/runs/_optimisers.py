"""Optimisers under transformers' names."""

from __future__ import annotations

__all__ = ["optimiser"]

_MEMBERS = {
    "adamw_bnb": "adamw_bnb_8bit",
    "lion": "lion_32bit",
    "paged_adamw": "paged_adamw_32bit",
    "paged_lion": "paged_lion_32bit",
}
"""Members of transformers' enumeration whose value is not their own name in lower case."""
_CLASSES = {
    "torch.optim.adam": "adam",
    "torch.optim.adamw": "adamw_torch",
    "torch.optim.sgd": "sgd",
    "bitsandbytes.optim.adamw8bit": "adamw_bnb_8bit",
    "bitsandbytes.optim.pagedadamw": "paged_adamw_32bit",
    "bitsandbytes.optim.pagedadamw8bit": "paged_adamw_8bit",
    "torchao.prototype.low_bit_optim.adamw8bit": "adamw_torch_8bit",
    "torchao.optim.adamw8bit": "adamw_torch_8bit",
}


def optimiser(name: str) -> str:
    """Return transformers' name of an optimiser.

    Parameters
    ----------
    name
        A name, a member such as ``OptimizerNames.ADAMW_BNB``, a class path, or the ``Adam`` that
        transformers' cards called AdamW before 4.46.
    """
    if name == "Adam":
        return "adamw_torch"
    word = name.lower()
    if word in _CLASSES:
        return _CLASSES[word]
    if word.startswith("optimizernames."):
        member = word.removeprefix("optimizernames.")
        return _MEMBERS.get(member, member)
    return word
