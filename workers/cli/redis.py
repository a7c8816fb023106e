"""`redis`: the embedded server of this user."""

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from pathlib import Path


def stop() -> None:
    """Stop the embedded Redis; its data stays, and the next worker or push starts it again."""
    from workers.broker import embedded
    from workers.broker.embedded_directory import state_directory

    place = state_directory()
    if embedded.stop():
        print(f"embedded Redis stopped; its data stays in {place}")
    else:
        print(_not_running(place))


def status() -> None:
    """Say whether the embedded Redis runs, and where."""
    from workers.broker import embedded
    from workers.broker.embedded_directory import server_pid, state_directory

    place, found = state_directory(), embedded.running()
    if found is None:
        print(_not_running(place))
        return
    pid = server_pid(found.directory)
    print(f"embedded Redis at {found.url}{f' (process {pid})' if pid else ''}; its data: {place}")


def _not_running(place: "Path") -> str:
    from workers.broker.embedded_directory import has_data

    return f"no embedded Redis runs in {place}" + ("; its data is there" * has_data(place))


redis = typer.Typer(help="The embedded Redis, which worker and push start.", no_args_is_help=True)
redis.command("stop")(stop)
redis.command("status")(status)
