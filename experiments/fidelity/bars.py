"""What the default has to reach, and whether it does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["COST_DEFAULT", "COST_FAST", "bars"]

COST_DEFAULT = "path, acos, four scales"
COST_FAST = "path, acos, half scale"

AP, WORST_AP, TOPICAL, GAIN = 0.85, 0.70, 0.92, 0.08
MOST_BUILDS, MOST_BUILDS_FAST = 4.0, 1.3


def bars(
    row: Mapping[str, Any], builds: Mapping[str, float] | None
) -> list[tuple[str, str, str, bool]]:
    """Compare one ranking with the bars.

    Parameters
    ----------
    row
        Its row of the summary.
    builds
        Costs in index builds, by choice; None where they were not measured.

    Returns
    -------
    list
        What, bar, value, and whether it is reached.
    """
    low = row["gain_interval"][0]
    found = [
        ("AP, mean", f"at least {AP}", f"{row['ap']:.2f}", row["ap"] >= AP),
        (
            "AP, worst scenario",
            f"at least {WORST_AP:.2f}",
            f"{row['worst_ap']:.2f} ({row['worst_scenario']})",
            row["worst_ap"] >= WORST_AP,
        ),
        (
            "AUC, same questions",
            f"at least {TOPICAL}",
            f"{row['auc_topical']:.2f}",
            row["auc_topical"] >= TOPICAL,
        ),
        (
            f"AP over {row['text']}",
            f"at least {GAIN}, interval above 0",
            f"{row['gain']:+.2f} [{low:+.2f}, {row['gain_interval'][1]:+.2f}]",
            row["gain"] >= GAIN and low > 0,
        ),
    ]
    if builds is not None:
        for what, name, most in (
            ("cost of the default", COST_DEFAULT, MOST_BUILDS),
            ("cost of the fast setting", COST_FAST, MOST_BUILDS_FAST),
        ):
            value = builds[name]
            found.append((what, f"at most {most:g} index builds", f"{value:.2f}", value <= most))
    return found
