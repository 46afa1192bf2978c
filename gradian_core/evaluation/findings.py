"""What a measurement says about how far an attribution is to be trusted."""

from __future__ import annotations

import math
from collections.abc import Iterator

from gradian_core.evaluation.gate import IMPROVED, REGRESSED, UNDECIDABLE
from gradian_core.evaluation.result import CapabilityResult, ItemOutcome
from gradian_core.findings import Finding, Severity

__all__ = ["THIN_MARGIN", "WEAK_LOGLIK", "WEAK_SCORE", "evaluation_findings"]

WEAK_SCORE = 0.5
"""Below this mean score the base model fails more of the capability than it masters."""
WEAK_LOGLIK = -2.0
"""Nats a token: on average the base model gives the wanted token less than 14 %."""
THIN_MARGIN = 1.0
"""Nats: the right answer was less than e times as likely as what the tuned model says now."""


def evaluation_findings(result: CapabilityResult) -> list[Finding]:
    """Return what qualifies the measurement, in a fixed order.

    Evidence names eval items by id, since ``Finding.example_ids`` are training examples.
    """
    return [
        *_gate(result),
        *_repeated(result),
        *_cut_answers(result),
        *_improved(result),
        *_nothing_regressed(result),
        *_weak_base(result),
        *_failed_by_base(result),
        *_weak_preference(result),
        *_proxy(result),
    ]


def _gate(result: CapabilityResult) -> Iterator[Finding]:
    if result.verdict in {REGRESSED, IMPROVED}:
        return
    n = _distinct(result)
    changed = len({i.content for i in result.items if i.tuned_score != i.base_score})
    if changed:
        detail = (
            f"{result.reason} {changed} of {n} items changed, by {result.delta:+.4f} on average, "
            f"{_percent(result.ci_level)} interval [{result.ci_low:+.4f}, {result.ci_high:+.4f}]. "
            f"{result.detectable} Whatever is ranked below may explain noise."
        )
    else:
        detail = (
            f"No item changed: each of the {n} scores the same under base and tuned model, so "
            f"there is no change to explain. {result.detectable}"
        )
    yield Finding(
        id="attribution.gate_failed",
        # that a sound fine-tune lost nothing is no alarm
        severity=Severity.HIGH if result.delta < 0.0 else Severity.LOW,
        title=f"{result.name}: too little evidence to tell a change from noise"
        if result.verdict == UNDECIDABLE
        else f"{result.name}: no change that can be told from noise",
        detail=" ".join(detail.split()),
        fix=_more_items(result, n, changed),
        evidence={
            "items": n,
            "changed": changed,
            "delta": result.delta,
            "ci_low": result.ci_low,
            "ci_high": result.ci_high,
            "ci_level": result.ci_level,
            "verdict": result.verdict,
            "p_value": result.p_value,
        },
    )


def _distinct(result: CapabilityResult) -> int:
    return len(result.items) if result.n_distinct is None else result.n_distinct


def _repeated(result: CapabilityResult) -> Iterator[Finding]:
    n, total = _distinct(result), len(result.items)
    if n == total:
        return
    copies: dict[tuple[str, str], list[ItemOutcome]] = {}
    for item in result.items:
        copies.setdefault(item.content, []).append(item)
    most = max(copies.values(), key=len)
    yield Finding(
        id="attribution.repeated_eval_items",
        severity=Severity.MEDIUM,
        title=f"{result.name}: {total} eval items are {n} distinct ones",
        detail="Copies of an item (same prompt and reference) are no further evidence. The gate "
        f"counts each once; the most frequent one has {len(most)} copies.",
        fix="Replace the copies by items that ask something else.",
        evidence={
            "items": total,
            "distinct": n,
            "most_copies": len(most),
            "eval_ids": [item.id for item in most[:10]],
        },
    )


def _cut_answers(result: CapabilityResult) -> Iterator[Finding]:
    base = [item for item in result.items if item.base_cut]
    tuned = [item for item in result.items if item.tuned_cut]
    cap = result.max_new_tokens
    if not (base or tuned) or cap is None:
        return
    n = len(result.items)
    lost = sum(item.regressed for item in tuned)
    yield Finding(
        id="attribution.cut_answers",
        severity=Severity.HIGH if lost else Severity.MEDIUM,
        title=f"{result.name}: answers were cut off after {cap} tokens "
        f"({len(base)} of {n} of the base model, {len(tuned)} of {n} of the tuned model)",
        detail=f"What stood after the cut was not judged. Of the items that got worse, {lost} were "
        "cut in the tuned model's answer: there the loss, and what is contrasted with the right "
        "answer, may come from the cap alone.",
        fix=f"Set evaluation.max_new_tokens to {4 * cap}, and run again.",
        evidence={
            "max_new_tokens": cap,
            "items": n,
            "base_cut": len(base),
            "tuned_cut": len(tuned),
            "tuned_share": len(tuned) / n,
            "regressed_and_cut": lost,
            "eval_ids": [item.id for item in result.items if item.base_cut or item.tuned_cut][:10],
        },
    )


def _more_items(result: CapabilityResult, n: int, changed: int) -> str:
    half = (result.ci_high - result.ci_low) / 2.0
    if not changed or result.delta == 0.0 or half <= 0.0:
        return "If you see a loss, add eval items that show it; if you see none, nothing is wrong."
    # the interval narrows with the square root of n, and has to become narrower than the delta
    needed = max(n + 1, math.ceil(n * (half / abs(result.delta)) ** 2))
    if needed > 100 * n:
        return (
            "Add eval items that show the loss you see: on these it is far smaller than the noise."
        )
    return (
        f"Add eval items. If the change is as large as it looks, about {needed} (now {n}) would "
        "show it."
    )


def _improved(result: CapabilityResult) -> Iterator[Finding]:
    if result.verdict != IMPROVED:
        return
    yield Finding(
        id="attribution.improved",
        severity=Severity.MEDIUM,
        title=f"{result.name} improved: there is no loss to explain",
        detail=(
            f"The mean score rose from {result.base:.4f} to {result.tuned:.4f}. A ranking of "
            "training examples as causes of a loss has no meaning for this capability."
        ),
        fix="Measure the capability that got worse, with items that show it.",
        evidence={"base": result.base, "tuned": result.tuned, "delta": result.delta},
    )


def _nothing_regressed(result: CapabilityResult) -> Iterator[Finding]:
    if result.flipped:
        return
    n = len(result.items)
    yield Finding(
        id="attribution.no_item_regressed",
        severity=Severity.LOW,
        title=f"{result.name}: none of {n} eval items got worse",
        detail="With no lost item to ask about, the query averages over all of them.",
        fix="Add eval items that the base model gets right and the tuned model gets wrong.",
        evidence={"items": n, "regressed": 0},
    )


def _weak_base(result: CapabilityResult) -> Iterator[Finding]:
    threshold = WEAK_LOGLIK if result.proxy_used else WEAK_SCORE
    if result.base >= threshold:
        return
    unit = " nats a token" if result.proxy_used else ""
    yield Finding(
        id="attribution.base_model_weak",
        severity=Severity.MEDIUM,
        title=f"{result.name}: the base model hardly had it",
        detail=(
            f"Its mean score is {result.base:.4f}{unit}, below {threshold:g}. Little was there to "
            "be lost, so training data explains little."
        ),
        fix="Choose items that the base model masters, or a base model that masters them.",
        evidence={"base": result.base, "threshold": threshold},
    )


def _failed_by_base(result: CapabilityResult) -> Iterator[Finding]:
    if not result.base_failures:
        return
    n = len(result.items)
    ids = [item.id for item in result.items if item.base_score == 0.0]
    yield Finding(
        id="attribution.base_failed_items",
        severity=Severity.LOW,
        title=f"{result.name}: the base model fails {result.base_failures} of {n} eval items",
        detail="The fine-tune cannot have lost these; no training example is to blame for them.",
        fix="Keep them to see gains. If all you want to explain is a loss, they add nothing.",
        evidence={"items": n, "base_failures": result.base_failures, "eval_ids": ids},
    )


def _weak_preference(result: CapabilityResult) -> Iterator[Finding]:
    measured = [item for item in result.items if item.regressed and item.margin is not None]
    margins = [item.margin for item in measured if item.margin is not None]
    thin = [item.id for item, margin in zip(measured, margins, strict=True) if margin < THIN_MARGIN]
    if not thin:
        return
    mean = math.fsum(margins) / len(margins)
    yield Finding(
        id="attribution.weak_preference",
        severity=Severity.MEDIUM,
        title=(
            f"{result.name}: the base model was undecided on {len(thin)} of {len(margins)} "
            "regressed items"
        ),
        detail=(
            f"There it favoured the right answer over what the tuned model says by less than "
            f"{THIN_MARGIN:g} nat (mean over all regressed items {mean:+.2f}). Almost any "
            "fine-tune could have tipped them."
        ),
        fix="Take the ranking as a hint, and confirm it by retraining without the accused rows.",
        evidence={
            "threshold": THIN_MARGIN,
            "regressed": len(result.flipped),
            "measured": len(margins),
            "thin": len(thin),
            "mean_margin": mean,
            "eval_ids": thin,
        },
    )


def _proxy(result: CapabilityResult) -> Iterator[Finding]:
    if not result.proxy_used:
        return
    yield Finding(
        id="attribution.proxy_metric",
        severity=Severity.MEDIUM,
        title=f"{result.name}: {result.metric} measures likelihood, not whether answers are right",
        detail=(
            "It rises when the model learns how answers look, even while their content gets "
            "worse, and there is no generated answer to contrast with the right one."
        ),
        fix="If answers can be right or wrong, set evaluation.metric to contains or exact_match.",
        evidence={"metric": result.metric},
    )


def _percent(level: float) -> str:
    return f"{level * 100:g}%"
