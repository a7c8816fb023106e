"""The primary of a service, as its sentinels name it; they are asked again when it fails.

Clients are asked to do two things: to ask the sentinels by GET-MASTER-ADDR-BY-NAME, and to check by
ROLE that the server is a primary (https://redis.io/docs/latest/develop/reference/sentinel-clients/).
redis-py does the first by the list of all services, and takes a sentinel that refuses the password
for one that does not answer; it does not do the second.
"""

import random
import threading
from collections.abc import Sequence
from typing import Any

import redis

from workers.broker.client import client
from workers.broker.node_health import NodeHealth
from workers.broker.pipeline import Argument
from workers.config.redis_servers import Address, Servers

TIMEOUT = 2.0
"""Seconds that one sentinel has for an answer; then another is asked."""


class SentinelNodes:
    """The primary of a service; see `nodes.Nodes`. Safe to use from several threads.

    Parameters
    ----------
    servers : Servers
        The sentinels and the service that the URL names.
    """

    def __init__(self, servers: Servers) -> None:
        self._servers = servers
        self._lock = threading.Lock()
        self._url: str | None = None
        # Which sentinel is asked first changes no answer.
        self._random = random.SystemRandom()

    def url_of(self, _command: Sequence[Argument], _key: str | None = None) -> str:
        """Return the URL of the primary."""
        with self._lock:
            if self._url is None:
                self._url = self._servers.url_of(self._asked())
            return self._url

    def check(self, client: Any) -> None:
        """Raise ReadOnlyError unless this server is a primary: a sentinel may be behind."""
        if client.execute_command("ROLE")[0] != b"master":
            raise redis.exceptions.ReadOnlyError("READONLY it is a replica, and not the primary")

    def failed(self, url: str, _health: NodeHealth = NodeHealth.GOOD) -> None:
        """Ask the sentinels again before the next connection, unless that was done since."""
        with self._lock:
            if self._url == url:
                self._url = None

    def answers(self, url: str) -> None:
        """Note nothing: no server is passed over."""

    def health(self, _url: str, _seconds: float) -> NodeHealth:
        """Let every command be sent: all feeds wait for the same primary."""
        return NodeHealth.GOOD

    def place(self, _key: str) -> str | None:
        """Return None: all keys are on the primary."""
        return None

    def primaries(self) -> list[str]:
        """Return none: all keys are on the primary."""
        return []

    def moved(self, slot: int, url: str) -> None:
        """Know of no slots."""

    def at(self, _host: str, _port: int, _asked: str) -> str | None:
        """Follow nobody but the sentinels."""
        return None

    def _asked(self) -> Address:
        """Return the address of the primary."""
        # In random order: a sentinel that is cut off would name an old primary for ever.
        known = self._random.sample(self._servers.hosts, len(self._servers.hosts))
        silent: redis.RedisError | None = None
        for address in known:
            try:
                with client(self._servers.url_of_sentinel(address), TIMEOUT) as asked:
                    found: Any = asked.execute_command(
                        "SENTINEL", "GET-MASTER-ADDR-BY-NAME", self._servers.service
                    )
            except redis.AuthenticationError:
                raise
            except (redis.ConnectionError, redis.TimeoutError) as error:
                silent = error
                continue
            if found:
                return found[0].decode(), int(found[1])
        raise silent or redis.ConnectionError(
            f"the sentinels know no service {self._servers.service!r}"
        )
