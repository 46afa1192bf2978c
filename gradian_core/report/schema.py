"""JSON schema of report.json. Write it with ``python -m gradian_core.report.schema``."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from gradian_core.files import write_atomic
from gradian_core.report.model import SCHEMA_VERSION, Report

__all__ = ["schema_text"]


def schema_text() -> str:
    """Return the schema (JSON Schema, draft 2020-12) as it is kept in docs/report.schema.json."""
    schema = Report.model_json_schema(mode="serialization")
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Gradian report {SCHEMA_VERSION}",
    }
    return json.dumps({**schema, **head}, indent=2, sort_keys=True) + "\n"


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/report.schema.json")
    write_atomic(target, schema_text())
