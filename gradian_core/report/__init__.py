"""The report model and how it is put together."""
