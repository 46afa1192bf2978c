"""What the stages of one run share, each loaded when it is first needed, and once.

A second question about the same run finds its gradients, tokens and answers in the caches; then
no weight of the model is loaded at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from gradian_core.config.models import Config
from gradian_core.data.files import Dataset, load_dataset
from gradian_core.errors import CannotRunError, UsageError
from gradian_core.gradients.types import Capture
from gradian_core.index.address import library_versions
from gradian_core.index.digests import ADAPTER_FILES, DigestCache, folder_digest
from gradian_core.index.manifest import GradientSpec, IndexInputs
from gradian_core.model.loaded import LoadedModel
from gradian_core.model.source import BaseSource
from gradian_core.plugins.registry import Registry, load_registry
from gradian_core.progress import Progress, Task
from gradian_core.runs.artifact import AdapterInfo, RunArtifact

__all__ = ["Session", "counted"]


class Session:
    """One run of a command.

    Parameters
    ----------
    config
        The configuration.
    progress
        Where to report.
    """

    def __init__(self, config: Config, progress: Progress) -> None:
        self.config = config
        self.progress = progress
        self.cache = Path(config.cache_dir)

    @cached_property
    def registry(self) -> Registry:
        """The installed plugins."""
        return load_registry(self.config.plugins.block)

    @property
    def adapter(self) -> Path:
        """Folder of the adapter."""
        return self.adapter_info.path

    @property
    def saved_modules(self) -> tuple[str, ...]:
        """What the adapter trained beside its LoRA matrices."""
        raw = self.adapter_info.raw
        names = raw.get("modules_to_save") or []
        tokens = ["token embeddings"] if raw.get("trainable_token_indices") else []
        biases = [] if raw.get("bias") in (None, "none") else [f"biases ({raw['bias']})"]
        return tuple(str(name) for name in [*names, *tokens, *biases])

    @cached_property
    def adapter_info(self) -> AdapterInfo:
        """Configuration of the adapter, checked."""
        from gradian_core.model.adapter import find_adapter, read_adapter

        if not self.config.adapter_path:
            raise UsageError(
                "Attribution needs an adapter: its LoRA parameters are what is differentiated.",
                hint="Pass --adapter, the folder of the LoRA adapter that you trained.",
            )
        return read_adapter(find_adapter(self.config.adapter_path))

    @cached_property
    def source(self) -> BaseSource:
        """The base model on disk."""
        from gradian_core.model.source import resolve_base

        return resolve_base(self.config.base_model)

    @cached_property
    def dataset(self) -> Dataset:
        """The training data."""
        if not self.config.dataset:
            raise UsageError("No training data was given.", hint="Pass --dataset, or set dataset.")
        return load_dataset(self.config.dataset)

    @cached_property
    def eval_dataset(self) -> Dataset | None:
        """The eval items, None if there are none."""
        return load_dataset(self.config.eval_dataset) if self.config.eval_dataset else None

    @cached_property
    def tokenizer(self) -> Any:
        """The tokenizer; the model's weights are not needed for it."""
        from gradian_core.model.load import load_tokenizer

        return load_tokenizer(self.config, self.source)

    @property
    def model(self) -> LoadedModel:
        """Base model with adapter."""
        return self._loaded[0]

    @property
    def capture(self) -> Capture:
        """What takes the model's gradients."""
        return self._loaded[1]

    @cached_property
    def _loaded(self) -> tuple[LoadedModel, Capture]:
        from gradian_core.gradients.capture import make_capture
        from gradian_core.model.load import load_model

        self._refuse_locked_cache()
        with self.progress.task("Loading the model", 1) as task:
            loaded = load_model(self.config)
            # what cannot be captured is refused now, not after the capability was measured
            capture = make_capture(loaded, self.config.grads)
            task.advance()
        return loaded, capture

    def _refuse_locked_cache(self) -> None:
        """Find out before the model's work, not after it, that its results cannot be kept."""
        try:
            self.cache.mkdir(parents=True, exist_ok=True)
            with TemporaryFile(dir=self.cache):
                pass
        except OSError as error:
            raise CannotRunError(
                f"The cache {self.cache} cannot be written: {error.strerror or error}.",
                hint="Name another folder with --cache-dir, or cache_dir in the config.",
            ) from error

    @cached_property
    def run(self) -> RunArtifact | None:
        """The training run, from all readers that know it; None without ``run_dir``.

        Raises
        ------
        InputError
            If no reader knows it.
        """
        from gradian_core.runs.resolve import read_run

        if not self.config.run_dir:
            return None
        return read_run(Path(self.config.run_dir).expanduser(), self.registry)

    def inputs(
        self, *, dataset: str, adapter_scale: float = 1.0, adapter: Path | None = None
    ) -> IndexInputs:
        """Return everything that decides the numbers of an index over the given rows.

        Parameters
        ----------
        dataset
            Digest of the rows and their order.
        adapter_scale
            Factor on every ``lora_B``.
        adapter
            Another adapter of the same run; None for the one that is attributed.
        """
        from gradian_core.data.cache import tokenizer_fingerprint
        from gradian_core.model.device import resolve_device, resolve_dtype

        config, grads = self.config, self.config.grads
        device = resolve_device(config.device)
        dtype = resolve_dtype(config.dtype, device)
        return IndexInputs(
            adapter=self._adapter_digest if adapter is None else self.adapter_digest(adapter),
            adapter_scale=adapter_scale,
            base=self._base_digest,
            dataset=dataset,
            tokenizer=tokenizer_fingerprint(self.tokenizer),
            spec=GradientSpec(
                strategy=grads.strategy,
                max_seq_length=grads.max_seq_length,
                module_filter=grads.module_filter,
                block_granularity=grads.block_granularity,
                projection_dim=grads.projection_dim,
                projection_kind=grads.projection_kind,
                projection_seed=grads.projection_seed,
                storage_dtype=grads.storage_dtype,
            ),
            seed=config.seed,
            dtype="checkpoint" if dtype is None else str(dtype).removeprefix("torch."),
            device=device.type,
            attn_implementation=config.attn_implementation,
            libraries=library_versions(),
        )

    @cached_property
    def _adapter_digest(self) -> str:
        return self.adapter_digest(self.adapter)

    def adapter_digest(self, adapter: Path) -> str:
        """Return the content digest of an adapter's folder.

        Raises
        ------
        InputError
            If it cannot be read.
        """
        return folder_digest(adapter, ADAPTER_FILES, DigestCache(self.cache))

    @cached_property
    def _base_digest(self) -> str:
        names = tuple(path.name for path in self.source.files)
        with self.progress.task("Hashing the base model", 1) as task:
            digest = folder_digest(self.source.folder, names, DigestCache(self.cache))
            task.advance()
        return digest


@contextmanager
def counted(progress: Progress, description: str) -> Iterator[Callable[[int, int], None]]:
    """Give a ``(done, total)`` callback that shows as a task.

    Nothing shows before it is called, and the task ends when all is done: of several callbacks
    in use one after the other, the first then ends before the second starts.
    """
    with ExitStack() as stack:
        task: Task | None = None
        seen = 0

        def report(done: int, total: int) -> None:
            nonlocal task, seen
            if task is None:
                task = stack.enter_context(progress.task(description, total))
            task.advance(done - seen)
            seen = done
            if done >= total:
                stack.close()

        yield report
