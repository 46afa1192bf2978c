"""Gradian finds which training examples, or which setting, made a LoRA fine-tune worse.

The public Python API. Names are imported when they are first used::

    import gradian_core as gradian

    config = gradian.load_config("gradian.yaml", {"engine.name": "graddot"})
    report = gradian.attribute(config, capability="arithmetic")
    print(report.headline)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from gradian_core.__about__ import __version__

if TYPE_CHECKING:
    from gradian_core.config.load import load_config
    from gradian_core.config.models import Config
    from gradian_core.flows.attribute import attribute
    from gradian_core.flows.diagnose import diagnose
    from gradian_core.flows.explain import explain_example
    from gradian_core.flows.index import build_index
    from gradian_core.flows.train import train
    from gradian_core.report.model import Report
    from gradian_core.retraining.callback import GradianCallback

__all__ = [
    "Config",
    "GradianCallback",
    "Report",
    "__version__",
    "attribute",
    "build_index",
    "diagnose",
    "explain_example",
    "load_config",
    "train",
]

_HOMES = {
    "Config": "gradian_core.config.models",
    "GradianCallback": "gradian_core.retraining.callback",
    "Report": "gradian_core.report.model",
    "attribute": "gradian_core.flows.attribute",
    "build_index": "gradian_core.flows.index",
    "diagnose": "gradian_core.flows.diagnose",
    "explain_example": "gradian_core.flows.explain",
    "load_config": "gradian_core.config.load",
    "train": "gradian_core.flows.train",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(_HOMES[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
