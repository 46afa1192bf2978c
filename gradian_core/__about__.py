"""The version, in one place: hatchling and ``gradian version`` both read it."""

__version__ = "0.1.0"
