"""`check`: print the settings in force, and run the checks of a worker without starting it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import orjson
from typer import Argument

from workers.cli.common import Json, RedisOptions, attached_url, note, show_json, with_settings
from workers.cli.worker import given_flags
from workers.config.environment import PREFIX, PROCESS_ENVIRONMENT

if TYPE_CHECKING:
    from workers.config.settings import WorkerSettings

STORED_ORIGIN = "stored with the feed"
"""Origin of a setting that is fixed for the feed since its first worker."""


@with_settings
def check(
    feed: Annotated[
        str | None, Argument(help="Name of the feed; default the settings alone.")
    ] = None,
    *,
    redis: RedisOptions,
    json: Json = False,
    **settings: Any,
) -> None:
    """Print every setting in force and its origin; check whether a worker of a feed could begin.

    The output is a TOML file that --config accepts, without credentials. It ends with the level of
    the compiled kernels and their compiler. Nothing is written. The command exits as a worker
    that cannot begin.
    """
    from workers.config.settings import FeedSettings, load, origins

    flags = given_flags(settings, redis)
    if feed is None:
        loaded = in_force = load(flags, redis.config)
    else:
        loaded = FeedSettings(flags, redis.config).of(feed)
        in_force = _checked(feed, loaded)
    if json:
        show_json(in_force.shown() | {"compiled": _compiled()})
        return
    _print_toml(in_force, _origins(loaded, in_force, origins(flags, redis.config)))


def _checked(feed: str, loaded: "WorkerSettings") -> "WorkerSettings":
    """Run the checks that a worker runs at its start; return the settings in force."""
    from workers.broker import permissions
    from workers.monitor.watching import check_outlets
    from workers.session import preflight
    from workers.session.preflight import KnownFeeds, commands_of, open_store

    check_outlets(loaded)
    url = loaded.url or attached_url()
    with open_store(feed, loaded, url) as store:
        known = KnownFeeds.of_user(url, is_kept=False)
        found, in_force = preflight.run(store, loaded, known)
        permissions.check(
            url, commands_of(url, store.keys, in_force), retry_timeout=loaded.wait_redis
        )
    for warning in found.warnings:
        note(f"warning: {warning}")
    begun = "a new feed" if found.state is None else f"{found.state.position.seq:,} answered"
    note(f"feed {feed}: a worker may begin ({begun}, {found.server})")
    return in_force


def _compiled() -> dict[str, str]:
    from online_svm.compiled.kernel import LIBRARY

    return {"level": LIBRARY.level, "compiler": LIBRARY.compiler}


def _origins(
    loaded: "WorkerSettings", in_force: "WorkerSettings", given: Mapping[str, str]
) -> dict[str, str]:
    """Complete the origins `given` by sections of the file and the stored settings."""
    found = dict(given)
    for name, origin in given.items():
        if origin != "default":
            continue
        if name in loaded.model_fields_set:  # from the feed's section of the file
            found[name] = "file"
        elif getattr(in_force, name) != getattr(loaded, name):
            found[name] = STORED_ORIGIN
    return found


def _print_toml(settings: "WorkerSettings", origins: Mapping[str, str]) -> None:
    print('# "none" is no value (null in JSON), where a setting may have none.')
    for name, value in settings.shown().items():
        print(f"\n# {type(settings).model_fields[name].description}")
        print(f"{name} = {_toml(value)}  # {origins[name]}")
    print(f"\n# Each setting is also an environment variable: {PREFIX}BATCH, {PREFIX}GAMMA, ...")
    print("# Environment variables that are not settings:")
    for name, meaning in PROCESS_ENVIRONMENT.items():
        print(f"#   {name}: {meaning}")
    kernels = _compiled()
    print(f"# Compiled kernels: level {kernels['level']}, by {kernels['compiler']}")


def _toml(value: Any) -> str:
    """Return a value as TOML, which has no null: None becomes "none"."""
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_toml(k)} = {_toml(v)}' for k, v in value.items())}}}"
    return orjson.dumps("none" if value is None else value).decode()
