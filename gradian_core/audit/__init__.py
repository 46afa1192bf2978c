"""The audit: facts that checks ask for, and running checks on them."""
