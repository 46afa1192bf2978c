"""Built-in attribution engines, one file each."""
