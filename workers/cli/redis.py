"""`redis`: the embedded server of this user."""

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from pathlib import Path


def stop() -> None:
    """Stop the embedded Redis; its data stays, and the next worker or push starts it again."""
    from workers.broker import embedded
    from workers.broker.embedded_directory import state_directory

    directory = state_directory()
    if embedded.stop():
        print(f"embedded Redis stopped; its data stays in {directory}")
    else:
        print(_not_running(directory))


def status() -> None:
    """Say whether the embedded Redis runs, and where."""
    from workers.broker import embedded
    from workers.broker.embedded_directory import server_pid, state_directory

    directory, server = state_directory(), embedded.running()
    if server is None:
        print(_not_running(directory))
        return
    pid = server_pid(server.directory)
    process = f" (process {pid})" if pid else ""
    print(f"embedded Redis at {server.url}{process}; its data: {directory}")


def _not_running(directory: "Path") -> str:
    from workers.broker.embedded_directory import has_data

    return f"no embedded Redis runs in {directory}" + ("; its data is there" * has_data(directory))


redis = typer.Typer(help="The embedded Redis, which worker and push start.", no_args_is_help=True)
redis.command("stop")(stop)
redis.command("status")(status)
