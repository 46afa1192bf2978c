"""How well a ranking of rows tells the planted ones from others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from experiments.fidelity.cases import FORMAT, PLANTED, TOPICAL
from gradian_core.attribution.agreement import agreement

__all__ = ["Quality", "bootstrap_interval", "overlap"]


@dataclass(frozen=True, slots=True)
class Quality:
    """How well the planted rows are found.

    Parameters
    ----------
    auc, ap
        Area under the ROC curve, and average precision, against all other rows.
    precision
        Share of planted rows among as many of the most accused as were planted.
    auc_topical, auc_format
        Against right answers to the same questions only; against right answers in the same form.
    """

    auc: float
    ap: float
    precision: float
    auc_topical: float
    auc_format: float

    @classmethod
    def of(cls, harm: NDArray[np.floating], kinds: Sequence[str]) -> Quality:
        """Judge ``(n,)`` harms; a high one accuses."""
        from sklearn.metrics import average_precision_score, roc_auc_score

        kind = np.asarray(kinds)
        guilty = kind == PLANTED
        worst = np.argsort(-harm, kind="stable")[: guilty.sum()]

        def against(other: str) -> float:
            pair = guilty | (kind == other)
            return float(roc_auc_score(guilty[pair], harm[pair]))

        return cls(
            auc=float(roc_auc_score(guilty, harm)),
            ap=float(average_precision_score(guilty, harm)),
            precision=float(guilty[worst].mean()),
            auc_topical=against(TOPICAL),
            auc_format=against(FORMAT),
        )


def overlap(harms: Sequence[NDArray[np.float64]], share: float = 0.1) -> float:
    """Return the mean overlap of the top shares of all pairs of rankings."""
    k = max(1, round(len(harms[0]) * share))
    return float(np.mean([agreement(-a, -b, k).overlap for a, b in combinations(harms, 2)]))


def bootstrap_interval(
    differences: Sequence[float], seed: int = 0, draws: int = 10_000
) -> tuple[float, float]:
    """Return the 95 % percentile interval of the mean over runs."""
    values = np.asarray(differences, dtype=np.float64)
    rng = np.random.default_rng(seed)
    means = values[rng.integers(len(values), size=(draws, len(values)))].mean(axis=1)
    low, high = np.quantile(means, (0.025, 0.975))
    return float(low), float(high)
