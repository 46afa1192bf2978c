"""Measurements by content address: asking again costs no generation."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from gradian_core.evaluation.result import Measurement
from gradian_core.files import reason, remove, write_atomic

__all__ = ["find_measurement", "measurement_path", "save_measurement"]

_VERSION = 5
_MEASUREMENT = TypeAdapter(Measurement)


def measurement_path(cache: Path, inputs: Mapping[str, object]) -> Path:
    """Return where the measurement that is made from these JSON values lies."""
    canonical = json.dumps({"version": _VERSION, **inputs}, sort_keys=True, ensure_ascii=True)
    return cache / "evaluations" / f"{hashlib.sha256(canonical.encode()).hexdigest()[:20]}.json"


def find_measurement(path: Path, notes: list[str]) -> Measurement | None:
    """Read a measurement.

    Parameters
    ----------
    path
        Where it lies.
    notes
        Gets a sentence if it is damaged.

    Returns
    -------
    Measurement or None
        None if it is not there or is not what was written: then it has to be measured again.
    """
    try:
        digest, _, body = path.read_bytes().partition(b"\n")
        if digest != _digest(body):
            raise ValueError("its checksum does not match")
        return _MEASUREMENT.validate_json(body)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        # the sentence goes into the report, where no path of a machine belongs
        why = "its content is not valid" if isinstance(error, ValidationError) else reason(error)
        notes.append(f"The cached answers {path.stem} were damaged ({why}); measured again.")
        return None


def save_measurement(path: Path, measured: Measurement) -> None:
    """Write a measurement behind a line with its checksum, whole or not at all."""
    if path.is_dir():
        remove(path)
    body = _MEASUREMENT.dump_json(measured)
    write_atomic(path, _digest(body) + b"\n" + body)


def _digest(body: bytes) -> bytes:
    return hashlib.sha256(body).hexdigest().encode()
