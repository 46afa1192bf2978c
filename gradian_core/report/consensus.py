"""What several unlike engines have in common, in a report."""

from __future__ import annotations

from gradian_core.report.base import JsonObject, Number, Part, Text

__all__ = ["ConsensusEngine", "ConsensusPair", "ConsensusReport", "ConsensusRow"]


class ConsensusEngine(Part):
    """One of the engines."""

    label: Text
    """What sets it apart from the others."""
    name: Text
    """Its name."""
    settings: JsonObject
    """Its settings."""
    aggregation: Text
    """How its scores of the items became one."""


class ConsensusPair(Part):
    """Agreement of two of the engines."""

    engines: tuple[int, int]
    """Their places in the list of engines."""
    top_k_overlap: float
    """Share of the most harmful rows that both name."""
    spearman: Number
    """Rank correlation of all rows; null where one of them gives constant scores."""


class ConsensusRow(Part):
    """A row that all engines accuse."""

    id: Text
    """Content hash and row number."""
    row: int
    """Row number in the file, from 0."""
    mean_rank: float
    """Its mean rank over the engines; 1 is the most harmful."""


class ConsensusReport(Part):
    """Whether unlike engines blame the same rows."""

    verdict: Text
    """``concentrated`` (a cause in the data is suspected), ``diffuse`` (they name no common rows:
    look at the setup) or ``undetermined``."""
    overlap: float
    """Mean, over pairs of engines, of the share of the most harmful rows that both name."""
    chance: float
    """What unrelated rankings would share on average."""
    top_k: int
    """Most harmful rows of each engine that were compared."""
    concentrated_from: float
    """Overlap from which the verdict is concentrated."""
    diffuse_below: float
    """Overlap below which it is diffuse."""
    rules_version: int
    """Version of engines and thresholds."""
    source: Text
    """Where the thresholds come from."""
    engines: tuple[ConsensusEngine, ...]
    """The engines."""
    pairs: tuple[ConsensusPair, ...]
    """Agreement of each pair of them."""
    n_accused: int
    """Number of rows among the most harmful of every engine."""
    accused: tuple[ConsensusRow, ...] = ()
    """These rows by mean rank, at most 200 of them."""
