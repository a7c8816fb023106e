"""`gateway`: examples, labels and answers of feeds over HTTP."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from workers.cli.common import Json, Port, RedisOptions, note, opt, show_json
from workers.errors import BadConfiguration
from workers.python_process import importing

MISSING = "the gateway needs starlette and uvicorn: pip install 'online-svm[http]'"


@dataclass(frozen=True, slots=True)
class GatewayOptions:
    """Address of the gateway, its tokens, and its limits."""

    address: Annotated[
        str, opt("IP", "Address to listen on; other than loopback needs tokens.")
    ] = "127.0.0.1"
    port: Port = 8080
    token_file: Annotated[
        Path | None,
        opt("FILE", "TOML file of bearer tokens, by feed and right; read again when it changes."),
    ] = None
    high_water: Annotated[
        int,
        opt(
            "N",
            "Refuse (429) while N entries of a feed or more wait for its worker; 0 never.",
            min=0,
        ),
    ] = 10_000
    max_body: Annotated[int, Option(min=1000, help="Bytes of the body of a request, at most.")] = (
        1 << 20
    )
    connections: Annotated[int, Option(min=1, help="Connections at the same time, at most.")] = 2000
    states: Annotated[
        int,
        Option(min=1, help="Published states to keep, of the feeds whose scores were asked last."),
    ] = 64


def gateway(
    feeds: Annotated[list[str], Argument(metavar="FEED...", help="Names of feeds.")],
    *,
    redis: RedisOptions,
    server: GatewayOptions,
    json: Json = False,
) -> None:
    """Take examples and labels of feeds over HTTP, and respond with the answers of their workers.

    It only adds entries and waits: if any process dies, nothing is lost or answered twice. Without
    --token-file it listens on this machine alone. --json prints its address as JSON.
    """
    from workers.config.listening import check_address
    from workers.feed.keys import FeedKeys

    for feed in feeds:
        FeedKeys(feed)  # raises for an invalid name
    check_address(server.address, server.token_file is not None)
    url = redis.url()
    with importing():
        try:
            import starlette  # noqa: F401  (only whether it is installed)
            import uvicorn  # noqa: F401  (likewise)
        except ImportError:
            raise BadConfiguration(MISSING) from None
        from workers.gateway.gateway import Gateway
        from workers.gateway.limits import GatewayLimits
        from workers.gateway.server import GatewayServer
        from workers.gateway.tokens import Tokens
        from workers.log import configure
    configure()
    limits = GatewayLimits(
        server.high_water, server.max_body, server.connections, states=server.states
    )
    serving = GatewayServer(
        Gateway(url, [*dict.fromkeys(feeds)], Tokens(server.token_file), limits),
        server.address,
        server.port,
    )
    if json:
        show_json({"url": serving.link, "port": serving.port})
    else:
        note(f"the gateway is at {serving.link} (stop with Ctrl-C)")
    serving.run()
