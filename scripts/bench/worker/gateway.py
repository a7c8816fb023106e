"""The gateway against endpoints of Starlette that compute nothing.

`examples`: its endpoint does nothing but XADD and wait for the worker's answer. `scores`: requests
of 100 rows; its endpoint responds with as many copies of the newest answer. Gateway and endpoints
are a process each on one Redis, and take turns.
`python -m scripts.bench.worker.gateway URL FEED PORT` serves the endpoints.
"""

import asyncio
import socket
import statistics
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, suppress
from functools import partial
from typing import Annotated, Any

import orjson
import typer

from scripts.bench import harness
from scripts.bench.report import Result, Values, beside, check
from scripts.command_line import tell
from workers.broker.store import Store
from workers.config.listening import LOOPBACK, listening
from workers.feed.keys import FeedKeys
from workers.feed.position import parse_id
from workers.push.ingest import push

MIN_RATE_RATIO = 0.9
MIN_SCORED_ROWS = 15_000  # a second, in one process
WARM_UP = 1000
TURNS = 12
CONNECTIONS = 32  # that ask at the same time
ROWS = 100  # of a request for scores: the most that it may have

_FEED = "bench-gateway"

Ask = Callable[[bytes], Awaitable[bytes]]


def run(
    requests: Annotated[int, typer.Option(min=100, help="Asked of each, in all.")] = 12_000,
) -> Iterator[Result]:
    """Compare the rate of the gateway with endpoints that compute nothing.

    Examples wait for their answers; scores are asked for in requests of 100 rows.
    """
    with ExitStack() as opened:
        url = opened.enter_context(harness.server())
        store = opened.enter_context(Store(url, _FEED))
        tell(f"a worker learns {WARM_UP:,} examples")
        worker = harness.worker(_FEED, url, ("--publish-every", "100"))
        process = opened.enter_context(harness.python(*worker))
        rows = harness.stream(WARM_UP)
        push(rows, url, _FEED)
        process.wait_until(lambda: harness.answered(store) >= WARM_UP)
        commands = {
            _free_port(): ("workers.cli", "gateway", _FEED, "--redis", url, "--port"),
            _free_port(): ("scripts.bench.worker.gateway", url, _FEED),
        }
        doors = {
            port: opened.enter_context(harness.python("-m", *arguments, str(port)))
            for port, arguments in commands.items()
        }
        for port, door in doors.items():
            door.wait_until(partial(_listens, port))
        examples = [orjson.dumps({"x": row.x}) for row in rows]
        hundreds = [b"[%s]" % b",".join(examples[i : i + ROWS]) for i in range(0, WARM_UP, ROWS)]
        paths = {"examples": examples, "scores": hundreds}
        yield result([asyncio.run(_measured(path, doors, paths[path], requests)) for path in paths])


def result(found: Sequence[Values]) -> Result:
    """Return the rates of examples, and of rows that are scored, with their bounds."""
    examples, scores = found
    checks = [
        check("examples, ratio to the endpoint", examples["ratio"], MIN_RATE_RATIO, is_least=True),
        check("rows scored a second", scores["ours"], MIN_SCORED_ROWS, is_least=True),
    ]
    title = f"rows a second of {CONNECTIONS} connections, medians of {TURNS} turns"
    return Result(found, title, None, checks)


async def _measured(
    path: str, doors: Mapping[int, harness.Measured], bodies: list[bytes], requests: int
) -> Values:
    """Return the median rates of gateway and endpoint, in rows a second.

    `a_second_of_processor` is rows per second of the processor time of the gateway.
    """
    rates: dict[int, list[float]] = {port: [] for port in doors}
    used, count = dict.fromkeys(doors, 0.0), max(requests // TURNS, CONNECTIONS)
    for turn in range(TURNS):
        tell(f"{path}, turn {turn + 1} of {TURNS}")
        for port in [*doors][:: -1 if turn % 2 else 1]:
            used[port] -= doors[port].processor_seconds
            rates[port].append(await _rate(port, path, bodies, count))
            used[port] += doors[port].processor_seconds
    rows = ROWS if path == "scores" else 1
    ours, peer = (rows * statistics.median(of_port) for of_port in rates.values())
    processor = rows * TURNS * count / used[next(iter(doors))]
    return beside(f"{path}: gateway / endpoint", ours, peer) | {"a_second_of_processor": processor}


async def _rate(port: int, path: str, bodies: list[bytes], count: int) -> float:
    """Return the responses a second to all connections together."""
    left = iter(range(count))

    async def work(ask: Ask) -> None:
        for i in left:
            await ask(bodies[i % len(bodies)])

    async with AsyncExitStack() as opened:
        lines = [await opened.enter_async_context(_line(port, path)) for _ in range(CONNECTIONS)]
        began = time.perf_counter()
        await asyncio.gather(*map(work, lines))
        return count / (time.perf_counter() - began)


def _listens(port: int) -> bool:
    with suppress(OSError):
        socket.create_connection((LOOPBACK, port)).close()
        return True
    return False


@asynccontextmanager
async def _line(port: int, path: str) -> AsyncIterator[Ask]:
    """Open a connection; yield a function that sends a request and returns the response's body."""
    reader, writer = await asyncio.open_connection(LOOPBACK, port)
    line = f"POST /feeds/{_FEED}/{path} HTTP/1.1\r\nHost: {LOOPBACK}:{port}\r\n"

    async def ask(body: bytes) -> bytes:
        head = f"{line}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        reply = await reader.readuntil(b"\r\n\r\n")
        size = int(reply.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        found = await reader.readexactly(size)
        if not reply.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(reply.splitlines()[0].decode())
        return found

    try:
        yield ask
    finally:
        writer.close()


def endpoints(url: str, feed: str) -> Any:
    """Return the endpoints: an XADD with a blocked XREAD for each request, and fixed scores."""
    from redis.asyncio import Redis
    from starlette.applications import Starlette
    from starlette.responses import Response
    from starlette.routing import Route

    keys, redis = FeedKeys(feed), Redis.from_url(url, protocol=2)

    async def ask(request: Any) -> Response:
        x = orjson.dumps(orjson.loads(await request.body())["x"])
        added: Any = await redis.xadd(keys.input, {"x": x})
        at, count = parse_id(added)
        before = f"{at}-{count - 1}" if count else f"{at - 1}-{2**64 - 1}"
        found: Any = await redis.xread({keys.out: before}, count=1, block=5000)
        return Response(found[0][1][0][1][b"p"], media_type="application/json")

    async def score(request: Any) -> Response:
        newest: Any = await redis.xrevrange(keys.out, count=1)
        rows = orjson.loads(await request.body())
        answers = b",".join([newest[0][1][b"p"]] * len(rows))
        return Response(b'{"answers":[%s]}' % answers, media_type="application/json")

    paths = {"examples": ask, "scores": score}
    return Starlette(
        routes=[Route(f"/feeds/{{feed}}/{path}", paths[path], methods=["POST"]) for path in paths]
    )


def _free_port() -> int:
    with listening(LOOPBACK, 0) as free:
        return int(free.getsockname()[1])


if __name__ == "__main__":
    import uvicorn

    url, feed, port = sys.argv[1:]
    config = uvicorn.Config(endpoints(url, feed), log_config=None, access_log=False, http="h11")
    asyncio.run(uvicorn.Server(config).serve([listening(LOOPBACK, int(port))]))
