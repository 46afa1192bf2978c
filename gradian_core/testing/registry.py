"""A registry that sees the plugins it is given and none that is installed."""

from __future__ import annotations

from importlib.metadata import EntryPoint

from gradian_core.hookspecs import GROUP
from gradian_core.plugins.discovery import Candidate
from gradian_core.plugins.loading import load_records, settle
from gradian_core.plugins.registry import Registry

__all__ = ["isolated_registry"]


def isolated_registry(**modules: str) -> Registry:
    """Load plugins by module, without metadata.

    Parameters
    ----------
    **modules
        Entry point name -> what it points to, such as ``house="house_checks"``.
    """
    candidates = [
        Candidate(
            name=name,
            group=GROUP,
            module=module,
            distribution="isolated",
            version="0",
            entry_point=EntryPoint(name, module, GROUP),
        )
        for name, module in modules.items()
    ]
    plugins, claims = settle(load_records(candidates, frozenset()))
    return Registry(plugins=plugins, claims=claims)
