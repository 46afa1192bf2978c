"""All plugins on this machine, and the way from a name to the thing it names.

``load_registry()`` imports the light modules of plugins, never what they declare; ``create``
imports one implementation when it is used.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, overload

from gradian_core import protocols
from gradian_core.check import Check
from gradian_core.errors import PluginError, UsageError
from gradian_core.plugins.discovery import discover
from gradian_core.plugins.failure import guard
from gradian_core.plugins.loading import Claims, load_records, settle, unmatched
from gradian_core.plugins.record import Kind, PluginRecord, Provided, State, label, missing
from gradian_core.plugins.resolve import load_model, load_object, validated_options
from gradian_core.specs import (
    CheckSpec,
    ClustererSpec,
    EngineSpec,
    MetricSpec,
    RunReaderSpec,
    SinkSpec,
    TrainerSpec,
)
from gradian_core.text import did_you_mean, excerpt

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = ["Registry", "load_registry"]

_CONTRACT: Mapping[Kind, tuple[type, ...]] = {
    "check": (Check,),
    "clusterer": (protocols.Clusterer,),
    "engine": (protocols.BlockEngine, protocols.TaskEngine),
    "metric": (protocols.TextMetric, protocols.LikelihoodMetric),
    "run_reader": (protocols.RunReader,),
    "sink": (protocols.Sink,),
    "trainer": (protocols.Trainer,),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Registry:
    """Everything that plugins provide here.

    Parameters
    ----------
    plugins
        All installed plugins with their states: built-in ones first, then by distribution.
    notes
        What was asked for and had no effect, as sentences.
    claims
        Who provides each name; more than one provider where nobody may have it.
    """

    plugins: tuple[PluginRecord, ...]
    notes: tuple[str, ...] = ()
    claims: Claims = field(default_factory=dict, repr=False)

    @property
    def checks(self) -> Mapping[str, Provided[CheckSpec]]:
        """Audit checks by name."""
        return self._all("check")

    @property
    def clusterers(self) -> Mapping[str, Provided[ClustererSpec]]:
        """Clusterers by name."""
        return self._all("clusterer")

    @property
    def engines(self) -> Mapping[str, Provided[EngineSpec]]:
        """Attribution engines by name."""
        return self._all("engine")

    @property
    def metrics(self) -> Mapping[str, Provided[MetricSpec]]:
        """Capability metrics by name."""
        return self._all("metric")

    @property
    def run_readers(self) -> Mapping[str, Provided[RunReaderSpec]]:
        """Readers of run folders by name."""
        return self._all("run_reader")

    @property
    def sinks(self) -> Mapping[str, Provided[SinkSpec]]:
        """Report sinks by name."""
        return self._all("sink")

    @property
    def trainers(self) -> Mapping[str, Provided[TrainerSpec]]:
        """Trainers by name."""
        return self._all("trainer")

    def find(self, kind: Kind, name: str) -> Provided[Any]:
        """Return what a name stands for, whether or not its packages are installed.

        Raises
        ------
        UsageError
            If nothing of that name is installed, or its plugin is out of use.
        PluginError
            If several plugins provide it.
        """
        claimants = self.claims.get((kind, name), ())
        if len(claimants) == 1:
            return claimants[0]
        if claimants:
            owners = "; ".join(provided.owner for provided in claimants)
            raise PluginError(
                f"The {label(kind, name)} is provided by several plugins: {owners}.",
                hint="Block all but one with GRADIAN_BLOCK or 'plugins.block' in the config.",
            )
        installed = self._all(kind)
        kinds = kind.replace("_", " ")
        hints = [did_you_mean(name, installed), f"Installed: {', '.join(installed) or 'none'}."]
        if any(record.state is not State.OK for record in self.plugins):
            hints.append("Some plugins are not in use: see 'gradian plugins list'.")
        raise UsageError(
            f"There is no {kinds} {excerpt(repr(name), 80)}.", hint=" ".join(filter(None, hints))
        )

    def config_model(self, kind: Kind, name: str) -> type[BaseModel] | None:
        """Import and return the model of a plugin's options, None if it takes none.

        Raises
        ------
        UsageError, MissingExtraError, PluginError
            As :meth:`create`.
        """
        return load_model(kind, self._usable(kind, name))

    @overload
    def create(self, kind: Literal["check"], name: str) -> Check: ...
    @overload
    def create(
        self, kind: Literal["clusterer"], name: str, options: Mapping[str, Any] = ...
    ) -> protocols.Clusterer: ...
    @overload
    def create(
        self, kind: Literal["engine"], name: str, options: Mapping[str, Any] = ...
    ) -> protocols.BlockEngine | protocols.TaskEngine: ...
    @overload
    def create(
        self, kind: Literal["metric"], name: str, options: Mapping[str, Any] = ...
    ) -> protocols.TextMetric | protocols.LikelihoodMetric: ...
    @overload
    def create(
        self, kind: Literal["run_reader"], name: str, options: Mapping[str, Any] = ...
    ) -> protocols.RunReader: ...
    @overload
    def create(
        self, kind: Literal["sink"], name: str, options: Mapping[str, Any] = ...
    ) -> protocols.Sink: ...
    @overload
    def create(
        self, kind: Literal["trainer"], name: str, options: Mapping[str, Any] = ...
    ) -> protocols.Trainer: ...

    def create(self, kind: Kind, name: str, options: Mapping[str, Any] | None = None) -> Any:
        """Import an implementation and make one, with its options checked by its own model.

        A check is returned as it is: it is a function.

        Parameters
        ----------
        kind, name
            What is wanted.
        options
            Values for the plugin's own model; unknown keys are refused.

        Raises
        ------
        UsageError
            If the name is unknown or an option does not fit.
        MissingExtraError
            If packages that it needs are not installed.
        PluginError
            If the plugin fails or what it made does not keep the contract.
        """
        provided = self._usable(kind, name)
        what = label(kind, name)
        settings = validated_options(kind, provided, options or {})
        made = load_object(provided.spec.factory, provided.owner, what)
        if kind != "check":
            with guard(provided.owner, f"Creating {what}"):
                made = made() if settings is None else made(settings)
        contract = _CONTRACT[kind]
        if not isinstance(made, contract):
            wanted = " or ".join(protocol.__name__ for protocol in contract)
            raise PluginError(
                f"The {what} does not implement {wanted} of gradian_core.", owner=provided.owner
            )
        return made

    def _usable(self, kind: Kind, name: str) -> Provided[Any]:
        provided = self.find(kind, name)
        if absent := missing(kind, provided.spec):
            raise absent
        return provided

    def _all(self, kind: Kind) -> dict[str, Provided[Any]]:
        return {
            name: claimants[0]
            for (this, name), claimants in sorted(self.claims.items())
            if this == kind and len(claimants) == 1
        }


_BROKEN = frozenset({State.FAILED, State.INCOMPATIBLE, State.CLASH})


def load_registry(block: Iterable[str] = (), *, strict: bool = False) -> Registry:
    """Find and load all plugins.

    Parameters
    ----------
    block
        Names of plugins or distributions that are not to be loaded, beside those in the
        environment variable ``GRADIAN_BLOCK`` (separated by commas).
    strict
        Refuse to go on when a plugin failed, is incompatible or clashes with another one; the
        environment variable ``GRADIAN_STRICT=1`` does the same. With ``--debug`` the plugin's
        own traceback comes out, which is what its author wants to see.

    Raises
    ------
    PluginError
        Only if ``strict``.
    """
    named = [*block, *os.environ.get("GRADIAN_BLOCK", "").split(",")]
    blocked = frozenset(name.strip() for name in named) - {""}
    candidates = discover()
    plugins, claims = settle(load_records(candidates, blocked))
    if strict or os.environ.get("GRADIAN_STRICT", "0") not in {"", "0"}:
        for record in plugins:
            if record.state in _BROKEN:
                raise PluginError(
                    f"Plugin {record.state}: {record.reason}", owner=record.owner
                ) from record.error
    notes = tuple(
        f"{excerpt(name, 80)} is blocked, but no such plugin or distribution is installed."
        for name in unmatched(candidates, blocked)
    )
    return Registry(plugins=plugins, notes=notes, claims=claims)
