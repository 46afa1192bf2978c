"""Run the demo and put its real output into README.md.

Usage, from the root of a checkout: ``python experiments/readme_excerpt.py``
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

README = Path(__file__).resolve().parents[1] / "README.md"
BEGIN, END = "<!-- demo: begin -->", "<!-- demo: end -->"


def demo_output() -> str:
    """Return what ``gradian demo`` prints, without the tables of single examples."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-m", "gradian_core", "demo", "--quiet"],
            cwd=folder,
            env={**os.environ, "COLUMNS": "100", "NO_COLOR": "1"},
            capture_output=True,
            text=True,
            check=True,
        )
    text = done.stdout
    start = text.index("Most harmful examples")
    stop = text.index("\nThe truth:")
    return f"{text[:start].rstrip()}\n[…]\n{text[stop:].strip()}"


def main() -> None:
    """Replace the text between the markers."""
    block = f"{BEGIN}\n```text\n{demo_output()}\n```\n{END}"
    text = README.read_text(encoding="utf-8")
    pattern = re.compile(re.escape(BEGIN) + ".*?" + re.escape(END), re.DOTALL)
    README.write_text(pattern.sub(lambda _: block, text), encoding="utf-8")


if __name__ == "__main__":
    main()
