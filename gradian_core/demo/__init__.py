"""The embedded tiny model and its data sets."""
