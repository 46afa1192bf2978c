"""What the demo showed, beside its report: the truth, and the capability after retraining."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from gradian_core.cli.streams import put

if TYPE_CHECKING:
    from gradian_core.evaluation.result import CapabilityResult
    from gradian_core.flows.demo import DemoOutcome
    from gradian_core.report.capability import CapabilityReport

__all__ = ["print_proof", "proof_lines"]


def proof_lines(outcome: DemoOutcome, out: Path) -> list[str]:
    """Return the lines; no judgement that the numbers do not carry."""
    planted = len(outcome.scenario.planted)
    truth = f"{planted} wrong rows were planted" if planted else "no row is wrong"
    retrained = []
    if outcome.accused is None:
        lines = [f"The truth: {truth}, and no cluster is accused."]
    else:
        n = outcome.accused.n
        found = f"holds {outcome.n_accused_planted} of them among its {n} rows"
        lines = [
            f"The truth: {truth}, and the accused cluster",
            f"{found if planted else f'is innocent ({n} rows)'}.",
        ]
        retrained += [
            _line(f"without the accused cluster ({n} rows)", outcome.without_accused),
            _line(f"without {n} other rows, at random", outcome.without_random),
        ]
    lines.append(f"Expected: {outcome.scenario.expected}")
    if outcome.sane_settings is not None:
        retrained.append(_line("all rows, usual settings", outcome.sane_settings))
    if retrained:
        whole = _line("all rows", outcome.report.capability)
        lines += ["", "Retrained from the same base model:", whole, *retrained]
    config = shlex.quote(str(out / "gradian.yaml"))
    name = shlex.quote(outcome.scenario.capability)
    lines += [
        "",
        "The run is an ordinary one:",
        f"  gradian attribute --config {config} --capability {name}",
        f"The report: {out / 'report' / 'report.md'}",
    ]
    return lines


def _line(arm: str, result: CapabilityResult | CapabilityReport | None) -> str:
    if result is None:
        return f"  {arm}: not measured"
    return (
        f"  {arm}: {result.metric} {result.base:.2f} -> {result.tuned:.2f} "
        f"(change {result.delta:+.2f}, {result.ci_level:.0%} CI "
        f"[{result.ci_low:+.2f}, {result.ci_high:+.2f}])"
    )


def print_proof(outcome: DemoOutcome, out: Path) -> None:
    """Print it to standard output."""
    put("\n".join(["", *proof_lines(outcome, out)]))
