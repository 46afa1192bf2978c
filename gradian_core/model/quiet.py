"""Keeping the chatter of libraries off the user's terminal."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partialmethod

__all__ = ["quiet"]


@contextmanager
def quiet() -> Iterator[None]:
    """Silence transformers' progress bars and log lines, and deprecations between libraries."""
    from transformers.utils import logging

    verbosity = logging.get_verbosity()
    bars = logging.is_progress_bar_enabled()
    logging.set_verbosity(logging.CRITICAL)
    logging.disable_progress_bar()
    try:
        with warnings.catch_warnings(), _no_bars():
            # peft asks transformers for names that the latter deprecates: nobody here can act
            warnings.simplefilter("ignore", FutureWarning)
            yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


@contextmanager
def _no_bars() -> Iterator[None]:
    """Switch off the bars that transformers draws past its own setting, as for .gguf files."""
    from tqdm import tqdm  # type: ignore[import-untyped]

    kept = tqdm.__init__
    tqdm.__init__ = partialmethod(kept, disable=True)
    try:
        yield
    finally:
        tqdm.__init__ = kept
