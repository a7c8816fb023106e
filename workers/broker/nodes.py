"""Servers that a command may go to: the only one, the node of a slot, or the present primary."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Protocol

import redis

from workers.broker.node_health import NodeHealth
from workers.broker.pipeline import Argument
from workers.broker.redis_errors import translated
from workers.config.redis_servers import CLUSTER, kind_of, servers_of
from workers.config.redis_url import check_url, redacted


class Nodes(Protocol):
    """The servers that a URL names, as connections of this process found them."""

    def url_of(self, command: Sequence[Argument], key: str | None = None) -> str:
        """Return the URL of the server for a command.

        Parameters
        ----------
        command : sequence of Argument
        key : str, optional
            A key of the same slot, for a command that names no key.

        Raises
        ------
        redis.RedisError
            If that is not known now, and may be later.
        WorkerError
            If it will not be known.
        """

    def check(self, client: redis.Redis) -> None:
        """Raise redis.RedisError if this server is not the one it was taken for."""

    def failed(self, url: str, health: NodeHealth = NodeHealth.GOOD) -> None:
        """Note that a server does not answer, or refuses: ask anew where its data is."""

    def answers(self, url: str) -> None:
        """Note that a server answers again."""

    def health(self, url: str, seconds: float) -> NodeHealth:
        """Return the health of a server, as commands of the last so many seconds found it."""

    def place(self, key: str) -> str | None:
        """Return the URL of the node that a key is on, empty if it is on none; ask nobody.

        None if all keys are on one server.
        """

    def primaries(self) -> list[str]:
        """Return the URLs of the nodes that share the keys; none if all are on one server.

        Raises
        ------
        redis.RedisError
            If they are not known now, and may be later.
        """

    def moved(self, slot: int, url: str) -> None:
        """Note that a slot has moved to another server."""

    def at(self, host: str, port: int, asked: str) -> str | None:
        """Return the URL of the server that another one, `asked`, named; None to stay."""


class OneServer:
    """A URL of one server.

    Parameters
    ----------
    url : str
    """

    def __init__(self, url: str) -> None:
        self._url = url

    def url_of(self, _command: Sequence[Argument], _key: str | None = None) -> str:
        """Return the URL."""
        return self._url

    def check(self, client: Any) -> None:
        """Accept any server."""

    def failed(self, url: str, health: NodeHealth = NodeHealth.GOOD) -> None:
        """Know of no other server."""

    def answers(self, url: str) -> None:
        """Know of no other server, either."""

    def health(self, _url: str, _seconds: float) -> NodeHealth:
        """Let every command be sent: no other server is held up by it."""
        return NodeHealth.GOOD

    def place(self, _key: str) -> str | None:
        """Return None: there is one server."""
        return None

    def primaries(self) -> list[str]:
        """Return none: there is one server."""
        return []

    def moved(self, slot: int, url: str) -> None:
        """Know of no slots."""

    def at(self, _host: str, _port: int, _asked: str) -> str | None:
        """Follow nobody: the URL was to name the only server."""
        return None


@lru_cache(maxsize=64)
def nodes_of(url: str) -> Nodes:
    """Return the servers of a URL. All connections of this process share what was found.

    Raises
    ------
    BadConfiguration
        If the URL cannot be used.

    Examples
    --------
    >>> nodes_of("redis://h/0").url_of(("PING",))
    'redis://h/0'
    """
    check_url(url)
    kind = kind_of(url)
    if not kind:
        return OneServer(url)
    # Imported here: most processes have one server.
    if kind == CLUSTER:
        from workers.broker.cluster_nodes import ClusterNodes

        return ClusterNodes(servers_of(url), url)
    from workers.broker.sentinel_nodes import SentinelNodes

    return SentinelNodes(servers_of(url))


def node_of(url: str, key: str) -> str:
    """Return the server that has a key now, without credentials: to tell servers apart.

    Raises
    ------
    WorkerError
        If that cannot be found out now.

    Examples
    --------
    >>> node_of("redis://worker:secret@h/0", "osvm:{f}:st")
    'redis://h/0'
    """
    try:
        return redacted(nodes_of(url).url_of((), key))
    except redis.RedisError as error:
        raise translated(error, url) from None
