"""The diagnosis in up to four sentences: what happened, why, how sure, what to do next."""

from __future__ import annotations

from collections.abc import Sequence

from gradian_core.attribution.clusters import STANDS_OUT_ROWS
from gradian_core.evaluation.gate import IMPROVED, REGRESSED
from gradian_core.findings import Severity
from gradian_core.report.attribution import ClusterReport, EngineReport
from gradian_core.report.capability import CapabilityReport
from gradian_core.report.findings import AGREEMENT_HIGH, AGREEMENT_LOW
from gradian_core.report.format import (
    cluster_name,
    count,
    interval,
    level,
    percent,
)
from gradian_core.report.story import Story
from gradian_core.report.verdict import BASE_WEAK, verdict
from gradian_core.report.verdict_report import VerdictReport
from gradian_core.text import excerpt

__all__ = ["headline"]

_NAMED = 3
_WIDTH = 60
_ADVICE = 300
_NOISE = "-1"
_COMPARED = 2


def headline(story: Story) -> str:
    """Return the headline. Names in it come from files, so sinks escape it like any other text."""
    if story.capability is None:
        sentences = _audit(story) if story.engine is None else _no_target(story)
    elif story.capability.verdict == REGRESSED:
        sentences = _regressed(story, story.capability)
    elif story.capability.verdict == IMPROVED:
        sentences = _improved(story, story.capability)
    elif not story.require_significant and story.capability.delta < 0.0:
        sentences = _regressed(story, story.capability)
    else:
        sentences = _undecided(story, story.capability)
    return " ".join(sentence for sentence in sentences if sentence)


def _regressed(story: Story, capability: CapabilityReport) -> list[str]:
    what = f"{_name(capability.name)} regressed: {_change(capability)}"
    if capability.verdict != REGRESSED:
        what = (
            f"{_name(capability.name)} may have regressed: {_change(capability)}; "
            f"{_why(capability)}, and the gate is off"
        )
    if story.engine is None:
        return [
            f"{what}; no training rows were scored.",
            _sentence("Confidence", _hedges(story, capability)),
            _next(story, "run gradian attribute to rank the training rows."),
        ]
    found = verdict(story)
    assert found is not None
    hedges = _sentence("Confidence", _hedges(story, capability))
    return [
        f"{what}.",
        f"{_LEADS[found.kind]}: {found.why}{_groups(story)}.",
        hedges,
        _act(story, found),
    ]


_LEADS = {
    "data": "The data is suspected",
    "setup": "The training setup is suspected",
    "base_model": "The base model explains it",
    "no_regression": "There is nothing to explain",
    "undetermined": "The cause is undetermined",
}


def _groups(story: Story) -> str:
    """Which groups of rows stand out in the ranking, or why that cannot be told."""
    accused = story.accused
    if not accused:
        judged = [c for c in story.clusters if c.cluster != _NOISE and c.n >= STANDS_OUT_ROWS]
        if len(story.clusters) == 1:
            return "; all training rows are in one cluster, so no group can stand out"
        if len(judged) < _COMPARED:
            return (
                f"; too few clusters have {STANDS_OUT_ROWS} rows to tell whether a group stands out"
            )
        return "; no group of training rows stands out"
    told = [
        f"{_name(cluster_name(c))} ({c.n:,} of {story.n_examples:,} rows, "
        f"{percent(c.share_of_negative)} of the negative influence{_ratio(c)})"
        for c in accused[:_NAMED]
    ]
    more = len(accused) - len(told)
    names = " and ".join(told) + (f" and {more} more" if more else "")
    plural = "s" if len(accused) > 1 else ""
    return f"; cluster{plural} {names} stand{'' if plural else 's'} out in the ranking"


def _ratio(cluster: ClusterReport) -> str:
    if cluster.harm_ratio is None:
        return ""
    return f", {cluster.harm_ratio:.3g} times as much per row as the others"


def _act(story: Story, found: VerdictReport) -> str:
    if found.kind == "setup":
        return f"Next: {excerpt(story.setup[0].fix, _ADVICE)}"
    if found.kind == "base_model":
        return _next(story, "measure a capability that the base model has.")
    if found.kind == "undetermined" and not story.audited:
        return _next(
            story, "give the run folder with --run, so that its settings and logs are looked at."
        )
    if story.accused or (story.consensus is not None and story.consensus.n_accused):
        return _next(
            story,
            "read the accused rows, then put them to the test with gradian counterfactual: "
            "retrain without them, beside a control that drops as many other rows.",
        )
    return _next(story, "look at the config and dynamics findings before touching any row.")


def _improved(story: Story, capability: CapabilityReport) -> list[str]:
    what = f"{_name(capability.name)} improved: {_change(capability)}"
    hedges = _hedges(story, capability, ranking=False)
    return [
        f"{what}; there is no regression to explain.",
        _sentence("Confidence", hedges),
        _next(story, "if something got worse, measure it with items that show it."),
    ]


def _undecided(story: Story, capability: CapabilityReport) -> list[str]:
    what = f"No diagnosis for {_name(capability.name)}: {_change(capability)}; "
    what += _why(capability)
    what += "; scores are listed, but they may rank noise." if story.engine else "."
    advice = "add eval items, distinct ones; do not delete rows on this basis."
    return [what, _next(story, advice)]


def _no_target(story: Story) -> list[str]:
    what = (
        "No diagnosis: there is no eval data set, so no capability was measured; training "
        "rows stood in for the query, which shows that the machinery runs and nothing more."
    )
    return [
        what,
        _next(story, "give --eval-dataset with items that the tuned model should get right."),
    ]


def _audit(story: Story) -> list[str]:
    serious = [f for f in story.findings if f.severity is not Severity.INFO]
    if not serious:
        return [f"The audit of {count(story.n_examples, 'row')} found no fault."]
    counts = {s: sum(f.severity is s for f in serious) for s in Severity}
    listed = ", ".join(f"{n} {severity}" for severity, n in counts.items() if n)
    worst = serious[0]
    what = f"The audit found {count(len(serious), 'fault')} ({listed}); the worst: "
    advice = f"Next: {excerpt(worst.fix, _ADVICE)}" if worst.fix else ""
    return [f"{what}{excerpt(worst.title, _ADVICE).rstrip('.')}.", advice]


def _change(capability: CapabilityReport) -> str:
    c = capability
    return (
        f"{_name(c.metric)} {c.base:.4f} to {c.tuned:.4f} ({c.delta:+.4f}, "
        f"{level(c.ci_level)} CI {interval(c)}) over {_items(c)}, "
        f"{c.n_flipped:,} of which got worse"
    )


def _items(c: CapabilityReport) -> str:
    if c.n_distinct is None or c.n_distinct == c.n_items:
        return count(c.n_items, "item")
    return f"{count(c.n_items, 'item')} ({c.n_distinct:,} distinct)"


def _why(capability: CapabilityReport) -> str:
    """Why nothing can be told, as part of a sentence."""
    reason = capability.reason.rstrip(".") or "the interval includes zero"
    return reason[0].lower() + reason[1:]


def _name(text: str) -> str:
    return excerpt(text, _WIDTH) or "(no name)"


def _hedges(story: Story, capability: CapabilityReport, *, ranking: bool = True) -> list[str]:
    hedges = []
    if ranking and story.engine is not None:
        hedges.append(_agreement(story.engine))
    if capability.n_base_failures:
        hedges.append(
            f"the base model fails {capability.n_base_failures:,} of the items too, which no "
            "training row explains"
        )
    margins = capability.margins
    if margins is not None and margins.n_weak:
        hedges.append(
            f"the base model held {margins.n_weak:,} of the {margins.n:,} that got worse by less "
            f"than {margins.weak_below:g} nat, so almost any fine-tune would have tipped them"
        )
    if story.has(BASE_WEAK):
        hedges.append("the base model hardly had this capability, so data explains little")
    if capability.proxy_used:
        hedges.append("the metric is a likelihood, which format alone can move")
    return hedges


def _agreement(engine: EngineReport) -> str:
    agreement = engine.agreement
    if agreement is None:
        return f"no second engine checked the ranking of {engine.name}"
    if not agreement.independent:
        return (
            f"nothing confirms the ranking: {agreement.engine} is no independent check of "
            f"{engine.name}, since the two compute the same"
        )
    if agreement.spearman is None:
        return f"the agreement of {engine.name} with {agreement.engine} is undefined"
    numbers = (
        f"{agreement.top_k_overlap:.0%} of the {agreement.top_k} most harmful rows in common, "
        f"{agreement.top_k_chance:.0%} by chance"
    )
    if agreement.top_k_overlap >= AGREEMENT_HIGH:
        return f"{agreement.engine} confirms the ranking ({numbers})"
    if agreement.top_k_overlap >= AGREEMENT_LOW:
        return f"{agreement.engine} confirms the ranking only in part ({numbers})"
    return f"{agreement.engine} ranks the rows differently ({numbers})"


def _next(story: Story, otherwise: str) -> str:
    """Say what to do: a critical finding comes before anything else."""
    if not story.critical:
        return f"Next: {otherwise}" if otherwise else ""
    names = list(dict.fromkeys(f.id for f in story.critical))
    shown = ", ".join(_name(name) for name in names[:_NAMED])
    if len(names) > _NAMED:
        shown += f" and {len(names) - _NAMED} more"
    return f"Next: fix {shown} first, which can explain the change alone, and run again."


def _sentence(start: str, parts: Sequence[str]) -> str:
    return f"{start}: {'; '.join(parts)}." if parts else ""
