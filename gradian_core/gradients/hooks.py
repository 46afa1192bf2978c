r"""Per-example gradients from hooks, in one backward pass for a whole batch.

For a LoRA layer :math:`y = Wx + s\,B(Ax)` the gradient of a sum of per-example losses with
respect to A and B splits by example:

.. math::

    g_A = \sum_t \frac{dL}{d(Ax)_t} x_t^T, \qquad g_B = \sum_t \frac{dL}{d(BAx)_t} (Ax)_t^T

so it suffices to see each matrix's input and the gradient of its output. Nothing else needs a
gradient: the matrices themselves are not differentiated by autograd, and the graph begins at the
lowest adapted layer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

from gradian_core.errors import CannotRunError
from gradian_core.gradients.blocks import assemble, checkpointing
from gradian_core.gradients.loss import example_losses
from gradian_core.gradients.types import Batch, BatchGradients, Block
from gradian_core.model.sites import Site

__all__ = ["HooksCapture"]


class _Tap(torch.autograd.Function):
    """Identity on a layer's output; hands its gradient and the layer's input to a collector.

    The input goes through ``save_for_backward``, so that gradient checkpointing frees and
    recomputes it like any other activation.
    """

    @staticmethod
    def forward(
        ctx: Any, output: torch.Tensor, given: torch.Tensor, collector: _Collector, module: str
    ) -> torch.Tensor:
        ctx.save_for_backward(given)
        ctx.collector, ctx.module = collector, module
        return output.view_as(output)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None, None, None]:
        (given,) = ctx.saved_tensors
        ctx.collector.add(ctx.module, given, gradients[0])
        return gradients[0], None, None, None


class _Collector:
    """Sums per-example outer products over tokens and calls of the same matrix."""

    def __init__(self, batch: Batch, biases: frozenset[str]) -> None:
        self.size, self.width = batch.input_ids.shape
        self.biases = biases
        self.found: dict[str, torch.Tensor] = {}

    def add(self, module: str, given: torch.Tensor, gradient: torch.Tensor) -> None:
        x, delta = self._rows(module, given), self._rows(module, gradient)
        if delta.dtype != torch.float64:
            # half-precision products would round before they are summed over tokens
            x, delta = x.float(), delta.float()
        self._put(f"{module}.weight", torch.bmm(delta.transpose(1, 2), x))
        if f"{module}.bias" in self.biases:
            self._put(f"{module}.bias", delta.sum(dim=1))

    def _put(self, name: str, value: torch.Tensor) -> None:
        self.found[name] = self.found[name] + value if name in self.found else value

    def _rows(self, module: str, tensor: torch.Tensor) -> torch.Tensor:
        if tensor.ndim == 3 and tensor.shape[0] == self.size:
            return tensor
        if tensor.ndim == 2 and tensor.shape[0] == self.size * self.width:
            return tensor.reshape(self.size, self.width, -1)
        raise CannotRunError(
            f"{module} is called with a tensor of shape {tuple(tensor.shape)}, in which the "
            f"examples of a batch of {self.size} cannot be told apart.",
            hint="Use grads.strategy: loop, or leave it out with grads.module_filter.",
        )


class HooksCapture:
    """The default strategy: exact, one forward and backward pass for a batch.

    Parameters
    ----------
    model
        A PEFT model with one active adapter, in eval mode.
    sites
        The modules to capture, from :func:`gradian_core.model.sites.plan_blocks`.
    blocks
        Their blocks.
    gradient_checkpointing
        Recompute activations in the backward pass.

    Raises
    ------
    CannotRunError
        If the gradient of some LoRA tensor cannot be seen by hooks; the message names them.
    """

    def __init__(
        self,
        model: Any,
        sites: Sequence[Site],
        blocks: tuple[Block, ...],
        *,
        gradient_checkpointing: bool = False,
    ) -> None:
        refused = [site for site in sites if site.obstacle is not None]
        if refused:
            shown = "; ".join(f"{site.short_name} ({site.obstacle})" for site in refused[:3])
            raise CannotRunError(
                f"Hooks cannot capture {len(refused)} of {len(sites)} LoRA modules exactly: "
                f"{shown}.",
                hint="Use grads.strategy: loop, which can, or leave them out by "
                "grads.module_filter.",
            )
        self.model = model
        self.blocks = blocks
        self._checkpointing = gradient_checkpointing
        self._tensors = {name: tensor for site in sites for name, tensor in site.parameters}
        self._shapes = {name: tuple(tensor.shape) for name, tensor in self._tensors.items()}
        self._biases = frozenset(name for name in self._tensors if name.endswith(".bias"))
        modules = {name.rpartition(".")[0] for name in self._tensors}
        self._modules = {name: model.get_submodule(name) for name in sorted(modules)}

    def __call__(self, batch: Batch) -> BatchGradients:
        """Return losses and per-example gradients of one batch."""
        collector = _Collector(batch, self._biases)
        with self._tapped(collector), checkpointing(self.model, on=self._checkpointing):
            losses = example_losses(self.model, batch)
            if losses.requires_grad:
                losses.sum().backward()  # type: ignore[no-untyped-call]
        size = batch.input_ids.shape[0]
        return BatchGradients(
            losses.detach(), assemble(self.blocks, collector.found, self._shapes, size, losses)
        )

    @contextmanager
    def _tapped(self, collector: _Collector) -> Iterator[None]:
        with ExitStack() as stack:
            for name, module in self._modules.items():
                handle = module.register_forward_hook(_hook(collector, name))
                stack.callback(handle.remove)
            for parameter in self.model.parameters():
                if parameter.requires_grad:
                    # autograd would otherwise compute their batch-summed gradients as well
                    parameter.requires_grad_(requires_grad=False)
                    stack.callback(parameter.requires_grad_, requires_grad=True)
            stack.enter_context(torch.enable_grad())
            yield


def _hook(collector: _Collector, name: str) -> Any:
    def hook(_module: Any, given: tuple[Any, ...], output: torch.Tensor) -> torch.Tensor | None:
        if not torch.is_grad_enabled():
            return None  # the first pass of reentrant checkpointing has no graph to tap
        if not output.requires_grad:
            output = output.detach().requires_grad_()  # the graph begins here
        tapped: torch.Tensor = _Tap.apply(  # type: ignore[no-untyped-call]
            output, given[0].detach(), collector, name
        )
        return tapped

    return hook
