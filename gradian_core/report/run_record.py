"""``run.json``: everything about a run that its result does not depend on."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

from pydantic import Field

from gradian_core.files import write_atomic
from gradian_core.report.base import JsonObject, Part, Text

__all__ = ["RunRecord"]


class RunRecord(Part):
    """When, where and how a report was made. Kept apart so that report.json is reproducible."""

    command: tuple[Text, ...]
    """The command line."""
    started: datetime
    """When it started, with time zone."""
    duration_seconds: float
    """Wall-clock time that it took."""
    exit_status: int
    """Exit status of the command."""
    machine: JsonObject = Field(default_factory=dict)
    """Operating system, processor, cores, memory, devices."""
    versions: JsonObject = Field(default_factory=dict)
    """Python and the packages that were at work."""

    def save(self, folder: Path) -> Path:
        """Write ``run.json`` into the folder and return its path."""
        body = self.model_dump(mode="json")
        path = folder / "run.json"
        write_atomic(path, json.dumps(body, indent=2, sort_keys=True) + "\n")
        return path
