"""The fidelity benchmark: planted faults, honest decoys, and how well each engine tells them apart.

``python -m experiments.fidelity --help``; what it measures and why is in ``docs/fidelity.md``.
"""
