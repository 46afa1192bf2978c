"""Built-in clusterers, metrics, sinks, run readers and trainers."""
