"""Generation, likelihood, bootstrap, gate, preference margin."""
