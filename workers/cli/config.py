"""`config`: show the settings in force."""

from typing import Any

import typer

from workers.cli.common import Config, Json, Redis
from workers.cli.options import with_settings
from workers.cli.worker import given_flags
from workers.config.environment import PREFIX, PROCESS_ENVIRONMENT


def register(app: typer.Typer) -> None:
    """Add the command."""
    group = typer.Typer(help="Settings: what is in force.", no_args_is_help=True)
    group.command("show")(show)
    app.add_typer(group, name="config")


@with_settings
def show(redis: Redis = None, config: Config = None, json: Json = False, **settings: Any) -> None:
    """Print every setting with its value and the origin of the value, without credentials.

    The output is a TOML file that `--config` accepts.
    """
    import orjson

    from workers.config.settings import WorkerSettings, load, origins

    flags = given_flags(settings, redis, None)
    values = load(flags, config).shown()
    if json:
        print(orjson.dumps(values).decode())
        return
    froms = origins(flags, config)
    print('# "none" is no value (null in JSON), where a setting may have none.')
    for name, value in values.items():
        print(f"\n# {WorkerSettings.model_fields[name].description}")
        print(f"{name} = {_toml(value)}  # {froms[name]}")
    _show_environment()


def _show_environment() -> None:
    print(f"\n# Each setting is also an environment variable: {PREFIX}BATCH, {PREFIX}GAMMA, ...")
    print("# Environment variables that are not settings:")
    for name, meaning in PROCESS_ENVIRONMENT.items():
        print(f"#   {name}: {meaning}")


def _toml(value: Any) -> str:
    """Return a value as the settings file writes it; TOML has no null, so None is a text.

    Examples
    --------
    >>> _toml(["a", "b"]), _toml({"a": 1.0}), _toml(True), _toml(None)
    ('["a", "b"]', '{"a" = 1.0}', 'true', '"none"')
    """
    import orjson

    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_toml(k)} = {_toml(v)}' for k, v in value.items())}}}"
    return orjson.dumps("none" if value is None else value).decode()
