"""The order of stages, and nothing else."""
