"""Measured capabilities by content address: asking again costs no generation."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from gradian_core.evaluation.result import CapabilityResult
from gradian_core.files import write_atomic

__all__ = ["find_result", "result_path", "save_result"]

_VERSION = 1
_RESULT = TypeAdapter(CapabilityResult)


def result_path(cache: Path, inputs: Mapping[str, object]) -> Path:
    """Return where the result that is made from these JSON values lies."""
    canonical = json.dumps({"version": _VERSION, **inputs}, sort_keys=True, ensure_ascii=True)
    return cache / "evaluations" / f"{hashlib.sha256(canonical.encode()).hexdigest()[:20]}.json"


def find_result(path: Path) -> CapabilityResult | None:
    """Read a result; None if it is not there or not whole, so that it is measured again."""
    try:
        return _RESULT.validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None


def save_result(path: Path, result: CapabilityResult) -> None:
    """Write a result, whole or not at all."""
    write_atomic(path, _RESULT.dump_json(result))
