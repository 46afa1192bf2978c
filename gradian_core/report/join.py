"""Where audit and attribution accuse the same rows: a cause that two signals name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from gradian_core.attribution.clusters import NOISE, ClusterSummary
from gradian_core.findings import Finding, Severity

__all__ = ["overlaps"]

_ENRICHED = 2.0
"""The defect must be at least this many times as common in the cluster as elsewhere."""
_ROWS = 2
"""One shared row is a coincidence."""


def overlaps(
    findings: Iterable[Finding],
    clusters: Sequence[ClusterSummary],
    labels: NDArray[np.integer],
    example_ids: Sequence[str],
) -> Iterator[Finding]:
    """Yield a finding for each audit finding that names rows of the most harmful cluster.

    It fires where at least two rows of the cluster have the defect, and the defect is at least
    twice as common there as in the other rows.

    Parameters
    ----------
    findings
        Findings of the audit; those without example ids are passed over.
    clusters
        Most harmful first.
    labels
        ``(n,)`` cluster label of each example.
    example_ids
        Id of each example.
    """
    worst = next((c for c in clusters if c.label != NOISE and c.influence < 0.0), None)
    if worst is None:
        return
    inside = labels == worst.label
    position = {identifier: i for i, identifier in enumerate(example_ids)}
    top = set(worst.worst)
    for finding in findings:
        rows = sorted({position[name] for name in finding.example_ids if name in position})
        n_inside = int(np.count_nonzero(inside[rows]))
        n_cluster = int(np.count_nonzero(inside))
        n_rest = len(labels) - n_cluster
        rate = n_inside / n_cluster
        rest_rate = (len(rows) - n_inside) / n_rest if n_rest else 0.0
        if n_inside < _ROWS or n_rest == 0 or rate < _ENRICHED * rest_rate:
            continue
        n_top = len(top.intersection(rows))
        yield Finding(
            id="attribution.cluster_matches_data_defect",
            severity=Severity.HIGH,
            title=f"The most harmful cluster, {worst.title}, has the defect {finding.id}",
            detail=f"{n_inside} of its {n_cluster} rows have it ({rate:.1%}, against "
            f"{rest_rate:.1%} of the other rows), among them {n_top} of its {len(top)} most "
            "harmful. Influence and a deterministic check point at the same rows.",
            fix=finding.fix,
            evidence={
                "finding": finding.id,
                "cluster": worst.key,
                "n_in_cluster": n_inside,
                "cluster_rows": n_cluster,
                "rate_in_cluster": rate,
                "rate_elsewhere": rest_rate,
                "n_in_top": n_top,
            },
            example_ids=tuple(example_ids[i] for i in rows if inside[i]),
            because_of=finding.id,
        )
