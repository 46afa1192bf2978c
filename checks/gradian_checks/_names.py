"""Base models by name: what is left of a hub id, a cache folder or a path."""

from __future__ import annotations

import re

__all__ = ["base_name", "billions", "is_local"]

_LOCAL = re.compile(r"^(?:[./~\\]|[a-zA-Z]:)|\\|/.*/")
_CACHED = re.compile(r"models--[^/\\]+?--([^/\\]+)(?:[/\\]|$)")
_EXPERTS = re.compile(r"(?<![a-z0-9.])(\d{1,4})x(\d{1,4}(?:\.\d{1,4})?)b(?![a-z0-9])")
_SIZE = re.compile(r"(?<![a-z0-9.])(\d{1,6}(?:\.\d{1,4})?)(b|m)(?![a-z0-9])")


def base_name(name: str) -> str:
    """Return a model's name without its owner, its folder or its revision, in lower case."""
    cached = _CACHED.search(name)
    last = cached[1] if cached else re.split(r"[/\\]", name.rstrip("/\\"))[-1]
    return last.lower().partition("@")[0]


def is_local(name: str) -> bool:
    """Whether a name is a folder and does not tell which model is in it."""
    return bool(_LOCAL.search(name)) and not _CACHED.search(name)


def billions(name: str | None) -> float | None:
    """Return a model's size in billions of parameters, as far as its name tells."""
    base = base_name(name or "")
    if experts := _EXPERTS.search(base):
        return int(experts[1]) * float(experts[2])
    sizes = [float(size) / (1000 if unit == "m" else 1) for size, unit in _SIZE.findall(base)]
    return max(sizes, default=None)
