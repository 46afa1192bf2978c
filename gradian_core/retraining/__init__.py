"""Training adapters, and training them again to put a verdict to the test."""
