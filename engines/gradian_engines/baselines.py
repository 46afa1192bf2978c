"""Baselines: what an engine with gradients has to beat on the same rows and queries."""

from __future__ import annotations

from collections.abc import Iterator

from gradian_core.hookspecs import hookimpl
from gradian_core.specs import EngineSpec


@hookimpl
def gradian_engines() -> Iterator[EngineSpec]:
    """Give the engines."""
    yield EngineSpec(
        name="bm25",
        summary="baseline: words that a row shares with what was lost (Okapi BM25)",
        factory="gradian_engines._bm25:Bm25",
        config="gradian_engines._bm25:Bm25Settings",
        needs="text",
        baseline=True,
        requires=("sklearn",),
        extra="attribution",
    )
    yield EngineSpec(
        name="tfidf",
        summary="baseline: cosine of a row's words with those of what was lost (TF-IDF)",
        factory="gradian_engines._tfidf:Tfidf",
        config="gradian_engines._tfidf:TfidfSettings",
        needs="text",
        baseline=True,
        requires=("sklearn",),
        extra="attribution",
    )
    yield EngineSpec(
        name="repsim",
        summary="baseline: cosine of the base model's hidden states of row and item",
        factory="gradian_engines._repsim:RepSim",
        config="gradian_engines._repsim:RepSimSettings",
        needs="model",
        baseline=True,
        requires=("torch",),
        extra="attribution",
    )
    yield EngineSpec(
        name="lossdrop",
        summary="baseline: how much the fine-tune lowered a row's loss, whatever was lost",
        factory="gradian_engines._rowwise:LossDrop",
        config="gradian_engines._rowwise:LossDropSettings",
        needs="model",
        baseline=True,
        requires=("torch",),
        extra="attribution",
    )
    yield EngineSpec(
        name="loss",
        summary="baseline: a row's loss under the fine-tuned model, whatever was lost",
        factory="gradian_engines._rowwise:Loss",
        baseline=True,
    )
    yield EngineSpec(
        name="gradnorm",
        summary="baseline: the norm of a row's gradient, whatever was lost",
        factory="gradian_engines._rowwise:GradNorm",
        config="gradian_engines._rowwise:GradNormSettings",
        baseline=True,
    )
    yield EngineSpec(
        name="random",
        summary="baseline: a seeded draw, which knows nothing at all",
        factory="gradian_engines._rowwise:Random",
        needs="text",
        baseline=True,
    )
