"""Training runs in one normalised form."""
