"""From a fine-tune and a capability to a ranked, clustered report: the order of stages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gradian_core.attribution.clusters import ClusterSummary, summarise
from gradian_core.attribution.consensus import load_rules
from gradian_core.attribution.embed import Embedder
from gradian_core.attribution.query import QueryPlan
from gradian_core.attribution.signals import refuse_signal
from gradian_core.attribution.uptake import Uptake
from gradian_core.config.models import Config
from gradian_core.data.encode import Encoded
from gradian_core.data.tokens import Supervision
from gradian_core.evaluation.findings import evaluation_findings
from gradian_core.evaluation.gate import REGRESSED
from gradian_core.evaluation.result import CapabilityResult
from gradian_core.findings import Finding
from gradian_core.flows.checkpoints import last_learning_rate
from gradian_core.flows.compare import compare_engines, compared_with
from gradian_core.flows.consensus import Vote, take_votes
from gradian_core.flows.diagnose import examine
from gradian_core.flows.evaluate import measure_capability
from gradian_core.flows.index import encode_training_data
from gradian_core.flows.points import Points
from gradian_core.flows.queries import PlannedQueries, QueryPlanner
from gradian_core.flows.score import EngineRun, run_engine
from gradian_core.flows.session import Session
from gradian_core.flows.tools import Tools, resolve_tools
from gradian_core.index.address import result_id
from gradian_core.index.plan import skip_notes, skipped_rows
from gradian_core.plugins.failure import guard
from gradian_core.progress import NoProgress, Progress
from gradian_core.protocols import ClusterAssignment, ClusterTask
from gradian_core.report import findings as say
from gradian_core.report.assemble import Attribution, assemble
from gradian_core.report.attribution import AgreementReport, EngineReport, QueryReport
from gradian_core.report.consensus_finding import consensus_finding as say_consensus
from gradian_core.report.join import overlaps
from gradian_core.report.model import Provenance, Report
from gradian_core.report.repeats import duplicate_rows, eval_items_in_training
from gradian_core.report.uptake import UptakeReport, uptake_findings

__all__ = ["attribute"]


def attribute(
    config: Config,
    *,
    capability: str = "capability",
    force: bool = False,
    progress: Progress | None = None,
) -> Report:
    """Attribute the change of a capability to training examples.

    Parameters
    ----------
    config
        ``base_model``, ``adapter_path`` and ``dataset`` are needed; without ``eval_dataset`` the
        result is a smoke test and says so.
    capability
        Name of the capability, for the report.
    force
        Take the gradients again even if they are in the cache.
    progress
        Where to report; silent if None.

    Returns
    -------
    Report
        With the scores of every row as arrays in ``report.scores``.

    Raises
    ------
    GradianError
        With the exit code and the words for the user; see the parts.
    """
    session = Session(config, progress or NoProgress())
    # everything that can be refused cheaply comes before anything that takes time
    tools = resolve_tools(session)
    _ = session.adapter, session.dataset, session.eval_dataset, session.source, session.run
    if session.eval_dataset is not None:
        refuse_signal(tools.metric_spec, config.evaluation.query_signal)
    encoded = encode_training_data(session)
    measured = (
        measure_capability(session, tools.metric, tools.metric_spec, name=capability)
        if session.eval_dataset is not None
        else None
    )
    planner = QueryPlanner(session, measured, tools.metric_spec, encoded)
    queries = planner.plan()
    points = Points(session, encoded, planner, force=force)
    main = run_engine(tools.engine_name, tools.engine, points)
    check = _cross_check(tools, main, points)
    agreed = None if check is None else compared_with(main, check)
    compared = compare_engines(points, main, check)
    vote = take_votes(points, measured=measured is not None) if config.engine.consensus else Vote()
    skipped = skipped_rows(encoded.tokens, config.grads.max_seq_length)
    texts = [example.full_text for example in session.dataset]
    assignment, notes = _assign(session, tools, texts)
    clusters = summarise(
        assignment,
        main.total,
        texts,
        net=main.net,
        skipped=~main.scores.scored,
        settings=config.clustering,
    )
    # without a run there is little to audit: settings and logs are most of it
    audit = examine(config, progress=session.progress) if config.run_dir else None
    audited = audit.result.findings if audit is not None else ()
    return assemble(
        examples=session.dataset,
        capability=measured,
        attribution=Attribution(
            query=_query_report(session, queries.plan, measured, planner.uptake),
            engine=EngineReport(
                name=main.name,
                settings=tools.engine_settings,
                agreement=agreed,
                compared=compared.agreements,
            ),
            scores=main.total,
            net=main.net,
            assignment=assignment,
            clusters=clusters,
            skipped={row.position: row.reason for row in skipped},
            consensus=vote.report,
        ),
        findings=[
            *_findings(session, measured, encoded, queries, [row.id for row in skipped]),
            *_uptake_findings(session, measured, planner.uptake),
            *_repeats(session, encoded, audited),
            *_engine_findings(
                tools, main, check, agreed, lost=measured is None or bool(measured.flipped)
            ),
            *_cluster_findings(clusters, measured),
            *_given(say_consensus(vote.report, measured)),
            *audited,
            *overlaps(audited, clusters, assignment.labels, encoded.tokens.ids),
        ],
        not_done=(
            *compared.not_done,
            *vote.not_done,
            *(audit.report.not_done if audit is not None else ()),
        ),
        notes=[
            *session.dataset.notes,
            *(session.eval_dataset.notes if session.eval_dataset is not None else ()),
            *encoded.notes,
            *(measured.notes if measured is not None else ()),
            *skip_notes(skipped, len(encoded.tokens)),
            *(note for index in points.training.values() for note in index.manifest.notes),
            *planner.notes,
            *points.notes,
            *main.scores.notes,
            *compared.notes,
            *vote.notes,
            *notes,
            *session.registry.notes,
            *(audit.report.notes if audit is not None else ()),
        ],
        provenance=_provenance(points, tools),
        training_log=None if audit is None else audit.report.training_log,
        audited=audit is not None,
        require_significant=config.evaluation.require_significant,
    )


def _cross_check(tools: Tools, main: EngineRun, points: Points) -> EngineRun | None:
    if tools.check is None or tools.check_name is None:
        return None
    if tools.check_name == tools.engine_name:
        # the same numbers again; the comparison will find that, and say so
        return main
    return run_engine(tools.check_name, tools.check, points)


def _assign(
    session: Session, tools: Tools, texts: list[str]
) -> tuple[ClusterAssignment, tuple[str, ...]]:
    embedder = Embedder(texts, session.config.clustering, session.config.seed)
    with session.progress.task("Clustering", 1) as task:
        with guard(tools.owners["clusterer"], f"Clusterer {session.config.clustering.method}"):
            assignment = tools.clusterer.cluster(
                ClusterTask(
                    texts=texts,
                    declared=[example.cluster for example in session.dataset],
                    embed=embedder,
                    seed=session.config.seed,
                )
            )
        task.advance()
    return assignment, embedder.notes


def _findings(
    session: Session,
    measured: CapabilityResult | None,
    encoded: Encoded,
    queries: PlannedQueries,
    skipped: list[str],
) -> Iterator[Finding]:
    if measured is None:
        yield say.no_capability_target(len(queries.plan.combination))
    else:
        yield from evaluation_findings(measured)
    n = len(session.dataset)
    ids = encoded.tokens.ids
    yield from _given(
        say.rows_without_supervision(skipped, n),
        say.whole_sequence_supervision(
            [ids[i] for i in (encoded.tokens.supervision == Supervision.WHOLE).nonzero()[0]],
            n,
            "They are raw text, or the tokenizer has no chat template.",
        ),
        say.not_attributed_parameters(session.saved_modules),
    )


def _repeats(session: Session, encoded: Encoded, audited: Sequence[Finding]) -> Iterator[Finding]:
    """Say what the audit says too, where it has not been said."""
    said = {finding.id for finding in audited}
    if "data.duplicates" not in said:
        yield from _given(duplicate_rows(encoded.tokens.ids))
    if session.eval_dataset is not None and "data.train_eval_contamination" not in said:
        yield from _given(eval_items_in_training(session.eval_dataset, session.dataset))


def _query_report(
    session: Session,
    plan: QueryPlan,
    measured: CapabilityResult | None,
    uptake: Uptake | None,
) -> QueryReport:
    evaluation = session.config.evaluation
    ids = [example.id for example in session.dataset]
    return QueryReport(
        signal=plan.signal,
        n_rows=len(plan.combination),
        aggregation=evaluation.aggregation,
        why=plan.why,
        positive=evaluation.positive,
        n_given=plan.n_given,
        n_target=plan.n_target,
        uptake=None
        if measured is None or uptake is None
        else UptakeReport.of(uptake, measured, ids),
    )


def _uptake_findings(
    session: Session, measured: CapabilityResult | None, uptake: Uptake | None
) -> Iterator[Finding]:
    if measured is not None and uptake is not None:
        yield from uptake_findings(uptake, measured, [example.id for example in session.dataset])


def _engine_findings(
    tools: Tools,
    main: EngineRun,
    check: EngineRun | None,
    agreed: AgreementReport | None,
    *,
    lost: bool,
) -> Iterator[Finding]:
    runs = [run for run in (main, check) if run is not None]
    yield from say.engine_caveats((run.name, said) for run in runs for said in run.scores.caveats)
    yield from _given(say.ignored_settings(main.name, *tools.ignored))
    yield from _given(say.uncalibrated_scale(main.net, int(main.scores.scored.sum())))
    # where nothing was lost there is nothing to agree on
    if agreed is not None and lost:
        yield from _given(say.engine_disagreement(main.name, agreed))


def _cluster_findings(
    clusters: tuple[ClusterSummary, ...], measured: CapabilityResult | None
) -> Iterator[Finding]:
    yield from _given(say.cluster_noise(clusters))
    if measured is not None and measured.verdict == REGRESSED:
        yield from _given(say.flat_influence(clusters))


def _given(*findings: Finding | None) -> Iterator[Finding]:
    return (finding for finding in findings if finding is not None)


def _provenance(points: Points, tools: Tools) -> Provenance:
    session = points.session
    config = session.config
    # the gradients at the adapter itself if an engine took them, else those of the first point
    indexes = sorted(points.training.items(), key=lambda at: at[0] != (1.0, None))
    settings = {
        "seed": config.seed,
        "loss_reduction": config.grads.loss_reduction,
        "normalization": config.grads.normalization,
        "learning_rate": last_learning_rate(session.run),
        "engine": {"name": tools.engine_name, **tools.engine_settings},
        "cross_check": None
        if tools.check_name is None
        else {"name": tools.check_name, **tools.check_settings},
        "also": list(config.engine.also),
        "engine_options": config.engine.options,
        "consensus": load_rules().version if config.engine.consensus else None,
        "evaluation": config.evaluation.model_dump(mode="json"),
        "clustering": config.clustering.model_dump(mode="json"),
        "query_indexes": [index.manifest.id for index in points.queries.values()],
        "more_indexes": [index.manifest.id for _, index in indexes[1:]],
        "query_signal": points.planner.plan().plan.signal,
        "dataset": session.dataset.fingerprint,
        "eval_dataset": None if session.eval_dataset is None else session.eval_dataset.fingerprint,
        "plugins": tools.owners,
    }
    if not indexes:
        return Provenance(result={"id": result_id("", settings), **settings})
    index = indexes[0][1]
    manifest = index.manifest.model_dump(
        mode="json", include={"id", "created_by", "inputs", "provenance", "n", "n_rows_total"}
    )
    return Provenance(
        index={**manifest, "n_blocks": len(index.blocks), "row_bytes": index.manifest.row_bytes},
        result={"id": result_id(index.manifest.id, settings), **settings},
    )
