"""Per-example gradients over LoRA parameters."""
