"""`dashboard`: the live page of feeds."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from workers.cli.common import Json, Port, RedisOptions, note, opt, show_json
from workers.python_process import importing


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """Address of the page, and its tokens."""

    address: Annotated[
        str, opt("IP", "Address to listen on; other than loopback needs a token.")
    ] = "127.0.0.1"
    port: Port = 5006
    token_file: Annotated[
        Path | None,
        opt("FILE", "File with a token that a browser must send before it sees the page."),
    ] = None
    until_input_ends: Annotated[
        bool, Option("--until-input-ends", hidden=True, help="End with standard input.")
    ] = False


def dashboard(
    feeds: Annotated[
        list[str] | None,
        Argument(
            metavar="[FEED]...",
            help="Names of feeds to show, and patterns such as 'sensors-*'; default all.",
        ),
    ] = None,
    *,
    redis: RedisOptions,
    server: ServerOptions,
    shard: Annotated[str | None, opt("I/N", "Show only the feeds of shard I of N.")] = None,
    json: Json = False,
) -> None:
    """Show feeds in a browser, live, until stopped: a table, and a page for each feed.

    It only reads. --json prints the address of the page as JSON.
    """
    from workers.feed.selection import Selection, Shard

    Selection(feeds or ("*",))  # raises for an invalid name
    owns = None if shard is None else Shard.parse(shard).owns
    url = redis.url()
    with importing():
        from workers.dashboard.handlers import read_token
        from workers.dashboard.server import Dashboard
        from workers.log import configure
    configure()
    token = None if server.token_file is None else read_token(server.token_file)
    page = Dashboard(url, feeds or (), server.address, server.port, token, owns)
    if json:
        show_json({"url": page.link, "port": page.port})
    else:
        note(f"the page is at {page.link} (stop with Ctrl-C)")
    page.run(server.until_input_ends)
