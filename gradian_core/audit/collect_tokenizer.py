"""A tokenizer to facts; neither torch nor weights are needed."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gradian_core.audit.facts import TokenizerFacts
from gradian_core.data.template import chat_template
from gradian_core.errors import InputError
from gradian_core.plugins.failure import describe
from gradian_core.text import excerpt

__all__ = ["collect_tokenizer", "has_tokenizer", "tokenizer_facts"]

_SANE_LIMIT = 10_000_000
"""A larger ``model_max_length`` is transformers' way to say that there is none."""
_FILES = ("tokenizer.json", "tokenizer.model", "vocab.json")
_GENERATION = "generation_config.json"


def has_tokenizer(folder: Path) -> bool:
    """Whether a folder holds a tokenizer's files."""
    return (folder / "tokenizer_config.json").is_file() and any(
        (folder / name).is_file() for name in _FILES
    )


def collect_tokenizer(name_or_path: str) -> TokenizerFacts:
    """Load a tokenizer from a folder, the local hub cache or the hub.

    Its code is never executed (``trust_remote_code`` is off).

    Raises
    ------
    InputError
        If there is no tokenizer, or it cannot be read.
    """
    from transformers import AutoTokenizer

    from gradian_core.model.quiet import quiet

    path = Path(name_or_path).expanduser()
    place = str(path) if path.exists() else name_or_path
    extra = {}
    if path.suffix == ".gguf" and path.is_file():
        place, extra = str(path.parent), {"gguf_file": path.name}
    elif not path.exists() and (name_or_path.startswith((".", "/", "~")) or place.count("/") > 1):
        raise InputError(f"There is no file or folder {path} with a tokenizer.")
    try:
        with quiet():
            tokenizer = AutoTokenizer.from_pretrained(place, trust_remote_code=False, **extra)
    except Exception as error:  # foreign code, which raises anything for a damaged file
        raise InputError(
            f"The tokenizer of {name_or_path} cannot be loaded: {excerpt(describe(error), 300)}.",
            hint="Give a folder or a hub id that has one with --tokenizer.",
        ) from error
    return tokenizer_facts(tokenizer, name_or_path, generation_eos=_generation_eos(place))


def tokenizer_facts(
    tokenizer: Any, name: str, *, generation_eos: Iterable[int] = ()
) -> TokenizerFacts:
    """Return what there is to know of a transformers tokenizer.

    Parameters
    ----------
    tokenizer
        The tokenizer.
    name
        What the user calls it.
    generation_eos
        Ids in ``eos_token_id`` of the model's ``generation_config.json``.
    """
    eos = _token(tokenizer, "eos")
    end_of_turn = _end_of_turn(tokenizer)
    generation = frozenset(generation_eos)
    ends = generation.union(token[1] for token in (eos, end_of_turn) if token is not None)
    limit = tokenizer.model_max_length
    template = tokenizer.chat_template
    return TokenizerFacts(
        name=name,
        tokenizer=tokenizer,
        chat_template=template.get("default") if isinstance(template, dict) else template,
        bos=_token(tokenizer, "bos"),
        eos=eos,
        pad=_token(tokenizer, "pad"),
        end_tokens=ends,
        model_max_length=int(limit) if limit and limit < _SANE_LIMIT else None,
        vocab_size=len(tokenizer),
        end_of_turn=end_of_turn,
        generation_eos=generation,
    )


def _token(tokenizer: Any, name: str) -> tuple[str, int] | None:
    text, number = (getattr(tokenizer, f"{name}_token{end}") for end in ("", "_id"))
    return None if text is None or number is None else (str(text), int(number))


def _end_of_turn(tokenizer: Any) -> tuple[str, int] | None:
    template = chat_template(tokenizer)
    if template is None:
        return None
    closing = template.closing.strip()
    # The longest first: one added token may be the start of another.
    for token in sorted(template.added_tokens, key=len, reverse=True):
        if closing.startswith(token):
            return token, int(tokenizer.convert_tokens_to_ids(token))
    return None


def _generation_eos(place: str) -> tuple[int, ...]:
    from transformers.utils import cached_file

    try:
        found = cached_file(
            place,
            _GENERATION,
            _raise_exceptions_for_gated_repo=False,
            _raise_exceptions_for_missing_entries=False,
            _raise_exceptions_for_connection_errors=False,
        )
        body = json.loads(Path(found).read_text(encoding="utf-8")) if found else {}
    except (OSError, ValueError, RecursionError):
        return ()
    value = body.get("eos_token_id") if isinstance(body, dict) else None
    values = value if isinstance(value, list) else [value]
    return tuple(v for v in values if isinstance(v, int) and not isinstance(v, bool))
