"""The feeds of a gateway, and the operations that all routes share."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.routing import Route

from workers.broker.feed_reader import FeedReader
from workers.gateway.answers import full
from workers.gateway.feed import Answered, GatewayFeed, unready
from workers.gateway.limits import GatewayLimits, json_body, parameter, seconds
from workers.gateway.openapi import OPERATIONS
from workers.gateway.published_states import PublishedStates
from workers.gateway.refused import Refused, later, wrong
from workers.gateway.rows import parsed
from workers.gateway.tokens import Tokens
from workers.message.entry_decode import FIELD, TRACEPARENT, read_trace
from workers.push.ingest import Fields

_CONNECT_SECONDS = 2.0  # to wait for Redis before requests are accepted

_THREADS_PER_FEED = 4
"""For two reads of its status and for making two connections, so that none waits for another."""

MAX_WAITING_SCORES = 64
"""Requests for scores that wait at the same time: their rows take about half a second."""

UNWATCHED_SECONDS = 0.05
"""Seconds of a wait after which it ends with its client. Most answers are there before, and a task
that watches the client would take a tenth of the processor time of a request."""

_LARGE_BODY_BYTES = 1 << 14
"""Larger bodies are converted one by one, in different turns of the event loop."""

Made = TypeVar("Made")


def routes_of(handlers: object, group: str) -> list[Route]:
    """Return the routes of a group of operations; the methods of `handlers` have their names."""
    return [
        Route(one.path, getattr(handlers, one.name), methods=[one.method])
        for one in OPERATIONS
        if one.group == group
    ]


class Gateway:
    """Feeds by name, tokens and limits."""

    def __init__(
        self, url: str, names: Sequence[str], tokens: Tokens, limits: GatewayLimits
    ) -> None:
        self._url, self.names, self._tokens, self.limits = url, names, tokens, limits
        self.feeds: dict[str, GatewayFeed] = {}
        self._conversion = asyncio.Lock()
        # One thread: several would take turns, and the event loop with them.
        self._scorer = ThreadPoolExecutor(1, "scores")
        self._states = PublishedStates(partial(FeedReader, url), limits.states)
        self._scoring = 0  # requests for scores that have no response yet

    async def open(self) -> None:
        """Connect to Redis; if it does not answer, continue to try in the background."""
        threads = ThreadPoolExecutor(_THREADS_PER_FEED * len(self.names), "gateway")
        asyncio.get_running_loop().set_default_executor(threads)
        for name in self.names:
            self.feeds[name] = GatewayFeed(self._url, name, self.limits.high_water)
        await asyncio.gather(*[feed.connected(_CONNECT_SECONDS) for feed in self.feeds.values()])

    async def close(self) -> None:
        """Close the connections."""
        await asyncio.to_thread(self._scorer.shutdown, cancel_futures=True)
        self._states.close()
        for feed in self.feeds.values():
            await feed.close()

    async def end_waits(self) -> None:
        """Respond to all requests that wait for answers with the IDs of their entries."""
        for feed in self.feeds.values():
            await feed.answers.close()

    def feed(self, request: Request, *rights: str) -> GatewayFeed:
        """Return the feed of a request that has one of the rights.

        Raises Refused: 401 or 403; 404 for a feed that this gateway does not have.
        """
        name = request.path_params["feed"]
        self._tokens.check(request.headers.get("authorization"), name, rights)
        if name not in self.feeds:
            raise Refused("feed_unknown", feed=name[:80])
        return self.feeds[name]

    async def converted(self, request: Request, make: Callable[[Any], Made]) -> Made:
        """Return the result of `make` for the JSON body of a request.

        Large bodies are converted one per turn of the event loop, so that other requests wait for
        at most one of them. Raises Refused as `json_body`, `parsed` and `make` do.
        """
        body = await json_body(request, self.limits.max_body)
        if len(body) < _LARGE_BODY_BYTES:
            return make(parsed(body))
        async with self._conversion:
            await asyncio.sleep(0)
            return make(parsed(body))

    async def exchange(
        self,
        request: Request,
        feed: GatewayFeed,
        entries: Sequence[Fields],
        are_examples: bool,
    ) -> list[Answered]:
        """Add entries and wait for their answers; a repeated example gets its first answer.

        Raises Refused: 410 if that is not stored any more; 429 if too many entries wait for the
        worker; 503 if Redis does not answer, or the feed is warming up and the request has
        `warming=refuse`.
        """
        wait = seconds(request, self.limits.max_timeout)
        await self._check_warming(request, feed)
        await feed.check_room()
        trace = trace_of(request)
        if trace:
            entries = [[*fields, FIELD, trace[TRACEPARENT]] for fields in entries]
        ids = await feed.add(entries)
        answered = await self.answered(request, feed, ids, wait)
        return await feed.first_answers(answered) if are_examples else answered

    async def scored(self, feed: GatewayFeed, body: bytes, most_behind: int | None) -> bytes:
        """Return the response with the scores of rows; see `PublishedStates.score`.

        Raises Refused: 429 if too many requests wait for scores.
        """
        if self._scoring >= MAX_WAITING_SCORES:
            raise later("too_many_scores", requests=self._scoring)
        self._scoring += 1
        try:
            moment = await feed.moment()
            return await asyncio.get_running_loop().run_in_executor(
                self._scorer, self._states.score, feed.keys.feed, moment, body, most_behind
            )
        finally:
            self._scoring -= 1

    async def answered(
        self, request: Request, feed: GatewayFeed, ids: Sequence[bytes], timeout: float
    ) -> list[Answered]:
        """Return entries with the answers that arrive in time; stop if the client hangs up."""
        if timeout <= 0:
            found = await feed.answers.find(ids)
        else:
            with _hang_up(request) as gone:
                found = await feed.answers.wait(ids, timeout, gone)
        return [
            Answered(at, None if one is None else full(one), at)
            for at, one in zip(ids, found, strict=True)
        ]

    async def _check_warming(self, request: Request, feed: GatewayFeed) -> None:
        wanted = parameter(request, "warming")
        if wanted not in (None, "answer", "refuse"):
            raise wrong("warming", "send answer or refuse")
        if wanted == "refuse" and (why := unready(await feed.sampled())):
            raise later("feed_not_ready", feed=feed.keys.feed, words=why)


def trace_of(request: Request) -> dict[str, str]:
    """Return the trace context of a request by its name; {} without a valid one."""
    sent = request.headers.getlist(TRACEPARENT)
    found = read_trace(sent[0]) if len(sent) == 1 else None
    return {} if found is None else {TRACEPARENT: found}


@contextmanager
def _hang_up(request: Request) -> Iterator["asyncio.Future[None]"]:
    """Give a future that is done when the client is gone; its body must have been read."""
    loop = asyncio.get_running_loop()
    gone: asyncio.Future[None] = loop.create_future()

    def ended(_: object) -> None:
        if not gone.done():
            gone.set_result(None)

    def watch() -> None:
        task = loop.create_task(_disconnected(request))
        task.add_done_callback(ended)
        gone.add_done_callback(lambda _: task.cancel())

    timer = loop.call_later(UNWATCHED_SECONDS, watch)
    try:
        yield gone
    finally:
        timer.cancel()
        gone.cancel()


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def key_of(request: Request) -> str | None:
    """Return the `Idempotency-Key` of a request, if any.

    Raises Refused: 400 if it is empty, or sent twice with different values.
    """
    sent = set(request.headers.getlist("idempotency-key"))
    if not sent:
        return None
    if len(sent) > 1:
        raise Refused("key_twice")
    key: str = sent.pop()
    if len(key) > 1 and key[0] == key[-1] == '"':
        key = key[1:-1]  # a string of RFC 8941
    if not key:
        raise Refused("key_empty")
    return key
