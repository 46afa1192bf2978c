"""Facts by name, each computed when a check first asks for it, and once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from gradian_core.check import FACTS
from gradian_core.errors import InputError
from gradian_core.progress import NoProgress, Progress
from gradian_core.runs.artifact import AdapterInfo, RunArtifact, TrainingConfig

if TYPE_CHECKING:
    from gradian_core.audit.facts import ExampleFacts, LogFacts, TokenFacts, TokenizerFacts
    from gradian_core.data.files import Dataset

__all__ = ["FactSource", "Facts", "GivenFacts", "Inputs", "Missing"]

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Missing:
    """Why there is no such fact.

    Parameters
    ----------
    why
        As a sentence.
    unlock
        Options that would bring it, all of them needed; empty where none would.
    """

    why: str
    unlock: tuple[str, ...] = ()


class FactSource(Protocol):
    """Where checks get their facts."""

    def get(self, name: str) -> Any | Missing:
        """Return a fact, or why it is not there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """What the user handed in.

    Parameters
    ----------
    dataset, eval_dataset
        Training and eval rows.
    run
        Run folder or file, read by ``read_run``.
    adapter
        Folder of an adapter, which wins over the run's own.
    base_model
        Name or folder of the base model; only its tokenizer is loaded.
    tokenizer
        Name or folder of another tokenizer.
    max_seq_length
        Sequence length of the training, which wins over the run's own.
    cache_dir
        Where tokens are kept; None keeps none.
    token_sample
        Rows to tokenise; None lets the size decide.
    """

    dataset: Path | None = None
    eval_dataset: Path | None = None
    run: Path | None = None
    adapter: Path | None = None
    base_model: str | None = None
    tokenizer: str | None = None
    max_seq_length: int | None = None
    cache_dir: Path | None = None
    token_sample: int | None = None


class GivenFacts:
    """Facts that are there already, by name; for tests and for the examples of checks."""

    def __init__(self, facts: dict[str, Any]) -> None:
        self._facts = facts

    def get(self, name: str) -> Any | Missing:
        """Return the fact, or that it was not given."""
        return self._facts.get(name, Missing(f"{name} was not given."))


class Facts:
    """Facts of one run of the audit.

    Parameters
    ----------
    inputs
        What the user handed in.
    read_run
        Reads a run folder.
    progress
        Where to report.

    Attributes
    ----------
    notes : list[str]
        What was read from where, and what was guessed, as sentences.
    """

    def __init__(
        self,
        inputs: Inputs,
        read_run: Callable[[Path], RunArtifact],
        progress: Progress | None = None,
    ) -> None:
        self.inputs = inputs
        self.notes: list[str] = []
        self._read_run = read_run
        self._progress = progress or NoProgress()

    def get(self, name: str) -> Any | Missing:
        """Return a fact of :data:`gradian_core.check.FACTS`, or why it is not there.

        Raises
        ------
        InputError
            If what was handed in cannot be read.
        """
        if name not in FACTS:
            raise KeyError(name)
        return getattr(self, name)

    # --- the run ---------------------------------------------------------------------------

    @cached_property
    def run(self) -> RunArtifact | Missing:
        """The training run."""
        if self.inputs.run is None:
            return Missing("The settings and logs of the training run were not given.", ("--run",))
        found = _without_path(self._read_run(self.inputs.run))
        tools = "" if found.training is None else f", {found.training.tool}"
        self.notes.append(f"Run {found.path.name}: read by {found.reader}{tools}.")
        self.notes += found.notes
        self.notes += found.refusals.values()
        return found

    @cached_property
    def training(self) -> TrainingConfig | Missing:
        """Settings of the training."""
        return self._of_run(lambda run: run.training, "training settings")

    @cached_property
    def adapter(self) -> AdapterInfo | Missing:
        """Configuration of the adapter."""
        if self.inputs.adapter is None:
            return self._of_run(lambda run: run.adapter, "adapter")
        found = _without_path(self._read_run(self.inputs.adapter))
        self.notes += found.notes
        if found.adapter is None:
            why = " ".join(found.refusals.values())
            raise InputError(f"--adapter: {self.inputs.adapter} is no adapter. {why}".strip())
        return found.adapter

    @cached_property
    def log(self) -> LogFacts | Missing:
        """The trainer's log."""
        log = self._of_run(lambda run: run.log, "training log")
        if isinstance(log, Missing):
            return log
        from gradian_core.audit.collect_log import collect_log

        return collect_log(log)

    def _of_run(self, part: Callable[[RunArtifact], Value | None], what: str) -> Value | Missing:
        if isinstance(self.run, Missing):
            return self.run
        found = part(self.run)
        if found is not None:
            return found
        why = [f"The run {self.run.path.name} holds no {what}.", *self.run.refusals.values()]
        return Missing(" ".join(why))

    # --- the rows --------------------------------------------------------------------------

    @cached_property
    def examples(self) -> ExampleFacts | Missing:
        """Rows of the training data."""
        opened = self._training_rows
        return opened if isinstance(opened, Missing) else opened[1]

    @cached_property
    def eval_examples(self) -> ExampleFacts | Missing:
        """Rows of the eval set."""
        opened = self._eval_rows
        return opened if isinstance(opened, Missing) else opened[1]

    @property
    def dataset(self) -> Dataset | None:
        """The training data."""
        opened = self._training_rows
        return None if isinstance(opened, Missing) else opened[0]

    @property
    def eval_dataset(self) -> Dataset | None:
        """The eval set."""
        opened = self._eval_rows
        return None if isinstance(opened, Missing) else opened[0]

    @cached_property
    def _training_rows(self) -> tuple[Dataset, ExampleFacts] | Missing:
        if self.inputs.dataset is None:
            return Missing("The training data was not given.", ("--dataset",))
        return self._open(self.inputs.dataset, "Reading the training data")

    @cached_property
    def _eval_rows(self) -> tuple[Dataset, ExampleFacts] | Missing:
        if self.inputs.eval_dataset is None:
            return Missing("The eval set was not given.", ("--eval-dataset",))
        return self._open(self.inputs.eval_dataset, "Reading the eval set")

    def _open(self, path: Path, doing: str) -> tuple[Dataset, ExampleFacts]:
        from gradian_core.audit.collect_examples import open_examples

        with self._progress.task(doing) as task:
            dataset, facts = open_examples(path, advance=task.advance)
        self.notes += dataset.notes
        return dataset, facts

    # --- tokens ----------------------------------------------------------------------------

    @cached_property
    def tokenizer(self) -> TokenizerFacts | Missing:
        """The tokenizer of the training: named by the user, or saved beside the run."""
        named = self.inputs.tokenizer or self.inputs.base_model
        if named is None:
            return self._saved_tokenizer()
        try:
            return self._load_tokenizer(named)
        except InputError as error:
            # A hub id in a config must not stop an audit that has no network.
            if self.inputs.tokenizer or Path(named).expanduser().exists():
                raise
            return Missing(error.message, ("--tokenizer",))

    def _load_tokenizer(self, name: str) -> TokenizerFacts:
        from gradian_core.audit.collect_tokenizer import collect_tokenizer

        with self._task("Loading the tokenizer"):
            found = collect_tokenizer(name)
        return replace(found, base_model=self.inputs.base_model)

    def _saved_tokenizer(self) -> TokenizerFacts | Missing:
        from gradian_core.audit.collect_tokenizer import has_tokenizer

        places = [] if isinstance(self.adapter, Missing) else [self.adapter.path]
        if self.inputs.run is not None:
            places.append(self.inputs.run)
        for place in places:
            if not has_tokenizer(place):
                continue
            try:
                found = self._load_tokenizer(str(place))
            except InputError as error:
                # Nobody asked for this one; it must not stop the audit.
                self.notes.append(error.message.replace(str(place), place.name))
            else:
                self.notes.append(f"The tokenizer is the one saved in {place.name}.")
                return found
        return Missing("No tokenizer was given.", ("--base-model",))

    @cached_property
    def tokens(self) -> TokenFacts | Missing:
        """The training data as tokens."""
        return self._tokens(self._training_rows, "Tokenising the training data")

    @cached_property
    def eval_tokens(self) -> TokenFacts | Missing:
        """The eval set as tokens."""
        return self._tokens(self._eval_rows, "Tokenising the eval set")

    def _tokens(
        self, opened: tuple[Dataset, ExampleFacts] | Missing, doing: str
    ) -> TokenFacts | Missing:
        absent = [part for part in (opened, self.tokenizer) if isinstance(part, Missing)]
        if absent:
            return Missing(
                " ".join(part.why for part in absent),
                tuple(flag for part in absent for flag in part.unlock),
            )
        assert not isinstance(opened, Missing)
        assert not isinstance(self.tokenizer, Missing)
        from gradian_core.audit.collect_tokens import collect_tokens

        with self._task(doing):
            facts = collect_tokens(
                opened[0],
                self.tokenizer,
                None if isinstance(self.training, Missing) else self.training,
                self.inputs.max_seq_length,
                cache_dir=self.inputs.cache_dir,
                sample=self.inputs.token_sample,
            )
        if facts.max_seq_length is not None:
            limit = f"{facts.max_seq_length:,} tokens ({facts.limit_source})"
            self.notes.append(f"Rows were cut at {limit}, as in training.")
        self.notes += facts.notes
        return facts

    @contextmanager
    def _task(self, doing: str) -> Iterator[None]:
        with self._progress.task(doing, 1) as task:
            yield
            task.advance()


def _without_path(run: RunArtifact) -> RunArtifact:
    """Name the run by its last part: reports do not depend on where it lies."""
    full, name = str(run.path), run.path.name
    return replace(
        run,
        notes=tuple(note.replace(full, name) for note in run.notes),
        refusals={key: why.replace(full, name) for key, why in run.refusals.items()},
    )
