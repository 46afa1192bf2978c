"""Measurements by content address: asking again costs no generation."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from gradian_core.evaluation.result import Measurement
from gradian_core.files import write_atomic

__all__ = ["find_measurement", "measurement_path", "save_measurement"]

_VERSION = 2
_MEASUREMENT = TypeAdapter(Measurement)


def measurement_path(cache: Path, inputs: Mapping[str, object]) -> Path:
    """Return where the measurement that is made from these JSON values lies."""
    canonical = json.dumps({"version": _VERSION, **inputs}, sort_keys=True, ensure_ascii=True)
    return cache / "evaluations" / f"{hashlib.sha256(canonical.encode()).hexdigest()[:20]}.json"


def find_measurement(path: Path) -> Measurement | None:
    """Read a measurement; None if it is not there or not whole, so that it is measured again."""
    try:
        return _MEASUREMENT.validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None


def save_measurement(path: Path, measured: Measurement) -> None:
    """Write a measurement, whole or not at all."""
    write_atomic(path, _MEASUREMENT.dump_json(measured))
