"""The configuration: one pydantic model for each section of ``gradian.yaml``.

Everything that changes a number is here. Field names and defaults are those that the
documentation of the product has always had. ``grads.batch_tokens``,
``grads.gradient_checkpointing``, ``engine.memory_limit_mb``, ``engine.options``,
``evaluation.aggregation`` and section ``plugins`` are additions to it.
The docstring of a field is its comment in the file that ``gradian init-config`` writes.

Core knows no plugin, so ``engine.name``, ``evaluation.metric``, ``clustering.method`` and
``train.backend`` are names that the registry resolves, not enumerations.
"""

from __future__ import annotations

import math
from typing import Any, Literal

from pydantic import (
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)

__all__ = [
    "MOST",
    "MOST_SEED",
    "ClusteringSection",
    "Config",
    "EngineSection",
    "EvaluationSection",
    "GradsSection",
    "PluginsSection",
    "Section",
    "TrainSection",
]

MOST = 2**31 - 1
"""Largest whole number of a setting: sizes are 32-bit numbers in some library below."""

MOST_SEED = 2**32 - 1
"""Largest seed that numpy's and scikit-learn's generators take."""


class Section(BaseModel):
    """Base of all sections: frozen, unknown keys refused."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        populate_by_name=True,
        use_attribute_docstrings=True,
        allow_inf_nan=False,
    )


class GradsSection(Section):
    """Per-example gradients: what decides how long indexing takes and how much it needs."""

    strategy: Literal["hooks", "loop", "vmap"] = "hooks"
    """How per-example gradients are captured. ``loop`` is the batch-of-one reference, ``vmap``
    is opt-in."""
    loss_reduction: Literal["mean", "sum"] = "mean"
    """Reduction of an example's loss over its supervised tokens."""
    normalization: Literal["none", "l2", "token_count"] = "none"
    """Scaling of each example's gradient before scoring."""
    batch_size: int = Field(4, ge=1, le=MOST)
    """Most rows in a batch."""
    batch_tokens: int = Field(4096, ge=1, le=MOST)
    """Most tokens in a batch, padding included: bounds memory whatever the lengths."""
    max_seq_length: int = Field(1024, ge=2, le=MOST)
    """Truncation length in tokens."""
    module_filter: str | None = None
    """Regular expression, searched in the full short module name
    (``model.layers.12.mlp.down_proj``)."""
    block_granularity: Literal["module", "matrix"] = "module"
    """Whether a block is a module (A and B together) or each LoRA matrix."""
    projection_dim: int | None = Field(None, ge=1, le=MOST)
    """Johnson-Lindenstrauss width per block; None stores exact gradients."""
    projection_kind: Literal["countsketch", "rademacher"] = "countsketch"
    """Family of the projection."""
    projection_seed: int = Field(0, ge=0, le=MOST_SEED)
    """Seed of the projection."""
    storage_dtype: Literal["float32", "float16"] = "float32"
    """Type in which the index is stored."""
    chunk_size: int = Field(256, ge=1, le=MOST)
    """Most rows in a shard of the index."""
    gradient_checkpointing: bool = False
    """Recompute activations in the backward pass (less memory, more time, same numbers)."""


class EngineSection(Section):
    """The attribution engine."""

    name: str = "path"
    """Name of an engine (``gradian plugins list``)."""
    cross_check: str | None = "datainf"
    """A second engine for rank agreement, or ``none``. Left out beside ``datainf``, it is
    ``graddot``."""
    also: list[str] = Field(default_factory=list)
    """More engines to compare with, or ``all`` that are installed. ``name: all`` is the default
    engine compared with all."""
    lambda_scale: float = Field(0.1, ge=1e-100, le=1e100)
    """Damping relative to the mean squared gradient of each block."""
    lambda_override: float | None = Field(None, ge=1e-100, le=1e100)
    """Absolute damping instead."""
    normalize_query: bool = False
    """Scale each query to unit length (curvature-free engines only)."""
    consensus: bool = True
    """Also ask three unlike engines for whom all of them blame: tells a cause in the data from
    one in the setup. Needs gradients at four scales of the adapter, which ``path`` takes anyway."""
    memory_limit_mb: int = Field(1024, ge=1, le=MOST)
    """A block of the index up to this size is read from disk once."""
    options: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Settings of other engines, by engine name; checked by the engine's own model."""

    @field_validator("cross_check", mode="before")
    @classmethod
    def _none_is_none(cls, value: object) -> object:
        return None if isinstance(value, str) and value.lower() in {"none", ""} else value

    @model_validator(mode="before")
    @classmethod
    def _all_is_a_comparison(cls, values: object) -> object:
        if isinstance(values, dict) and values.get("name") == "all":
            rest = {key: value for key, value in values.items() if key != "name"}
            return {**rest, "also": ["all"]}
        return values

    @model_validator(mode="before")
    @classmethod
    def _unlike_by_default(cls, values: object) -> object:
        if (
            isinstance(values, dict)
            and "cross_check" not in values
            and values.get("name") == "datainf"
        ):
            return {**values, "cross_check": "graddot"}
        return values


_TAIL = 5
"""Resamples beyond a limit of the bootstrap interval, below which the limit is one draw's luck."""


class EvaluationSection(Section):
    """Measuring the capability, and the query that is built from what was lost."""

    max_new_tokens: int = Field(32, ge=1, le=MOST)
    """Generation cap."""
    batch_size: int = Field(8, ge=1, le=MOST)
    """Generation batch size."""
    n_bootstrap: int = Field(2000, ge=100, le=1_000_000)
    """Bootstrap resamples."""
    ci_level: float = Field(0.95, gt=0.5, lt=1.0)
    """Confidence level of the gate. At least 5 resamples must lie beyond either limit."""
    metric: str = "exact_match"
    """Name of a metric (``gradian plugins list``)."""
    greedy: bool = True
    """Greedy decoding. Sampling is seeded when this is off."""
    require_significant: bool = True
    """Refuse to call a change diagnosed when its interval includes zero."""
    query_signal: Literal["auto", "contrastive", "target", "divergence"] = "target"
    """How the query gradient is built. ``auto`` is ``contrastive`` if training rows teach at
    least half of the wrong answers, else ``target``."""
    positive: Literal["base", "reference"] = "base"
    """The correct answer: what the base model said, where that is fully right, or always the
    completion in the eval file."""
    aggregation: Literal["mean", "max", "top3", "relu"] = "relu"
    """How the scores of the items become one that ranks a row: their mean (net effect), the
    largest harm to any item, the mean of the three largest, or the mean of the harm alone."""
    options: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Settings of metrics, by metric name; checked by the metric's own model."""

    @field_validator("ci_level")
    @classmethod
    def _tails_are_seen(cls, level: float, info: ValidationInfo) -> float:
        resamples = info.data.get("n_bootstrap")
        tail = None if resamples is None else round(resamples * (1.0 - level) / 2.0, 6)
        if tail is not None and tail < _TAIL:
            needed = math.ceil(2 * _TAIL / (1.0 - level) * (1.0 - 1e-8))
            raise ValueError(
                f"with n_bootstrap {resamples}, {tail:g} resamples lie beyond each limit at level "
                f"{level}, and {_TAIL} are needed: set n_bootstrap to {needed}, or a lower level"
            )
        return level


class ClusteringSection(Section):
    """Grouping of the scored examples."""

    method: str = "auto"
    """Name of a clusterer (``gradian plugins list``)."""
    n_clusters: int = Field(8, ge=1, le=MOST)
    """Number of clusters for kmeans."""
    min_cluster_size: int = Field(5, ge=2, le=MOST)
    """Smallest cluster for hdbscan."""
    embed_model: str = "sentence-transformers/all-MiniLM-L6-v2"
    """Embedding model for the sentence-transformers backend."""
    embed_backend: Literal["auto", "sentence-transformers", "tfidf"] = "auto"
    """``auto`` is TF-IDF: it needs no download and gives the same clusters on every machine."""
    max_features: int = Field(4096, ge=1, le=MOST)
    """Cap of the TF-IDF vocabulary."""
    svd_dim: int = Field(64, ge=1, le=MOST)
    """Width of the SVD after TF-IDF."""
    top_examples_per_cluster: int = Field(5, ge=0, le=MOST)
    """Excerpts shown for each cluster."""
    label_top_terms: int = Field(4, ge=1, le=MOST)
    """Terms in a cluster's label."""
    options: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Settings of other clusterers, by clusterer name; checked by the clusterer's own model."""


class TrainSection(Section):
    """``gradian train``; does not affect attribution."""

    backend: str = "hf"
    """Name of a trainer: ``hf``, ``trl``, ``unsloth`` or a plugin's."""
    base_model: str = ""
    """Model to fine-tune; empty: the top level ``base_model``."""
    output_dir: str = "runs/run"
    """Run folder to be written."""
    r: int = Field(8, ge=1, le=MOST)
    """Rank of the LoRA matrices."""
    lora_alpha: int = Field(16, ge=1, le=MOST)
    """LoRA scaling: updates are multiplied by ``lora_alpha / r``."""
    lora_dropout: float = Field(0.0, ge=0.0, lt=1.0)
    """Dropout before the LoRA matrices, in training only."""
    target_modules: list[str] | None = None
    """Names of the modules that get an adapter; null: the backend's choice."""
    learning_rate: float = Field(2e-4, gt=0)
    """Peak learning rate."""
    num_train_epochs: float = Field(1.0, gt=0)
    """Passes over the data."""
    per_device_train_batch_size: int = Field(2, ge=1, le=MOST)
    """Rows in a batch."""
    gradient_accumulation_steps: int = Field(1, ge=1, le=MOST)
    """Batches in an optimiser step."""
    warmup_ratio: float = Field(0.03, ge=0.0, le=1.0)
    """Share of the steps over which the learning rate rises."""
    lr_scheduler_type: str = "linear"
    """Shape of the learning rate, by transformers' names."""
    max_seq_length: int = Field(512, ge=2, le=MOST)
    """Truncation length in tokens."""
    logging_steps: int = Field(1, ge=1, le=MOST)
    """Steps between two log entries."""
    save_steps: int = Field(0, ge=0, le=MOST)
    """Steps between two checkpoints, with ``save_checkpoints``; 0: one an epoch."""
    save_checkpoints: bool = False
    """Keep checkpoints, which TracIn can use."""
    max_grad_norm: float = Field(1.0, ge=0)
    """Gradient norm above which gradients are clipped; 0: never."""
    weight_decay: float = Field(0.0, ge=0)
    """Weight decay of AdamW."""
    load_in_4bit: bool = False
    """Quantise the base model while training; attribution never does."""
    extra: dict[str, Any] = Field(default_factory=dict)
    """Further arguments for the backend, as they are."""


class PluginsSection(Section):
    """Which installed plugins to use."""

    block: tuple[str, ...] = ()
    """Plugins or distributions that are not loaded."""


class Config(Section):
    """The whole of ``gradian.yaml``."""

    seed: int = Field(1234, ge=0, le=MOST_SEED)
    """Seeds everything; part of the index id."""
    device: str = "auto"
    """``auto`` is CUDA when visible, else the CPU. ``mps`` only when asked for."""
    dtype: Literal["auto", "float32", "bfloat16", "float16", "float64"] = "auto"
    """Type of the model's weights. ``auto``: as the checkpoint says, float32 on a CPU."""
    base_model: str = ""
    """Hub id, folder or ``.gguf`` file that was fine-tuned."""
    tokenizer: str | None = None
    """Another tokenizer than the base model's."""
    adapter_path: str | None = Field(None, validation_alias=AliasChoices("adapter_path", "adapter"))
    """Folder of the PEFT LoRA adapter (``adapter`` is accepted too)."""
    dataset: str | None = None
    """Training data: ``.jsonl``, ``.json`` or a ``save_to_disk`` folder."""
    eval_dataset: str | None = None
    """Items that describe the capability, with the answers that were wanted."""
    run_dir: str | None = None
    """Run folder with the trainer's config and logs."""
    cache_dir: str = ".gradian"
    """Where the content-addressed caches live."""
    trust_remote_code: bool = False
    """Handed to transformers. Off, unless you have read the code."""
    attn_implementation: str = "eager"
    """``eager`` because it can be hooked and repeated exactly."""
    grads: GradsSection = GradsSection()
    engine: EngineSection = EngineSection()
    evaluation: EvaluationSection = EvaluationSection()
    clustering: ClusteringSection = ClusteringSection()
    train: TrainSection = TrainSection()
    plugins: PluginsSection = PluginsSection()
