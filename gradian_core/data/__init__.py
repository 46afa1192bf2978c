"""Files to examples; chat templates to tokens and loss mask."""
