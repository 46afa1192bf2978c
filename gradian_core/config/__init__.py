"""Pydantic models of ``gradian.yaml``, loading, starter file."""
