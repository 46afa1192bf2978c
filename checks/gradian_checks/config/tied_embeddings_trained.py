"""``config.tied_embeddings_trained``."""

from __future__ import annotations

from collections.abc import Iterator

from gradian_checks._families import family
from gradian_checks._read import flag
from gradian_checks._targets import named_targets
from gradian_core.audit import samples
from gradian_core.audit.facts import NotAssessed
from gradian_core.check import check
from gradian_core.findings import Finding, Severity
from gradian_core.runs.artifact import AdapterInfo, TrainingConfig

_INPUT = frozenset({"embed_tokens", "wte", "word_embeddings", "tok_embeddings"})
_OUTPUT = frozenset({"lm_head", "embed_out"})


@check(
    severity=Severity.MEDIUM,
    since="0.1",
    trips=lambda: {
        "adapter": samples.adapter(
            base_model_name_or_path="Qwen/Qwen2.5-0.5B", modules_to_save=["lm_head"]
        )
    },
    clean=lambda: {
        "adapter": samples.adapter(
            base_model_name_or_path="Qwen/Qwen2.5-7B", modules_to_save=["lm_head"]
        )
    },
)
def tied_embeddings_trained(
    adapter: AdapterInfo, training: TrainingConfig | None = None
) -> Iterator[Finding]:
    """Tied embeddings that are trained apart.

    Why it matters: small models use one matrix to read tokens and to write them. An adapter that
    trains one side, or both as copies, takes them apart; on merging, one of the two is lost.

    How to fix: ``ensure_weight_tying: true`` (PEFT 0.18), or train new tokens alone with
    ``trainable_token_indices``.

    Threshold: ``modules_to_save`` or ``target_modules`` with an input or output embedding, on a
    model that ties them, without ``ensure_weight_tying`` (medium). Sources: peft#2018,
    transformers#45127.

    Not assessed: where embeddings are trained and it is not known whether the model ties them.
    """
    saved = adapter.raw.get("modules_to_save")
    listed = named_targets(adapter)
    names = [str(name) for name in saved] if isinstance(saved, list) else []
    names += [] if listed is None or isinstance(listed, str) else list(listed)
    ends = {name.rsplit(".", 1)[-1] for name in names}
    trained = sorted(ends & (_INPUT | _OUTPUT))
    if not trained or adapter.raw.get("ensure_weight_tying") is True:
        return
    tied = flag(training, "tie_word_embeddings")
    model = family(adapter.base_model)
    if tied is None and model is not None:
        tied = model.ties(str(adapter.base_model))
    if tied is None:
        raise NotAssessed(f"It is not known whether {adapter.base_model} ties its embeddings.")
    if not tied:
        return
    yield Finding(
        id="config.tied_embeddings_trained",
        severity=Severity.MEDIUM,
        title=f"{' and '.join(trained)} trained on a model whose embeddings are tied",
        detail="Reading and writing tokens share one matrix here; training takes them apart.",
        fix="Set ensure_weight_tying: true, or train new tokens with trainable_token_indices.",
        evidence={"trained": trained, "base_model": adapter.base_model},
    )
