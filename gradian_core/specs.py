"""What a plugin declares: one frozen dataclass for each kind of thing it can add.

Declaring is free: a spec names its implementation by an import string, ``"module:Class"``,
which is imported when the thing is used and not before. Listing every plugin on a machine
therefore imports neither torch nor numpy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = [
    "CheckSpec",
    "ClustererSpec",
    "EngineSpec",
    "MetricSpec",
    "RunReaderSpec",
    "SinkSpec",
    "Spec",
    "TrainerSpec",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """What all specs have in common.

    Parameters
    ----------
    name
        Name by which users select it. Lower case letters, digits, ``_``, ``-``; for checks
        ``family.name``.
    summary
        One line for listings.
    factory
        Import string ``"package.module:Name"`` of the class (called with its validated config
        section, or with nothing if ``config`` is None). For checks: the function.
    config
        Import string of a pydantic model for the plugin's own config section, or None.
    requires
        Top-level modules that must be importable, such as ``("kronfluence",)``.
    extra
        The extra of gradian-ml that brings them, if there is one.
    since
        Version of the plugin in which it appeared.
    """

    name: str
    summary: str
    factory: str
    config: str | None = None
    requires: tuple[str, ...] = ()
    extra: str | None = None
    since: str = "0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckSpec(Spec):
    """A deterministic audit check; see :mod:`gradian_core.check`.

    Parameters
    ----------
    needs
        Facts that it cannot do without, for listings: the parameters of its function that have
        no default.
    core
        Whether it belongs to the core set; only Gradian's own checks may.
    """

    needs: tuple[str, ...] = ()
    core: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSpec(Spec):
    """An attribution engine.

    It implements :class:`gradian_core.protocols.BlockEngine` or
    :class:`gradian_core.protocols.TaskEngine`.

    Parameters
    ----------
    needs
        What it works on, for listings and for what is computed: ``"gradients"``, ``"text"`` (no
        gradient is taken for it) or ``"model"`` (it works on a model of its own).
    linear
        Whether scores are linear in the query; the conformance kit tests it of a BlockEngine.
    oracle
        For a BlockEngine in closed form: import string of a function
        ``(gradients, queries, context, settings) -> scores`` with its formula written out on
        one block, ``(n, d)`` and ``(q, d)`` to ``(q, n)``. The conformance kit compares them.
    baseline
        Whether it is there to be beaten: it claims that likeness, novelty or chance is harm, and
        scores need not rise for a row that is the query itself.
    """

    needs: Literal["gradients", "text", "model"] = "gradients"
    linear: bool = True
    oracle: str | None = None
    baseline: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ClustererSpec(Spec):
    """A clusterer; implements :class:`gradian_core.protocols.Clusterer`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSpec(Spec):
    """A capability metric.

    Parameters
    ----------
    needs
        ``"generation"``: implements :class:`gradian_core.protocols.TextMetric`;
        ``"likelihood"``: implements :class:`gradian_core.protocols.LikelihoodMetric`.
    reference_is_answer
        False where the eval row's completion is not an answer that the model could give
        (``not_contains`` lists forbidden markers). The base model's own output then stands in
        as the correct answer.
    """

    needs: Literal["generation", "likelihood"] = "generation"
    reference_is_answer: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkSpec(Spec):
    """A report sink; implements :class:`gradian_core.protocols.Sink`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReaderSpec(Spec):
    """A reader of a training run's files; implements :class:`gradian_core.protocols.RunReader`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainerSpec(Spec):
    """A trainer; implements :class:`gradian_core.protocols.Trainer`."""
