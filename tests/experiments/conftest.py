"""Experiments are in no wheel: they are run, and tested, from the checkout."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))
