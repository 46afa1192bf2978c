"""Conformance kit for plugin authors."""
