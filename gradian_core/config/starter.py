"""The file that ``gradian init-config`` writes, made from the models themselves."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

import yaml

from gradian_core.config.models import Config, Section
from gradian_core.text import safe_text

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

__all__ = ["starter_text"]

_WIDTH = 96
_HEAD = (
    "Settings of Gradian, all at their defaults: delete what you do not change.",
    (
        "Unknown keys are refused. Relative paths are looked up beside this file, then in the "
        "working directory. Flags of the command line override this file."
    ),
)


def starter_text(base_model: str = "", own: Mapping[str, Sequence[str]] | None = None) -> str:
    """Return a config file with every field, its default and what it means.

    Loading it gives the default :class:`~gradian_core.config.models.Config`.

    Parameters
    ----------
    base_model
        Value for the field of that name.
    own
        Further lines for ``options``, by section; they are commented out.
    """
    lines = [line for paragraph in _HEAD for line in _comment(paragraph, "")]
    config = Config(base_model=base_model)
    return "\n".join([*lines, "", *_section(config, "", own or {})]) + "\n"


def _section(
    section: Section, indent: str, own: Mapping[str, Sequence[str]], path: str = ""
) -> Iterator[str]:
    for name, field in type(section).model_fields.items():
        value = getattr(section, name)
        if isinstance(value, Section):
            yield ""
            yield from _comment(type(value).__doc__ or "", indent)
            yield f"{indent}{name}:"
            yield from _section(value, indent + "  ", own, name)
        else:
            yield from _comment(_meaning(field), indent)
            yield f"{indent}{name}: {_scalar(value)}"
            if name == "options":
                yield from (f"{indent}#   {safe_text(line)}" for line in own.get(path, ()))


def _meaning(field: FieldInfo) -> str:
    text = " ".join((field.description or "").replace("``", "").split())
    choices = _choices(field.annotation)
    return f"{text} One of: {', '.join(choices)}." if len(choices) > 1 else text


def _choices(annotation: Any) -> list[str]:
    if get_origin(annotation) is Literal:
        return [str(choice) for choice in get_args(annotation)]
    return [choice for argument in get_args(annotation) for choice in _choices(argument)]


def _comment(text: str, indent: str) -> list[str]:
    prefix = f"{indent}# "
    first = " ".join(text.replace("``", "").split())
    return textwrap.wrap(
        first, _WIDTH, initial_indent=prefix, subsequent_indent=prefix, break_on_hyphens=False
    )


def _scalar(value: object) -> str:
    if isinstance(value, str):
        # What reads back as anything but this text under any reader's rules gets quotes.
        plain = re.fullmatch(r"[A-Za-z][A-Za-z0-9_./-]*", value) and yaml.safe_load(value) == value
        return value if plain else json.dumps(value, ensure_ascii=False)
    listed = list(value) if isinstance(value, tuple) else value
    text = yaml.safe_dump(listed, default_flow_style=True)
    # A document that is one scalar is closed by a line of dots.
    return text.removesuffix("...\n").strip()
