"""One root cause, one leading finding.

Many faults have one cause: with a sequence length of 48, rows are cut, answers are cut, and some
rows are left with nothing to learn. :data:`CAUSES` says which finding explains which; a check
that knows better says so itself (``because_of``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

from gradian_core.findings import Finding, Severity

__all__ = ["CAUSES", "Group", "fold", "groups"]

CAUSES: dict[str, tuple[str, ...]] = {
    # The sequence length: rows are cut, then answers, then nothing of them is left.
    "data.truncated": ("config.max_seq_length_vs_data", "data.completion_truncated"),
    "data.completion_truncated": ("config.max_seq_length_vs_data",),
    "data.no_supervised_tokens": ("data.template_rejects_rows", "data.completion_truncated"),
    "data.rows_dropped": ("data.no_supervised_tokens", "config.max_seq_length_vs_data"),
    # The end token: padding takes it out of the loss, so the model never learns to stop.
    "data.missing_eos": ("config.pad_equals_eos", "data.eos_mismatch"),
    # Little data: few steps follow from it, and little training from few steps.
    "dynamics.too_few_steps": ("data.tiny_dataset",),
    "config.undertrained": ("dynamics.too_few_steps", "data.tiny_dataset"),
    "config.warmup_exceeds_training": ("dynamics.too_few_steps", "data.tiny_dataset"),
    # A config key that the tool ignored: what ran is not what was asked for.
    "config.requested_vs_actual": ("config.ignored_config_key",),
    # A divergent run: the rate, or the number format, and what follows when the loss is gone.
    "dynamics.nan_loss": ("config.lr_too_high", "config.fp16_precision"),
    "dynamics.grad_norm_explosion": (
        "config.lr_too_high",
        "config.fp16_precision",
        "dynamics.nan_loss",
    ),
    "dynamics.loss_spike": ("config.lr_too_high", "dynamics.nan_loss"),
    "dynamics.always_clipping": ("config.lr_too_high", "dynamics.nan_loss"),
    "config.small_effective_batch": ("config.lr_too_high",),
    "config.no_warmup": ("config.lr_too_high",),
    "dynamics.loss_plateau": ("dynamics.nan_loss", "config.lr_too_low"),
    "dynamics.overfitting": ("dynamics.nan_loss", "config.overtraining"),
    "config.adapter_weights_dead": ("dynamics.nan_loss",),
    # Losses that are on two scales make every comparison between them wrong.
    "dynamics.initial_loss_too_high": ("dynamics.loss_scale_mismatch",),
    "dynamics.loss_scale_mismatch": ("config.known_bad_versions",),
    # Copies: near and exact ones of one row are one fault.
    "data.near_duplicates": ("data.duplicates",),
}
"""Consequence -> the findings that explain it, the likeliest first."""

_SHARED = 0.5
"""Where both name rows, they must share this much of the shorter list: lists may be cut."""


class _Told(Protocol):
    @property
    def id(self) -> str: ...
    @property
    def severity(self) -> Severity: ...
    @property
    def because_of(self) -> str | None: ...


Told = TypeVar("Told", bound=_Told)


@dataclass(frozen=True, slots=True)
class Group(Generic[Told]):
    """A root cause and what follows from it.

    Parameters
    ----------
    lead
        The root cause.
    others
        Its consequences, the worst first.
    """

    lead: Told
    others: tuple[Told, ...] = ()

    @property
    def worst(self) -> Severity:
        """The worst severity of all of them."""
        return min((f.severity for f in (self.lead, *self.others)), key=lambda s: s.rank)


def fold(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Link findings to their causes and put each behind its root cause.

    Parameters
    ----------
    findings
        In any order. A ``because_of`` that is set stays; if its cause is not among them,
        :data:`CAUSES` decides.

    Returns
    -------
    tuple of Finding
        Groups in the order of :func:`groups`.
    """
    found = sorted(findings, key=_rank)
    by_id: dict[str, Finding] = {}
    for finding in found:
        by_id.setdefault(finding.id, finding)
    linked = [replace(finding, because_of=_cause(finding, by_id)) for finding in found]
    return tuple(finding for group in groups(linked) for finding in (group.lead, *group.others))


def groups(findings: Sequence[Told]) -> tuple[Group[Told], ...]:
    """Return root causes with all that follows from them, the worst group first."""
    by_id: dict[str, Told] = {}
    for finding in findings:
        by_id.setdefault(finding.id, finding)
    leads: list[Told] = []
    others: dict[str, list[Told]] = {}
    for finding in findings:
        root = _root(finding, by_id)
        # Of several findings with one id, the first leads.
        if root == finding.id and by_id[root] is finding:
            leads.append(finding)
        else:
            others.setdefault(root, []).append(finding)
    # The first of several findings with one id may itself follow from another one.
    leading = {lead.id for lead in leads}
    leads += [others[root].pop(0) for root in sorted(others.keys() - leading)]
    made = [Group(lead, tuple(sorted(others.get(lead.id, ()), key=_rank))) for lead in leads]
    made.sort(key=lambda group: (group.worst.rank, *_rank(group.lead)))
    return tuple(made)


def _rank(finding: _Told) -> tuple[int, str]:
    return finding.severity.rank, finding.id


def _cause(finding: Finding, by_id: dict[str, Finding]) -> str | None:
    if finding.because_of in by_id:
        return finding.because_of
    for name in CAUSES.get(finding.id, ()):
        if name in by_id and _explains(by_id[name], finding):
            return name
    return None


def _explains(cause: Finding, finding: Finding) -> bool:
    if cause.severity is Severity.INFO and finding.severity is not Severity.INFO:
        return False
    one, other = set(cause.example_ids), set(finding.example_ids)
    return len(one & other) >= _SHARED * min(len(one), len(other))


def _root(finding: Told, by_id: dict[str, Told]) -> str:
    seen = [finding.id]
    cause = finding.because_of
    while cause in by_id:
        if cause in seen:
            # A chain that bites its tail has no root; each of its findings leads itself.
            return finding.id
        seen.append(cause)
        cause = by_id[cause].because_of
    return seen[-1]
