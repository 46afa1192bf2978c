"""What the whole suite shares."""

from __future__ import annotations

import importlib.util

NEEDS_ATTRIBUTION = [
    "clusters",
    "demo",
    "engines",
    "experiments",
    "evaluation",
    "flows",
    "gradients",
    "index",
    "model",
    "report",
    "sinks",
    "slow",
    "trainers",
]
"""Areas whose tests need torch or scikit-learn."""

# the base install has neither: everything else must pass in an environment without them
collect_ignore = [] if importlib.util.find_spec("torch") else NEEDS_ATTRIBUTION
