"""`config`: the settings that are in force."""

from typing import Any

import typer

from workers.commands.common import Config, Json, Redis
from workers.commands.options import with_settings
from workers.commands.worker import given_flags


def register(app: typer.Typer) -> None:
    """Add the command."""
    group = typer.Typer(help="Settings: what is in force.", no_args_is_help=True)
    group.command("show")(show)
    app.add_typer(group, name="config")


@with_settings
def show(redis: Redis = None, config: Config = None, json: Json = False, **settings: Any) -> None:
    """Print every setting with its value, as a TOML file; credentials are left out."""
    import orjson

    from workers.settings import PREFIX, PROCESS_ENVIRONMENT, WorkerSettings, load

    values = load(given_flags(settings, redis, None), config).shown()
    if json:
        print(orjson.dumps(values).decode())
        return
    for name, value in values.items():
        print(f"# {WorkerSettings.model_fields[name].description}")
        text = _toml(value)
        print(f"{name} = {text}" if text is not None else f'{name} = "none"')
    print(f"\n# Each setting is also an environment variable: {PREFIX}BATCH, {PREFIX}GAMMA, ...")
    print("# Environment variables that are not settings:")
    for name, meaning in PROCESS_ENVIRONMENT.items():
        print(f"#   {name}: {meaning}")


def _toml(value: Any) -> str | None:
    """Return a value as TOML writes it; None has no such form.

    Examples
    --------
    >>> _toml(["a", "b"]), _toml({"a": 1.0}), _toml(True)
    ('["a", "b"]', '{"a" = 1.0}', 'true')
    """
    import orjson

    if value is None:
        return None
    if isinstance(value, list):
        return f"[{', '.join(str(_toml(item)) for item in value)}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_toml(k)} = {_toml(v)}' for k, v in value.items())}}}"
    return orjson.dumps(value).decode()
