"""From a spec to the thing itself: import strings and validated options."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gradian_core.errors import PluginError, UsageError
from gradian_core.plugins.failure import guard
from gradian_core.plugins.record import Kind, Provided, label

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = ["load_model", "load_object", "validated_options"]


def load_object(import_string: str, owner: str, what: str) -> Any:
    """Import ``"package.module:Name"`` of a plugin.

    Raises
    ------
    PluginError
        If the module cannot be imported or has no such name.
    """
    module, _, name = import_string.partition(":")
    with guard(owner, f"Loading {what} ({import_string})"):
        return functools.reduce(getattr, name.split("."), importlib.import_module(module))


def load_model(kind: Kind, provided: Provided[Any]) -> type[BaseModel] | None:
    """Import the pydantic model of a plugin's options, None if it takes none.

    Raises
    ------
    PluginError
        If it cannot be imported or is no pydantic model.
    """
    if provided.spec.config is None:
        return None
    from pydantic import BaseModel

    what = f"the options of {label(kind, provided.spec.name)}"
    model = load_object(provided.spec.config, provided.owner, what)
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        raise PluginError(f"{provided.spec.config} is no pydantic model.", owner=provided.owner)
    return model


def validated_options(
    kind: Kind, provided: Provided[Any], options: Mapping[str, Any]
) -> BaseModel | None:
    """Return a plugin's options as its own model, None if it takes none.

    Raises
    ------
    UsageError
        If an option is unknown or its value does not fit.
    PluginError
        If the model itself fails.
    """
    from gradian_core.config.problems import InvalidValues, validate

    model = load_model(kind, provided)
    what = label(kind, provided.spec.name)
    if model is None:
        if options:
            raise UsageError(f"The {what} takes no options, but got: {', '.join(sorted(options))}.")
        return None
    with guard(provided.owner, f"Checking the options of {what}"):
        try:
            return validate(model, options)
        except InvalidValues as error:
            raise UsageError(
                "\n".join(f"Options of {what}: {problem}." for problem in error.problems),
                hint=f"Its options are: {', '.join(sorted(model.model_fields)) or 'none'}.",
            ) from error
