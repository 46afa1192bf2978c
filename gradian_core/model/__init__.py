"""Base model and adapter: loading, LoRA sites, devices."""
