"""Whole packages with one working plugin, to start from."""
