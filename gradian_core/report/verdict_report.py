"""The verdict, as part of a report."""

from __future__ import annotations

from typing import Literal

from gradian_core.report.base import Part, Text

__all__ = ["Kind", "VerdictReport"]

Kind = Literal["data", "setup", "base_model", "no_regression", "undetermined"]


class VerdictReport(Part):
    """What broke it, as far as can be told without retraining."""

    kind: Kind
    """``data``, ``setup``, ``base_model``, ``no_regression`` or ``undetermined``."""
    why: Text
    """Why, as part of a sentence."""
