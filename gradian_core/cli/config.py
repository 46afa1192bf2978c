"""``gradian config``."""


def schema_config() -> int:
    """Print a JSON schema of gradian.yaml for editors, with the plugins that are installed."""
    import json

    from gradian_core.cli.streams import put, say
    from gradian_core.plugins.registry import load_registry
    from gradian_core.plugins.schema import config_schema

    put(json.dumps(config_schema(load_registry(), say), indent=2))
    return 0
