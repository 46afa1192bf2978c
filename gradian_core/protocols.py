r"""What the things that plugins add must be able to do.

Only typing lives here: importing this module imports neither numpy nor torch. Arrays are numpy
arrays; shapes are written ``(rows, columns)``.

Sign convention (rule 7; it stands here and nowhere else)
---------------------------------------------------------
A **positive** score means that the training example *reinforced* the queried behaviour,
a **negative** score that it *degraded* it. With query gradient :math:`g_q` of the loss on the
correct behaviour (or of that loss minus the loss on what the model said instead) and example
gradient :math:`g_j`, the score is :math:`+\langle g_q, H^{-1} g_j\rangle`: one SGD step on an
example with a positive score lowers the query loss. Removing example *j* of *n* is predicted to
change the query loss by ``score / n``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from gradian_core.data.example import Example
    from gradian_core.data.tokens import TokenizedRows
    from gradian_core.model.loaded import LoadedModel
    from gradian_core.progress import Progress
    from gradian_core.report.model import Report
    from gradian_core.runs.artifact import RunArtifact

    FloatArray = NDArray[np.floating]
    IntArray = NDArray[np.integer]

__all__ = [
    "AttributionTask",
    "BlockEngine",
    "BlockGradients",
    "Checkpoint",
    "ClusterAssignment",
    "ClusterTask",
    "Clusterer",
    "GradientPoint",
    "LikelihoodMetric",
    "QueryItem",
    "QueryRows",
    "RunReader",
    "ScoringContext",
    "Sink",
    "TaskEngine",
    "TextMetric",
    "TrainJob",
    "Trainer",
]


# --- engines ---------------------------------------------------------------------------------


class BlockGradients(Protocol):
    """The gradients of all training examples with respect to one LoRA block.

    Rows are in the index's own order; core puts scores back into the order of the file.
    """

    @property
    def name(self) -> str:
        """Name of the block, such as ``model.layers.0.mlp.down_proj``."""

    @property
    def n(self) -> int:
        """Number of training examples."""

    @property
    def dim(self) -> int:
        """Number of stored components of a gradient in this block."""

    @property
    def exact_dim(self) -> int:
        """Number of components before projection; ``dim`` where nothing was projected."""

    @property
    def squared_norms(self) -> FloatArray:
        """``(n,)`` float64: squared Euclidean norm of each row. Known without reading the block."""

    def chunks(self) -> Iterator[tuple[slice, FloatArray]]:
        """Yield ``(rows, gradients)`` with gradients ``(len(rows), dim)`` in float32 or float64.

        May be called several times. A block that fits into the memory limit is read from disk
        once, however often this is called.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoringContext:
    """What an engine may want to know beside the block it is scoring.

    Parameters
    ----------
    n_examples
        Number of training examples *n*.
    query_norms
        ``(q,)`` norm of each query over all blocks together.
    learning_rate
        Learning rate of the step at which the adapter was saved, from the trainer's log.
        None if unknown.
    """

    n_examples: int
    query_norms: FloatArray
    learning_rate: float | None = None


@runtime_checkable
class BlockEngine(Protocol):
    """An engine whose score is a sum over LoRA blocks."""

    def score_block(
        self, block: BlockGradients, queries: FloatArray, context: ScoringContext
    ) -> FloatArray:
        """Score every example against every query within one block.

        Parameters
        ----------
        block
            Gradients of the training examples.
        queries
            ``(q, dim)`` query gradients of the same block.
        context
            Facts about the whole run.

        Returns
        -------
        numpy.ndarray
            ``(q, n)`` scores; the total is the sum over blocks. See the module docstring for
            the sign.
        """

    def caveats(self, context: ScoringContext) -> Sequence[str]:
        """Sentences about how far this engine is to be trusted here; they reach the report."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryItem:
    """One eval item that got worse (any item, where none did; a training row, without eval data).

    Parameters
    ----------
    example
        The row as it was given; ``example.prompt`` are its turns before the answer.
    prompt
        Text of the prompt.
    reference
        The completion in the file.
    base_output, tuned_output
        What base and tuned model answered; None where nothing was generated.
    """

    example: Example
    prompt: str
    reference: str
    base_output: str | None = None
    tuned_output: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """An adapter that the training run saved.

    Parameters
    ----------
    path
        Its folder.
    step
        Optimiser step at which it was saved; None if unknown.
    learning_rate
        Learning rate of that step in the trainer's log; None if unknown.
    """

    path: Path
    step: int | None = None
    learning_rate: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QueryRows:
    """The queries as rows of tokens whose losses combine to them.

    Parameters
    ----------
    tokens
        *m* rows.
    weights
        ``(q, m)`` float64: weight of each row's loss in each query, such as +1 for the correct
        answer and -1 for what was said instead.
    """

    tokens: TokenizedRows
    weights: FloatArray


class GradientPoint(Protocol):
    """Gradients of all scored rows and of all queries at one point of parameter space.

    Rows and queries are in the task's order. Gradients are scaled by ``grads.loss_reduction``
    and ``grads.normalization``, as every engine sees them.
    """

    @property
    def context(self) -> ScoringContext:
        """Facts about this point; ``query_norms`` are over all blocks together."""

    @property
    def row_norms(self) -> FloatArray:
        """``(n,)`` float64: norm of each row over all blocks together."""

    @property
    def losses(self) -> FloatArray:
        """``(n,)`` float64: mean loss of each row over its supervised tokens here, in nats."""

    def blocks(self) -> Iterator[tuple[BlockGradients, FloatArray]]:
        """Yield each block with the ``(q, dim)`` float64 queries within it.

        May be called several times. Use a block before asking for the next: what it has read
        is then let go.
        """


class AttributionTask(Protocol):
    """What is to be attributed. Everything in it is in one order, the index's own.

    Nothing is computed before it is asked for: an engine that needs only texts causes no
    gradient to be taken. What is computed lies in the cache under the address of its content.
    """

    @property
    def n(self) -> int:
        """Number of scored rows; rows without a supervised token are left out."""

    @property
    def q(self) -> int:
        """Number of queries; the same for every signal."""

    @property
    def examples(self) -> Sequence[Example]:
        """The *n* scored rows."""

    @property
    def items(self) -> Sequence[QueryItem]:
        """The *q* items behind the queries."""

    @property
    def tokens(self) -> TokenizedRows:
        """The *n* scored rows as tokens with their loss mask."""

    def query_rows(self, signal: str | None = None) -> QueryRows:
        """Return the queries as tokens, under a query signal (None: the configured one)."""

    def gradients(
        self,
        *,
        signal: str | None = None,
        adapter_scale: float = 1.0,
        checkpoint: Checkpoint | None = None,
    ) -> GradientPoint:
        """Take the gradients at one point, or find them in the cache.

        Parameters
        ----------
        signal
            A value of ``evaluation.query_signal``; None for the configured one. An item that
            cannot have it keeps the target signal, with a note.
        adapter_scale
            Factor on every ``lora_B`` (A stays), at least 0: 1 is the adapter, 0 the base model.
        checkpoint
            One of :attr:`checkpoints`; None for the final adapter.
        """

    @property
    def checkpoints(self) -> Sequence[Checkpoint]:
        """Saved adapters of the run by step, the final one last; never empty."""

    @property
    def loss_reduction(self) -> str:
        """``mean`` or ``sum`` over an example's supervised tokens (``grads.loss_reduction``)."""

    def fresh_model(self) -> LoadedModel:
        """Load base model and adapter once more: the engine may change what it gets."""

    def workdir(self, key: Mapping[str, object]) -> Path:
        """Return a folder for the engine's own cache.

        Parameters
        ----------
        key
            JSON values: what decides its content beside model, adapter, rows, queries, seed and
            library versions, which are part of its address.
        """

    @property
    def progress(self) -> Progress:
        """Where to report long work."""

    @property
    def seed(self) -> int:
        """Seed for anything random."""

    def note(self, sentence: str) -> None:
        """Tell the report what was skipped, degraded or guessed, as a sentence."""


@runtime_checkable
class TaskEngine(Protocol):
    """An engine that asks for what it needs: several points, other signals, texts, the model."""

    def score(self, task: AttributionTask) -> FloatArray:
        """Score every row against every query.

        Returns
        -------
        numpy.ndarray
            ``(q, n)`` finite scores in the task's order. See the module docstring for the sign.
            An engine without a query gives every query the same row.
        """

    def caveats(self, task: AttributionTask) -> Sequence[str]:
        """Sentences about how far this engine is to be trusted here; asked after :meth:`score`."""


# --- clusterers ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterTask:
    """Training examples to be grouped.

    Parameters
    ----------
    texts
        Text of each example (prompt and answer).
    declared
        The row's own ``cluster`` / ``cluster_id``, or None.
    embed
        Returns ``(n, k)`` embeddings; computed at the first call, then remembered.
    seed
        Seed for anything random.
    """

    texts: Sequence[str]
    declared: Sequence[str | None]
    embed: Callable[[], FloatArray]
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterAssignment:
    """Result of a clusterer.

    Parameters
    ----------
    labels
        ``(n,)`` integers; -1 marks examples that belong to no cluster.
    names
        Name of each label, for clusters that have one of their own.
    method
        What was really done (``auto`` resolves to another method).
    notes
        What was skipped or guessed, as sentences.
    """

    labels: IntArray
    names: Mapping[int, str] = field(default_factory=dict)
    method: str
    notes: tuple[str, ...] = ()


@runtime_checkable
class Clusterer(Protocol):
    """Groups training examples."""

    def cluster(self, task: ClusterTask) -> ClusterAssignment:
        """Assign each example to a cluster; deterministic for a given task."""


# --- metrics ---------------------------------------------------------------------------------


@runtime_checkable
class TextMetric(Protocol):
    """Judges a generated answer."""

    def score(self, prediction: str, reference: str) -> float:
        """Return a score in [0, 1], higher is better."""


@runtime_checkable
class LikelihoodMetric(Protocol):
    """Judges the probability of the reference answer; nothing is generated."""

    def score(self, token_logprobs: FloatArray) -> float:
        """Return a score (higher is better) from the ``(t,)`` log-probabilities in nats."""


# --- sinks, run readers, trainers --------------------------------------------------------------


@runtime_checkable
class Sink(Protocol):
    """Writes a report somewhere."""

    def write(self, report: Report, folder: Path) -> Sequence[Path]:
        """Write into ``folder`` only; return what was written. The same report, the same bytes."""


@runtime_checkable
class RunReader(Protocol):
    """Reads what a training tool left behind. It never executes anything it finds there."""

    def can_read(self, path: Path) -> bool:
        """Whether the path looks like a run of this tool; cheap."""

    def read(self, path: Path) -> RunArtifact:
        """Read it; raise :class:`~gradian_core.errors.InputError` for a damaged one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainJob:
    """A LoRA fine-tune to be run.

    Parameters
    ----------
    base_model
        Folder or hub id.
    rows
        Training rows in any supported shape, in training order.
    out
        Run folder to be written.
    settings
        The ``train`` section of the config.
    seed
        Seeds initialisation and order.
    order
        Places in ``rows``, one a visit, in the order of training: the run is one pass over it.
        None: every epoch in an order of its own, which the seed decides.
    device, dtype, trust_remote_code
        As the settings of these names.
    progress
        Called after a logged step with its number, the number of steps and the loss.
    """

    base_model: str
    rows: Sequence[Mapping[str, object]]
    out: Path
    settings: Mapping[str, object]
    seed: int
    order: Sequence[int] | None = None
    device: str = "auto"
    dtype: str = "auto"
    trust_remote_code: bool = False
    progress: Callable[[int, int, float], None] | None = None


@runtime_checkable
class Trainer(Protocol):
    """Fine-tunes a LoRA adapter."""

    def train(self, job: TrainJob) -> Path:
        """Train and write an ordinary run folder; return its path.

        The folder gets ``adapter/``, ``trainer_state.json`` and ``gradian_run.json``; the same
        job gives the same adapter on the same machine.
        """
