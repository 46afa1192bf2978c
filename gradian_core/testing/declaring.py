"""Promises about declaring: light, quiet, and true."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

from gradian_core.hookspecs import GROUP
from gradian_core.plugins.record import Kind, PluginRecord, Provided
from gradian_core.plugins.registry import Registry
from gradian_core.specs import Spec
from gradian_core.testing.promise import Promise, require

__all__ = ["HEAVY", "declaring_promises", "thing_promises"]

HEAVY = (
    "datasets", "h5py", "jax", "kronfluence", "matplotlib", "numpy", "pandas", "peft", "polars",
    "pyarrow", "pydantic", "scipy", "sentence_transformers", "sklearn", "spacy", "tensorflow",
    "torch", "transformers", "trl", "unsloth", "yaml",
)  # fmt: skip
"""Packages that a declaring module may not import, directly or not."""

_PROGRAM = """
import sys
from importlib.metadata import EntryPoint
from gradian_core.hookspecs import HOOKS
plugin = EntryPoint(*sys.argv[1:4]).load()
for hook in HOOKS:
    list(getattr(plugin, hook, tuple)())
names = {name.partition(".")[0] for name in sys.modules}
print("imported:", *sorted(names & set(sys.argv[4:])), file=sys.stderr)
"""


def declaring_promises(record: PluginRecord) -> Iterator[Promise]:
    """Yield what the declaring module of a plugin promises."""
    yield Promise(
        id=f"plugin:{record.name}:light",
        says="declaring imports nothing heavy and prints nothing",
        test=lambda: _is_light(record),
    )


def thing_promises(registry: Registry, kind: Kind, provided: Provided[Spec]) -> Iterator[Promise]:
    """Yield what every thing that a plugin provides promises, whatever its kind."""
    spec = provided.spec
    name = f"{kind}:{spec.name}"
    yield Promise(
        id=f"{name}:resolves",
        says="its import strings lead to what the contract wants, with default options",
        test=lambda: _resolves(registry, kind, spec.name),
    )
    yield Promise(
        id=f"{name}:summary",
        says="its summary is one line that fits a listing",
        test=lambda: require(
            spec.summary.strip() == spec.summary
            and spec.summary.isprintable()
            and len(spec.summary) <= 100,
            f"The summary {spec.summary!r} must be one trimmed line of at most 100 characters.",
        ),
    )


def _is_light(record: PluginRecord) -> None:
    # A process of its own: this one has imported everything already.
    done = subprocess.run(  # noqa: S603 - this very interpreter
        [sys.executable, "-c", _PROGRAM, record.name, record.module, GROUP, *HEAVY],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    require(done.returncode == 0, f"A fresh Python cannot load it: {done.stderr[-500:]}")
    require(not done.stdout, f"It prints while it is imported: {done.stdout[:200]!r}.")
    heavy = done.stderr.rpartition("imported:")[2].split()
    require(
        not heavy,
        f"Declaring imports {', '.join(heavy)}. Move the import into the module that the factory "
        "names, or into a function.",
    )


def _resolves(registry: Registry, kind: Kind, name: str) -> None:
    model = None if kind == "check" else registry.config_model(kind, name)
    if model is not None:
        missing = [key for key, field in model.model_fields.items() if field.is_required()]
        require(not missing, f"Its options have no default: {', '.join(missing)}.")
    registry.create(kind, name)
