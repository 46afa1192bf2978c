"""Discovery, loading and naming of plugins."""
