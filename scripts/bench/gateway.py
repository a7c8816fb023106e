"""The gateway against an endpoint of Starlette that does nothing but XADD and wait.

Both are processes of their own on one Redis, and ask the same worker about the same feed, in turns.
`python -m scripts.bench.gateway URL FEED PORT` is the endpoint.
"""

import asyncio
import statistics
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any

import orjson
import typer

from scripts.bench import harness
from scripts.bench.report import Result, check
from scripts.command_line import tell
from workers.broker.store import Store
from workers.config.listening import LOOPBACK, listening
from workers.feed.keys import FeedKeys
from workers.feed.position import parse_id
from workers.push.ingest import entry

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request

MIN_RATE_RATIO = 0.9
MAX_MEDIAN_RATIO = 1.1
WARM_UP = 1000
TURNS = 12
CONNECTIONS = 32  # that ask at the same time where the rate is measured

_FEED = "bench-gateway"
_NAMES = ("gateway", "endpoint")

Ask = Callable[[bytes], Awaitable[float]]
Figures = dict[str, tuple[list[float], list[float]]]
"""Of each door its rates, and the median seconds of requests that were alone, one a turn."""


def run(
    requests: Annotated[int, typer.Option(min=100, help="Asked of each, in all.")] = 12_000,
) -> Iterator[Result]:
    """Compare rate and latency of the gateway with an endpoint that only adds and waits."""
    with ExitStack() as opened:
        url = opened.enter_context(harness.server())
        store = opened.enter_context(Store(url, _FEED))
        tell(f"a worker learns {WARM_UP:,} examples")
        process = opened.enter_context(harness.python(*harness.worker(_FEED, url)))
        rows = harness.stream(WARM_UP)
        harness.send(url, ((store.keys.input, entry(row)) for row in rows))
        process.wait_until(lambda: harness.answered(store) >= WARM_UP)
        ports = [_free_port() for _ in _NAMES]
        for arguments in (
            ("-m", "workers.cli", "gateway", _FEED, "--redis", url, "--port", str(ports[0])),
            ("-m", "scripts.bench.gateway", url, _FEED, str(ports[1])),
        ):
            opened.enter_context(harness.python(*arguments))
        bodies = [orjson.dumps({"x": row.x}) for row in rows]
        yield result(asyncio.run(_measured(ports, bodies, requests)))


def result(found: Figures) -> Result:
    """Return rates and medians, with their bounds."""
    rates, medians = (
        {name: statistics.median(turns[kind]) for name, turns in found.items()} for kind in (0, 1)
    )
    rate, median = (
        statistics.median(
            ours / peer for ours, peer in zip(*(found[name][kind] for name in _NAMES), strict=True)
        )
        for kind in (0, 1)
    )
    lines = [
        f"{name:<42}{rates[name]:>10,.0f}/s of {CONNECTIONS} connections"
        f"{1e3 * medians[name]:>10.3f} ms alone"
        for name in _NAMES
    ]
    checks = [
        check("rate / endpoint's rate", rate, MIN_RATE_RATIO, is_least=True),
        check("median / endpoint's median", median, MAX_MEDIAN_RATIO),
    ]
    return Result({"rates": rates, "medians": medians}, lines, checks)


async def _measured(ports: list[int], bodies: list[bytes], requests: int) -> Figures:
    found: Figures = {name: ([], []) for name in _NAMES}
    each = max(requests // TURNS, CONNECTIONS)
    doors = list(zip(_NAMES, ports, strict=True))
    for port in ports:
        await _ready(port, bodies[0])
    for turn in range(TURNS):
        tell(f"turn {turn + 1} of {TURNS}")
        for name, port in doors[:: -1 if turn % 2 else 1]:
            found[name][0].append(await _rate(port, bodies, each))
            async with _line(port) as ask:
                alone = [await ask(body) for body in bodies[: each // 4]]
            found[name][1].append(statistics.median(alone))
    return found


async def _rate(port: int, bodies: list[bytes], count: int) -> float:
    """Return the answers a second to all connections together."""
    left = iter(range(count))

    async def work(ask: Ask) -> None:
        for i in left:
            await ask(bodies[i % len(bodies)])

    async with AsyncExitStack() as opened:
        lines = [await opened.enter_async_context(_line(port)) for _ in range(CONNECTIONS)]
        began = time.perf_counter()
        await asyncio.gather(*map(work, lines))
        return count / (time.perf_counter() - began)


async def _ready(port: int, body: bytes) -> None:
    """Wait until a door answers."""
    for _ in range(600):
        try:
            async with _line(port) as ask:
                await ask(body)
                return
        except (OSError, asyncio.IncompleteReadError, RuntimeError):
            await asyncio.sleep(0.1)
    raise RuntimeError(f"nothing answers on port {port}")


@asynccontextmanager
async def _line(port: int) -> AsyncIterator[Ask]:
    """Open a kept connection; yield what asks one request and returns the seconds it took."""
    reader, writer = await asyncio.open_connection(LOOPBACK, port)
    line = f"POST /feeds/{_FEED}/examples HTTP/1.1\r\nHost: {LOOPBACK}:{port}\r\n"

    async def ask(body: bytes) -> float:
        head = f"{line}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        began = time.perf_counter()
        writer.write(head.encode() + body)
        reply = await reader.readuntil(b"\r\n\r\n")
        size = int(reply.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        await reader.readexactly(size)
        if not reply.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(reply.splitlines()[0].decode())
        return time.perf_counter() - began

    try:
        yield ask
    finally:
        writer.close()


def endpoint(url: str, feed: str) -> "Starlette":
    """Return the endpoint: XADD, and a blocked XREAD of its own for each request."""
    from redis.asyncio import Redis
    from starlette.applications import Starlette
    from starlette.responses import Response
    from starlette.routing import Route

    keys, redis = FeedKeys(feed), Redis.from_url(url, protocol=2)

    async def ask(request: "Request") -> Response:
        x = orjson.dumps(orjson.loads(await request.body())["x"])
        added: Any = await redis.xadd(keys.input, {"x": x})
        at, count = parse_id(added)
        before = f"{at}-{count - 1}" if count else f"{at - 1}-{2**64 - 1}"
        found: Any = await redis.xread({keys.out: before}, count=1, block=5000)
        return Response(found[0][1][0][1][b"p"], media_type="application/json")

    return Starlette(routes=[Route("/feeds/{feed}/examples", ask, methods=["POST"])])


def _free_port() -> int:
    with listening(LOOPBACK, 0) as free:
        port: int = free.getsockname()[1]
        return port


if __name__ == "__main__":
    import uvicorn

    url, feed, port = sys.argv[1:]
    config = uvicorn.Config(endpoint(url, feed), log_config=None, access_log=False, http="h11")
    asyncio.run(uvicorn.Server(config).serve([listening(LOOPBACK, int(port))]))
