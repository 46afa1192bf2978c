"""The gradient index: content address, shards, resume, reading."""
