"""The embedded tiny model and its data sets."""

from pathlib import Path

__all__ = ["MODEL_FOLDER"]

MODEL_FOLDER = Path(__file__).parent / "model"
"""Folder of the embedded base model: an ordinary transformers checkpoint."""
