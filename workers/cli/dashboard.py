"""`dashboard`: the live page of feeds."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from workers.cli.common import Json, RedisOptions, note, show_json
from workers.fast_imports import importing


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """Where the page is served, and to whom."""

    address: Annotated[
        str,
        typer.Option(metavar="IP", help="Address to listen on; other than loopback needs a token."),
    ] = "127.0.0.1"
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 is any free one.")] = 5006
    token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File with a token that a browser must send before it sees the page.",
            show_default=False,
        ),
    ] = None
    until_input_ends: Annotated[
        bool, typer.Option("--until-input-ends", hidden=True, help="End with standard input.")
    ] = False


def dashboard(
    feeds: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FEED]...",
            help="Names of feeds to show, and patterns such as 'sensors-*'; default all.",
            show_default=False,
        ),
    ] = None,
    *,
    redis: RedisOptions,
    server: ServerOptions,
    shard: Annotated[
        str | None,
        typer.Option(
            metavar="I/N", help="Show only the feeds of shard I of N.", show_default=False
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Show feeds in a browser, live, until stopped: a table, and a page for each feed.

    It only reads. --json prints the address of the page as JSON.
    """
    from workers.feed.selection import Selection
    from workers.runner.shard import Shard

    Selection(feeds or ("*",))  # raises for what is no name
    owns = None if shard is None else Shard.parse(shard).owns
    url = redis.url()
    with importing():
        from workers.dashboard.server import Dashboard
        from workers.dashboard.token import read_token
        from workers.log import configure
    configure()
    token = None if server.token_file is None else read_token(server.token_file)
    page = Dashboard(url, feeds or (), server.address, server.port, token, owns)
    if json:
        show_json({"url": page.link, "port": page.port})
    else:
        note(f"the page is at {page.link} (stop with Ctrl-C)")
    page.run(server.until_input_ends)
