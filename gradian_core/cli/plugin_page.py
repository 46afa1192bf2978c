"""One plugin as text: what it provides, with documentation, options and needs."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from gradian_core.cli.table import aligned
from gradian_core.errors import GradianError, UsageError
from gradian_core.plugins.record import Kind, PluginRecord, Provided, label, missing
from gradian_core.plugins.resolve import load_model, load_object
from gradian_core.specs import CheckSpec, Spec
from gradian_core.testing.kit import find_plugins
from gradian_core.text import safe_text

if TYPE_CHECKING:
    from gradian_core.plugins.registry import Registry

__all__ = ["page"]


def page(registry: Registry, name: str) -> str:
    """Return the page of a plugin, or of one thing that some plugin provides.

    What cannot be loaded is said in its place.

    Raises
    ------
    UsageError
        If neither a plugin nor anything provided has that name.
    """
    try:
        records = find_plugins(registry, name)
    except UsageError:
        things = [
            (kind, spec, record)
            for record in registry.plugins
            for kind, spec in record.provides
            if spec.name == name
        ]
        if not things:
            raise
        parts = [
            part
            for kind, spec, record in things
            for part in (*_thing(kind, spec, record), f"  plugin {record.owner}", "")
        ]
    else:
        parts = [line for record in records for line in _plugin(record)]
    return "\n".join(safe_text(part, multiline=True) for part in parts).rstrip()


def _plugin(record: PluginRecord) -> Iterator[str]:
    yield f"{record.name}: {record.state}{f' ({record.reason})' if record.reason else ''}"
    yield ""
    yield from aligned(
        [
            ("distribution", f"{record.distribution} {record.version}"),
            ("entry point", f"{record.name} = {record.module}"),
            ("provides", ", ".join(spec.name for _, spec in record.provides) or "nothing"),
        ]
    )
    yield ""
    for kind, spec in record.provides:
        yield from _thing(kind, spec, record)
        yield ""


def _thing(kind: Kind, spec: Spec, record: PluginRecord) -> Iterator[str]:
    yield f"{label(kind, spec.name)}: {spec.summary}"
    yield ""
    needs = [*spec.requires]
    if isinstance(spec, CheckSpec):
        needs += [f"fact {fact}" for fact in spec.needs]
    facts = [("needs", ", ".join(needs) or "nothing"), ("since", spec.since)]
    yield from (f"  {line}" for line in aligned([*facts, ("made by", spec.factory)]))
    yield ""
    if absent := missing(kind, spec):
        yield f"  {absent}"
        return
    provided: Provided[Any] = Provided(spec, record)
    try:
        text = _documentation(kind, provided)
        options = _options(kind, provided)
    except GradianError as error:
        yield f"  {error}"
        return
    yield from (f"  {line}".rstrip() for line in text.splitlines())
    if options:
        yield ""
        yield "  options:"
        yield from (f"    {line}" for line in options)


def _documentation(kind: Kind, provided: Provided[Any]) -> str:
    found = load_object(provided.spec.factory, provided.owner, label(kind, provided.spec.name))
    if kind == "check":
        return str(getattr(found, "page", ""))
    # By __doc__: inspect.getdoc would give an undocumented class the words of its base.
    texts = (inspect.getmodule(found).__doc__, found.__doc__)
    return "\n\n".join(inspect.cleandoc(text) for text in texts if text)


def _options(kind: Kind, provided: Provided[Any]) -> list[str]:
    from gradian_core.plugins.schema import option_rows

    model = load_model(kind, provided)
    return [] if model is None else aligned(option_rows(model))
