"""The feeds of one gateway, and the operations that requests of every address share."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from starlette.requests import Request

from workers.gateway.feed import Answered, GatewayFeed, full, unready
from workers.gateway.limits import GatewayLimits, json_body, seconds
from workers.gateway.refused import Refused, later
from workers.gateway.rows import parsed
from workers.gateway.tokens import Tokens
from workers.push.ingest import Fields

_CONNECT = 2.0  # seconds for Redis to answer, before requests are taken

_THREADS = 4
"""Of a feed, at most: two looks at it, and two connections that are made; none waits for others."""

_LARGE = 1 << 14
"""Bytes of a body that is not converted in the same turn of the event loop as another one."""

Made = TypeVar("Made")


class Gateway:
    """Feeds by name, tokens and limits."""

    def __init__(
        self, url: str, names: Sequence[str], tokens: Tokens, limits: GatewayLimits
    ) -> None:
        self._url, self.names, self._tokens, self.limits = url, names, tokens, limits
        self.feeds: dict[str, GatewayFeed] = {}
        self._converts = asyncio.Lock()

    async def open(self) -> None:
        """Connect to Redis; where that does not answer, go on trying meanwhile."""
        threads = ThreadPoolExecutor(_THREADS * len(self.names), "gateway")
        asyncio.get_running_loop().set_default_executor(threads)
        for name in self.names:
            self.feeds[name] = GatewayFeed(self._url, name, self.limits.high_water)
        await asyncio.gather(*[feed.connected(_CONNECT) for feed in self.feeds.values()])

    async def close(self) -> None:
        """Give up the connections."""
        for feed in self.feeds.values():
            await feed.close()

    async def end_waits(self) -> None:
        """Let all requests go that wait for answers: they get the IDs of their entries."""
        for feed in self.feeds.values():
            await feed.answers.close()

    def feed(self, request: Request, *rights: str) -> GatewayFeed:
        """Return the feed that a request names, if it has one of the rights.

        Raises Refused: 401, 403, or 404 for a feed that this gateway does not have.
        """
        name = request.path_params["feed"]
        self._tokens.check(request.headers.get("authorization"), name, rights)
        if name not in self.feeds:
            raise Refused(404, f"this gateway has no feed {name[:80]!r}")
        return self.feeds[name]

    async def converted(self, request: Request, make: Callable[[Any], Made]) -> Made:
        """Return what `make` makes of the body of a request, which is JSON.

        Large bodies are converted one in a turn of the event loop, so that other requests wait for
        one of them at most, however many there are.

        Raises Refused as `json_body`, `parsed` and `make` do.
        """
        body = await json_body(request, self.limits.max_body)
        if len(body) < _LARGE:
            return make(parsed(body))
        async with self._converts:
            await asyncio.sleep(0)
            return make(parsed(body))

    async def exchange(
        self,
        request: Request,
        feed: GatewayFeed,
        entries: Sequence[Fields],
        are_repeated: bool = False,
    ) -> list[Answered]:
        """Add entries, and wait for their answers; with `are_repeated`, those that ids got first.

        Raises Refused: 429 if too much waits for the worker, 503 if Redis does not answer, or the
        feed warms up and the request asks for that: then nothing was added.
        """
        wait = seconds(request, self.limits.max_timeout)
        await self._check_warming(request, feed)
        await feed.check_room()
        ids = await feed.add(entries)
        answered = await self.answered(request, feed, ids, wait)
        return await feed.first_answers(answered) if are_repeated else answered

    async def answered(
        self, request: Request, feed: GatewayFeed, ids: Sequence[bytes], timeout: float
    ) -> list[Answered]:
        """Return entries with their answers, those that come within so many seconds.

        A client that hangs up ends the wait.
        """
        if timeout <= 0:
            found = await feed.answers.find(ids)
        else:
            gone = asyncio.ensure_future(_hung_up(request))
            try:
                found = await feed.answers.wait(ids, timeout, gone)
            finally:
                gone.cancel()
        return [
            Answered(at, None if one is None else full(one), at)
            for at, one in zip(ids, found, strict=True)
        ]

    async def key(self, request: Request, feed: GatewayFeed) -> str | None:
        """Return the `Idempotency-Key` of a request, for `check_key`.

        Raises Refused: 400 if it is empty, or the feed does not keep what it promises: one answer
        for an id, however often that is sent; 503 before a worker has begun the feed.
        """
        key: str | None = request.headers.get("idempotency-key")
        if key is None:
            return None
        if len(key) > 1 and key[0] == key[-1] == '"':
            key = key[1:-1]  # as a string of structured headers is written
        if not key:
            raise Refused(400, "Idempotency-Key: it is empty")
        await feed.check_ids_are_kept()
        return key

    async def _check_warming(self, request: Request, feed: GatewayFeed) -> None:
        wanted = request.query_params.get("warming", "answer")
        if wanted not in ("answer", "refuse"):
            raise Refused(422, "warming: send answer or refuse")
        if wanted == "refuse" and (why := unready(await feed.sampled())):
            raise later(503, f"feed {feed.keys.feed!r}: {why}; nothing was added")


async def _hung_up(request: Request) -> None:
    """Return once the client of a request whose body was read is gone."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def check_key(key: str | None, count: int) -> None:
    """Raise Refused for a key of several examples."""
    if key is not None and count != 1:
        raise Refused(400, "Idempotency-Key: send one example with it; give others their id")
