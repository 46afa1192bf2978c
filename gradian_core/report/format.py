"""Numbers as people read them; the exact ones are in report.json."""

from __future__ import annotations

from gradian_core.report.attribution import ClusterReport
from gradian_core.report.capability import CapabilityReport

__all__ = [
    "cluster_name",
    "count",
    "gate_lines",
    "interval",
    "level",
    "number",
    "percent",
    "signed",
    "tango",
]

NOTHING = "n/a"


def number(value: float | None) -> str:
    """Write four significant digits."""
    return NOTHING if value is None else f"{value:.4g}"


def signed(value: float | None) -> str:
    """Write four significant digits with their sign, because the sign is the message."""
    return NOTHING if value is None else f"{value:+.4g}"


def percent(share: float) -> str:
    """Write one decimal: shares of a few hundred rows carry no more."""
    return f"{100 * share:.1f}%"


def level(share: float) -> str:
    """Write a confidence level, such as ``95%``."""
    return f"{100 * share:g}%"


def interval(capability: CapabilityReport) -> str:
    """Write the interval of the delta, such as ``[-0.7500, -0.2500]``."""
    if capability.ci_low == capability.ci_high:
        return "no item changed" if capability.delta == 0.0 else "all items changed alike"
    return f"[{capability.ci_low:+.4f}, {capability.ci_high:+.4f}]"


def tango(capability: CapabilityReport) -> str:
    """Write Tango's interval of the delta, or that there is none."""
    if capability.tango_low is None or capability.tango_high is None:
        return NOTHING
    return f"[{capability.tango_low:+.4f}, {capability.tango_high:+.4f}]"


def gate_lines(capability: CapabilityReport) -> list[str]:
    """Say how the verdict came about: the reason, the second interval, what could be shown."""
    lines = [capability.reason, capability.detectable]
    if capability.tango_low is not None:
        lines.insert(1, f"Tango's score interval: {tango(capability)}.")
    return [line for line in lines if line]


def count(n: int, one: str, many: str | None = None) -> str:
    """Write a number with its noun: ``1 row``, ``2 rows``, ``1,234 rows``."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def cluster_name(cluster: ClusterReport) -> str:
    """Return what to call a cluster in a sentence: its name, or its number and terms."""
    if cluster.label == cluster.cluster:
        return cluster.cluster
    return f"{cluster.cluster} ({cluster.label})"
