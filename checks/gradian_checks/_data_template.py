"""What the chat template does to rows."""

from __future__ import annotations

import re

__all__ = ["has_markers", "is_refused", "refusal_reason"]

_MARKER = re.compile(r"\{%-?\s*generation\s*-?%\}")
_REFUSED = "the chat template refuses it"


def has_markers(template: str) -> bool:
    """Whether a template marks answers with ``{% generation %}``."""
    return _MARKER.search(template) is not None


def is_refused(problem: str) -> bool:
    """Whether a row's problem is that the template raised for it."""
    return problem.startswith(_REFUSED)


def refusal_reason(problem: str) -> str:
    """Return what the template said when it refused a row."""
    return problem.removeprefix(_REFUSED).lstrip(": ")
