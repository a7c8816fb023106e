"""Append entries to the input of a feed, each at most once.

Redis gives each entry its ID, so sending one again could append it twice. An entry is sent again in
one case: the node of a cluster refused it, and named another node because the slot moves.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Self

import redis

from workers.broker import commands
from workers.broker.client import client, translated
from workers.broker.nodes import nodes_of
from workers.errors import WorkerError
from workers.feed.keys import REGISTRY, FeedKeys

Fields = Sequence[bytes | str]

_MAX_MOVES = 5
"""Times that entries follow a slot, before the refusal is reported."""


class Producer:
    """Connections for the entries of one feed; WorkerError if Redis does not answer, or refuses."""

    def __init__(self, url: str, feed: str) -> None:
        self._key, self._feed = FeedKeys(feed).input, feed
        self._given, self._nodes = url, nodes_of(url)
        self._links: dict[str, Any] = {}
        try:
            self._url = self._home(self._key)
            self._link(self._url)
        except redis.RedisError as error:
            raise translated(error, url) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for link in self._links.values():
            link.close()

    def append(self, entries: Sequence[Fields]) -> list[bytes | WorkerError]:
        """Append entries in order; return the ID of each, or the error."""
        try:
            replies = self._replies(entries)
        except redis.RedisError as error:
            raise translated(error, self._given) from None
        return [
            translated(one, self._given) if isinstance(one, redis.RedisError) else one
            for one in replies
        ]

    def _replies(self, entries: Sequence[Fields]) -> list[Any]:
        replies = self._appended(self._url, entries)
        for _ in range(_MAX_MOVES):
            first = _first_redirect(replies)
            if first is None:
                break
            error = replies[first]
            url = self._nodes.at(error.host, error.port, self._url)
            if url is None:
                break
            if isinstance(error, redis.exceptions.MovedError):
                self._nodes.moved(error.slot_id, url)
                self._url = url
                replies[first:] = self._appended(url, entries[first:])
            else:
                replies[first:] = self._appended(url, entries[first:], is_asking=True)
        return replies

    def register(self) -> None:
        """Add the feed to the list of feeds."""
        # The list is for people, so a push must not fail because of it. A producer may lack the
        # permission; a broken connection is reported with the next rows.
        with suppress(redis.RedisError):
            self._link(self._home(REGISTRY)).sadd(REGISTRY, self._feed)

    def _home(self, key: str) -> str:
        return self._nodes.url_of((), key)

    def _link(self, url: str) -> Any:
        if url not in self._links:
            link = client(url)
            try:
                self._nodes.check(link)
            except redis.RedisError:
                link.close()
                raise
            self._links[url] = link
        return self._links[url]

    def _appended(self, url: str, entries: Sequence[Fields], is_asking: bool = False) -> list[Any]:
        pipeline = self._link(url).pipeline(transaction=False)
        for fields in entries:
            if is_asking:
                pipeline.execute_command("ASKING")
            pipeline.execute_command(*commands.append(self._key, fields))
        replies: list[Any] = pipeline.execute(raise_on_error=False)
        return replies[1::2] if is_asking else replies


def _first_redirect(replies: Sequence[Any]) -> int | None:
    """Return the place after which all entries must go to another node; None if there is none.

    A stream moves as a whole: once one entry is redirected, all later ones are.
    """
    redirects = [isinstance(reply, redis.exceptions.AskError) for reply in replies]
    if True not in redirects:
        return None
    first = redirects.index(True)
    return first if all(redirects[first:]) else None
