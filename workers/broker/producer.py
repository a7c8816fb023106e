"""Append entries to the input of a feed, each at most once.

Redis assigns the ID of an entry, so sending the entry again could append it twice. It is sent again
only if a cluster node redirected it, because the slot has moved.
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

_MAX_MOVES = 5  # redirects that are followed, before the error is reported


class Producer:
    """Appends entries to one feed. Raises WorkerError if Redis does not answer, or refuses."""

    def __init__(self, url: str, feed: str) -> None:
        self._key, self._feed = FeedKeys(feed).input, feed
        self._given_url, self._nodes = url, nodes_of(url)
        self._clients: dict[str, Any] = {}
        try:
            self._url = self._url_of(self._key)
            self._client(self._url)
        except redis.RedisError as error:
            raise translated(error, url) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for connected in self._clients.values():
            connected.close()

    def append(self, entries: Sequence[Fields]) -> list[bytes | WorkerError]:
        """Append entries in order; return the ID or the error of each."""
        try:
            replies = self._replies(entries)
        except redis.RedisError as error:
            raise translated(error, self._given_url) from None
        return [
            translated(one, self._given_url) if isinstance(one, redis.RedisError) else one
            for one in replies
        ]

    def _replies(self, entries: Sequence[Fields]) -> list[Any]:
        replies = self._appended(self._url, entries)
        for _ in range(_MAX_MOVES):
            first = _first_redirect(replies)
            if first is None:
                break
            error = replies[first]
            url = self._nodes.redirect_url(error.host, error.port, self._url)
            if url is None:
                break
            if isinstance(error, redis.exceptions.MovedError):
                self._nodes.note_moved(error.slot_id, url)
                self._url = url
                replies[first:] = self._appended(url, entries[first:])
            else:
                replies[first:] = self._appended(url, entries[first:], is_asking=True)
        return replies

    def register(self) -> None:
        """Add the feed to the list of feeds."""
        # Best effort: a producer may lack the permission, and a broken connection is reported with
        # the next rows.
        with suppress(redis.RedisError):
            self._client(self._url_of(REGISTRY)).sadd(REGISTRY, self._feed)

    def _url_of(self, key: str) -> str:
        return self._nodes.url_of((), key)

    def _client(self, url: str) -> Any:
        if url not in self._clients:
            connected = client(url)
            try:
                self._nodes.check_role(connected)
            except redis.RedisError:
                connected.close()
                raise
            self._clients[url] = connected
        return self._clients[url]

    def _appended(self, url: str, entries: Sequence[Fields], is_asking: bool = False) -> list[Any]:
        pipeline = self._client(url).pipeline(transaction=False)
        for fields in entries:
            if is_asking:
                pipeline.execute_command("ASKING")
            pipeline.execute_command(*commands.append(self._key, fields))
        replies: list[Any] = pipeline.execute(raise_on_error=False)
        return replies[1::2] if is_asking else replies


def _first_redirect(replies: Sequence[Any]) -> int | None:
    """Return the index from which on all entries were redirected; None if there is none.

    A stream moves as a whole, so all entries after a redirected one are redirected, too.
    """
    redirects = [isinstance(reply, redis.exceptions.AskError) for reply in replies]
    if True not in redirects:
        return None
    first = redirects.index(True)
    return first if all(redirects[first:]) else None
