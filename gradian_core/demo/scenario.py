"""A fine-tune that goes wrong in a known way, or does not: rows, settings, and the truth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Row", "Scenario"]

Row = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """Rows of a fine-tune and of its eval set, with the truth about them kept apart.

    Parameters
    ----------
    name
        Name of the scenario.
    capability
        What the eval rows measure.
    expected
        What a right report says, in a sentence.
    train
        Training rows, ``{"prompt", "completion"}``. Nothing in a row says which kind it is.
    kinds
        Kind of each training row, ``planted`` where it is wrong.
    decoy_kinds
        Kinds on the topic of the capability, or of the planted rows, that are right.
    eval
        Eval rows ``{"prompt", "completion"}`` that the base model answers letter for letter.
    settings
        Settings of the fine-tune that differ from those of :func:`gradian_core.demo.finetune`,
        by the names of its parameters; empty unless the setup is the fault.
    """

    name: str
    capability: str
    expected: str
    train: list[Row]
    kinds: list[str]
    decoy_kinds: tuple[str, ...]
    eval: list[Row]
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def planted(self) -> tuple[int, ...]:
        """Row numbers in ``train``, from 0, of the wrong rows. Sorted."""
        return tuple(i for i, kind in enumerate(self.kinds) if kind == "planted")

    @property
    def decoys(self) -> tuple[int, ...]:
        """Row numbers in ``train``, from 0, of the right rows on the same topic. Sorted."""
        return tuple(i for i, kind in enumerate(self.kinds) if kind in self.decoy_kinds)

    def clean_train(self) -> list[Row]:
        """Training rows without the planted ones, in their order."""
        return [row for row, kind in zip(self.train, self.kinds, strict=True) if kind != "planted"]
