"""Built-in audit checks, one file each."""
