"""The feeds of one gateway, and what each request does with them, whatever its address."""

import asyncio
from collections.abc import Sequence

from starlette.requests import Request

from workers.gateway.feed import GatewayFeed, full, status_of
from workers.gateway.limits import GatewayLimits, seconds
from workers.gateway.refused import Refused, later
from workers.gateway.tokens import Tokens
from workers.push.ingest import Fields

_CONNECT = 2.0  # seconds for Redis to answer, before requests are taken

Exchange = list[tuple[str, bytes | None]]
"""Of each entry its ID, and its answer in the full form; None where none came in time."""


class Gateway:
    """Feeds by name, tokens and limits.

    Parameters
    ----------
    url : str
        Of Redis.
    names : sequence of str
        Of the feeds.
    tokens : Tokens
    limits : GatewayLimits
    """

    def __init__(
        self, url: str, names: Sequence[str], tokens: Tokens, limits: GatewayLimits
    ) -> None:
        self._url, self.names, self._tokens, self.limits = url, names, tokens, limits
        self.feeds: dict[str, GatewayFeed] = {}

    async def open(self) -> None:
        """Connect to Redis; where that does not answer, go on trying meanwhile."""
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

        Raises
        ------
        Refused
            401, 403, or 404 for a feed that this gateway does not have.
        """
        name = request.path_params["feed"]
        self._tokens.check(request.headers.get("authorization"), name, rights)
        if name not in self.feeds:
            raise Refused(404, f"this gateway has no feed {name[:80]!r}")
        return self.feeds[name]

    async def exchange(
        self,
        request: Request,
        feed: GatewayFeed,
        entries: Sequence[Fields],
        are_repeated: bool = False,
    ) -> Exchange:
        """Add entries, and wait for their answers; with `are_repeated`, those that ids got first.

        Raises
        ------
        Refused
            429 if too much waits for the worker, 503 if Redis does not answer, or the feed warms up
            and the request asks for that: then nothing was added.
        """
        wait = seconds(request, self.limits.max_timeout)
        await self._check_warming(request, feed)
        await feed.check_room()
        ids = await feed.add(entries)
        found = await feed.answers.wait(ids, wait)
        told = [None if one is None else full(one) for one in found]
        for i, one in enumerate(told):
            if one is not None and are_repeated and status_of(one) == "duplicate":
                told[i] = await feed.first_answer(ids[i], one)
        return [(at.decode(), one) for at, one in zip(ids, told, strict=True)]

    async def check_key(self, request: Request, feed: GatewayFeed, count: int) -> str | None:
        """Return the `Idempotency-Key` of a request.

        Raises
        ------
        Refused
            400 where it promises what the feed does not keep: one answer for an id, however often
            it is sent.
        """
        key: str | None = request.headers.get("idempotency-key")
        if key is None:
            return None
        if len(key) > 1 and key[0] == key[-1] == '"':
            key = key[1:-1]  # as a string of structured headers is written
        if not key:
            raise Refused(400, "Idempotency-Key: it is empty")
        if count != 1:
            raise Refused(400, "Idempotency-Key: send one example with it; give others their id")
        if not (await feed.standing()).dedupe_window:
            raise Refused(
                400,
                f"Idempotency-Key: feed {feed.keys.feed!r} learns a repeated id again; begin a "
                "feed with --dedupe-window N",
            )
        return key

    async def _check_warming(self, request: Request, feed: GatewayFeed) -> None:
        wanted = request.query_params.get("warming", "answer")
        if wanted not in ("answer", "refuse"):
            raise Refused(422, "warming: send answer or refuse")
        if wanted == "refuse" and (why := (await feed.standing()).unready):
            raise later(503, f"feed {feed.keys.feed!r}: {why}; nothing was added")
