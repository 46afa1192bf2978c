"""Which parameters an adapter has, and in which blocks they are attributed over.

The set is taken from the model and never from a list of expected names: every LoRA tensor of
the active adapter is found, and each capture strategy must either give exactly these or refuse
them by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import regex

from gradian_core.errors import InputError, UsageError
from gradian_core.gradients.types import Block
from gradian_core.text import excerpt

__all__ = ["Site", "attributable_parameters", "find_sites", "plan_blocks"]

_PREFIX = "base_model.model."

_FILTER_SECONDS = 1.0
"""Python's own re cannot be stopped, and a nested repetition takes years on one module name."""


@dataclass(frozen=True, slots=True)
class Site:
    """One module that carries the adapter.

    Parameters
    ----------
    name
        Full name of the PEFT layer in the model.
    short_name
        Name of the base model's own module, such as ``model.layers.0.mlp.down_proj``.
    parameters
        ``(full name, tensor)`` of its LoRA tensors, in a fixed order.
    obstacle
        Why hooks on ``lora_A`` and ``lora_B`` cannot see its gradient, None if they can.
    """

    name: str
    short_name: str
    parameters: tuple[tuple[str, Any], ...]
    obstacle: str | None


def find_sites(model: Any, adapter: str) -> tuple[Site, ...]:
    """Find every module that carries LoRA tensors of an adapter, in the model's order.

    Raises
    ------
    InputError
        If there is none, or the adapter is merged into the weights.
    """
    from peft.tuners.lora import LoraLayer

    names = {id(parameter): name for name, parameter in model.named_parameters()}
    sites = []
    for name, module in model.named_modules():
        if not isinstance(module, LoraLayer):
            continue
        parameters = tuple(
            (names[id(parameter)], parameter)
            # PEFT may list a holder twice (DoRA's magnitude vector): each tensor counts once
            for holder in dict.fromkeys(module.adapter_layer_names)
            for parameter in _tensors(getattr(module, holder, {}), adapter)
        )
        if not parameters:
            continue
        if module.merged:
            raise InputError(
                f"The adapter is merged into {name}.",
                hint="Unmerge it first: merged weights have no LoRA gradient.",
            )
        short = name.removeprefix(_PREFIX).removesuffix(".base_layer")
        sites.append(Site(name, short, parameters, _obstacle(module, adapter)))
    if not sites:
        raise InputError(
            f"The model has no LoRA tensors of adapter {adapter!r}.",
            hint="There is nothing to attribute over.",
        )
    return tuple(sites)


def _tensors(holder: Any, adapter: str) -> list[Any]:
    if adapter not in holder:
        return []
    entry = holder[adapter]
    return [entry] if not hasattr(entry, "parameters") else list(entry.parameters())


def _obstacle(module: Any, adapter: str) -> str | None:
    from peft.tuners import lora

    if adapter in module.lora_variant:
        variant = type(module.lora_variant[adapter]).__name__
        return f"{variant} calls the LoRA matrices outside the layer"
    if adapter in module.lora_embedding_A:
        return "an embedding uses its LoRA matrices without a module call"
    if not isinstance(module, lora.Linear):
        return f"{type(module).__name__} is not a linear layer"
    return None


def attributable_parameters(sites: Sequence[Site]) -> dict[str, Any]:
    """Return full name -> tensor of everything that a capture has to give."""
    return {name: tensor for site in sites for name, tensor in site.parameters}


def plan_blocks(
    sites: Sequence[Site],
    *,
    granularity: Literal["module", "matrix"],
    module_filter: str | None,
) -> tuple[tuple[Site, ...], tuple[Block, ...]]:
    """Choose the sites that a filter lets through and cut them into blocks.

    Parameters
    ----------
    sites
        All sites of the adapter.
    granularity
        ``module``: A and B of a site form one block; ``matrix``: each tensor is a block, as in
        the code of the DataInf paper.
    module_filter
        Regular expression that is searched in the short name; None keeps all.

    Raises
    ------
    UsageError
        If the expression is malformed or matches no site.
    """
    kept = tuple(sites)
    if module_filter is not None:
        try:
            pattern = regex.compile(module_filter)
            kept = tuple(
                site for site in sites if pattern.search(site.short_name, timeout=_FILTER_SECONDS)
            )
        except TimeoutError:
            raise UsageError(
                f"grads.module_filter: {excerpt(module_filter, 80)!r} takes too long to match.",
                hint="A repetition inside a repetition, such as (a+)+, does that: leave one out.",
            ) from None
        except regex.error as error:
            raise UsageError(
                f"grads.module_filter: {module_filter!r} is not a regular expression: {error}.",
                hint=r"Put \ before a character such as ( or * that stands for itself.",
            ) from error
        if not kept:
            shown = ", ".join(site.short_name for site in sites[:4])
            raise UsageError(
                f"grads.module_filter: {module_filter!r} matches none of the {len(sites)} LoRA "
                "modules.",
                hint=f"Their names look like: {shown}.",
            )
    blocks = []
    for site in kept:
        if granularity == "module":
            names = tuple(name for name, _ in site.parameters)
            shapes = tuple(tuple(tensor.shape) for _, tensor in site.parameters)
            blocks.append(Block(site.short_name, names, shapes))
            continue
        for name, tensor in site.parameters:
            tail = name.removeprefix(f"{site.name}.").split(".")
            label = tail[0] if tail[-1] == "weight" else f"{tail[0]}.{tail[-1]}"
            if len(tail) == 2 and tail[-1] != "weight":
                label = tail[0]
            blocks.append(Block(f"{site.short_name}.{label}", (name,), (tuple(tensor.shape),)))
    return kept, tuple(blocks)
