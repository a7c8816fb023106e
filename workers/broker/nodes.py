"""Which server gets a command: the only one, the node of a slot, or the current primary.

Of redis-py's support for clusters and sentinels, only the parser of CLUSTER SLOTS, the hash of keys
and the redirection errors are used:

- `NodesManager` takes any error of CLUSTER SLOTS, even a missing permission, for a server without
  cluster mode; it blocks all threads while one reads the slot table, and waits for each silent node
  every time; it replaces `localhost` by an address, which no certificate contains;
- `RedisCluster` repeats a write after a lost connection;
- `Sentinel` treats a sentinel that refuses the password like one that does not answer; it asks the
  sentinels in a fixed order, so that an isolated one could name an old primary for ever; it does
  not check by ROLE that the server is a primary, as clients should
  (https://redis.io/docs/latest/develop/reference/sentinel-clients/).
"""

# ruff: noqa: ARG002  (a single server ignores most arguments)

import random
import threading
import time
from collections.abc import Sequence
from enum import IntEnum
from functools import lru_cache
from typing import Any

import redis
from redis.cluster import parse_cluster_slots
from redis.crc import REDIS_CLUSTER_HASH_SLOTS, key_slot
from typing_extensions import override

from workers.broker.client import client, translated
from workers.broker.pipeline import Argument, key_of
from workers.broker.servers import Address, address_in, check_url, servers_of
from workers.config.redis_url import CLUSTER, kind_of, redacted
from workers.errors import RedisUnsuitable

TOPOLOGY_TIMEOUT = 2.0  # seconds for a node or sentinel to answer, before another is asked

TOPOLOGY_PAUSE_SECONDS = 0.1
"""Seconds between two reads of the slot table: while a node is replaced, each connection to it
requests one."""

SILENT_SECONDS = 10.0
"""Seconds for which a node that did not answer is asked for the slot table last."""

_REFUSED = (redis.ResponseError, redis.AuthenticationError)

# Host names in the reply of a node that does not know its own name.
_NAMELESS = ("?", "")


class NodeHealth(IntEnum):
    """The last known health of a server: commands to other servers need not wait for a bad one."""

    GOOD = 0
    NO_REPLICAS = 1
    """Too few replicas acknowledge its writes."""
    SILENT = 2
    """It does not answer."""


class Nodes:
    """The servers of a URL, shared by the threads of a process; in this class a single one."""

    def __init__(self, url: str) -> None:
        self._url: str | None = url

    def url_of(self, command: Sequence[Argument], key: str | None = None) -> str:
        """Return the URL of the server for a command; `key` stands in for a command without a key.

        Raises redis.RedisError if the server is unknown now but may be found later; WorkerError if
        it cannot be found.
        """
        assert self._url is not None
        return self._url

    def check_role(self, client: Any) -> None:
        """Raise redis.RedisError unless the server has the expected role."""

    def note_failure(self, url: str, health: NodeHealth = NodeHealth.GOOD) -> None:
        """Record that a server failed or refused, so that its successor is looked up."""

    def note_reply(self, url: str) -> None:
        """Record that a server answers again."""

    def health(self, url: str, seconds: float) -> NodeHealth:
        """Return the health of a server as recorded in the last `seconds`."""
        return NodeHealth.GOOD

    def node_of_key(self, key: str) -> str | None:
        """Return the URL of a key's current node, "" if unknown; None if there is one server."""
        return None

    def primaries(self) -> list[str]:
        """Return the primaries of a cluster; [] without a cluster. Raises redis.RedisError."""
        return []

    def note_moved(self, slot: int, url: str) -> None:
        """Record that a slot has moved to another server."""

    def redirect_url(self, host: str, port: int, source: str) -> str | None:
        """Return the URL to which the server `source` redirects; None without a cluster."""
        return None


class SentinelNodes(Nodes):
    """The primary of a service, as its sentinels report it; they are asked again if it fails."""

    def __init__(self, url: str) -> None:
        self._servers = servers_of(url)
        self._lock = threading.Lock()
        self._url = None

    @override
    def url_of(self, command: Sequence[Argument], key: str | None = None) -> str:
        with self._lock:
            if self._url is None:
                self._url = self._servers.url_of(self._primary())
            return self._url

    @override
    def check_role(self, client: Any) -> None:
        # A sentinel may report an old primary.
        if client.execute_command("ROLE")[0] != b"master":
            raise redis.exceptions.ReadOnlyError("READONLY it is a replica, and not the primary")

    @override
    def note_failure(self, url: str, health: NodeHealth = NodeHealth.GOOD) -> None:
        with self._lock:
            if self._url == url:  # else another thread has already replaced it
                self._url = None

    def _primary(self) -> Address:
        """Ask the sentinels for the address of the primary."""
        unreachable: redis.RedisError | None = None
        for address in _shuffled(self._servers.hosts):
            try:
                with client(self._servers.url_of_sentinel(address), TOPOLOGY_TIMEOUT) as server:
                    found: Any = server.execute_command(
                        "SENTINEL", "GET-MASTER-ADDR-BY-NAME", self._servers.service
                    )
            except redis.AuthenticationError:
                raise
            except (redis.ConnectionError, redis.TimeoutError) as error:
                unreachable = error
                continue
            if found:
                return found[0].decode(), int(found[1])
        raise unreachable or redis.ConnectionError(
            f"the sentinels know no service {self._servers.service!r}"
        )


class ClusterNodes(Nodes):
    """The nodes of a cluster by slot; the slot table is read again after a failure."""

    def __init__(self, url: str) -> None:
        self._servers, self._public_url = servers_of(url), redacted(url)
        self._refreshing = threading.Lock()
        self._table: list[str | None] = [None] * REDIS_CLUSTER_HASH_SLOTS
        self._known = set(self._servers.hosts)
        self._is_outdated, self._read_at = True, float("-inf")
        self._health: dict[Address, tuple[NodeHealth, float]] = {}  # with the time of recording

    @override
    def url_of(self, command: Sequence[Argument], key: str | None = None) -> str:
        about = key_of(command) if key is None else key.encode()
        slot = 0 if about is None else key_slot(about)
        self._refresh()
        found = self._table[slot]
        if found is None:
            self._is_outdated = True
            raise redis.exceptions.ClusterDownError(f"no node serves slot {slot}")
        return found

    @override
    def note_failure(self, url: str, health: NodeHealth = NodeHealth.GOOD) -> None:
        self._is_outdated = True
        if url and health:
            self._health[address_in(url)] = health, time.monotonic()

    @override
    def note_reply(self, url: str) -> None:
        self._health.pop(address_in(url), None)

    @override
    def health(self, url: str, seconds: float) -> NodeHealth:
        return self._health_of(address_in(url), seconds) if self._health else NodeHealth.GOOD

    @override
    def node_of_key(self, key: str) -> str:
        return self._table[key_slot(key.encode())] or ""

    @override
    def primaries(self) -> list[str]:
        self._refresh()
        return sorted({url for url in self._table if url is not None})

    @override
    def note_moved(self, slot: int, url: str) -> None:
        self._table[slot] = url
        self._known = self._known | {address_in(url)}  # another thread may go through the old one

    @override
    def redirect_url(self, host: str, port: int, source: str) -> str:
        if host in _NAMELESS:  # it means its own host
            host = address_in(source)[0]
        return self._servers.url_of((host.strip("[]"), port))

    def _health_of(self, address: Address, seconds: float) -> NodeHealth:
        health, since = self._health.get(address, (NodeHealth.GOOD, 0.0))
        return health if time.monotonic() - since < seconds else NodeHealth.GOOD

    def _refresh(self) -> None:
        """Read an outdated table. Only the first read blocks the other threads."""
        is_first = self._read_at == float("-inf")
        if not self._is_outdated or not self._refreshing.acquire(blocking=is_first):
            return
        try:
            if self._is_outdated and time.monotonic() - self._read_at >= TOPOLOGY_PAUSE_SECONDS:
                self._read_table()
        finally:
            self._refreshing.release()

    def _read_table(self) -> None:
        # Nodes known to be silent come last: each would take `TOPOLOGY_TIMEOUT` again.
        known = _shuffled(sorted(self._known))
        known.sort(
            key=lambda address: self._health_of(address, SILENT_SECONDS) is NodeHealth.SILENT
        )
        self._is_outdated = False  # before the read: a failure meanwhile must set it again
        refusals: list[redis.RedisError] = []
        for address in known:
            try:
                self._read_table_from(address)
            except redis.RedisError as error:
                refusals.append(error)
                if not isinstance(error, _REFUSED):
                    self._health[address] = NodeHealth.SILENT, time.monotonic()
            else:
                self._read_at = time.monotonic()
                return
        self._is_outdated = True
        refused = [error for error in refusals if isinstance(error, _REFUSED)]
        if any("cluster support disabled" in str(error) for error in refused):
            raise RedisUnsuitable(
                f"Redis at {self._public_url} is not part of a Redis Cluster (cluster-enabled no): "
                "begin the URL with redis:// or rediss://, and name one server"
            )
        raise (refused or refusals)[0]

    def _read_table_from(self, address: Address) -> None:
        with client(self._servers.url_of(address), TOPOLOGY_TIMEOUT) as server:
            reply = server.execute_command("CLUSTER", "SLOTS")
        if not reply:
            raise redis.exceptions.ClusterDownError("a node knows of no slots")
        table: list[str | None] = [None] * REDIS_CLUSTER_HASH_SLOTS
        known = set(self._servers.hosts)
        for (first, last), nodes in parse_cluster_slots(reply, current_host=address[0]).items():
            primary = nodes["primary"]
            known |= {node for node in (primary, *nodes["replicas"]) if node[0] not in _NAMELESS}
            if primary[0] not in _NAMELESS:
                url = self._servers.url_of(primary)
                table[first : last + 1] = [url] * (last + 1 - first)
        self._table, self._known = table, known


def _shuffled(hosts: Sequence[Address]) -> list[Address]:
    """Return servers in random order: an isolated sentinel may name an old primary."""
    return random.SystemRandom().sample(hosts, len(hosts))


@lru_cache(maxsize=64)
def nodes_of(url: str) -> Nodes:
    """Return the servers of a URL, shared in this process. Raises BadConfiguration."""
    check_url(url)
    kind = kind_of(url)
    if not kind:
        return Nodes(url)
    return ClusterNodes(url) if kind == CLUSTER else SentinelNodes(url)


def node_of(url: str, key: str) -> str:
    """Return the URL of a key's server, without credentials. WorkerError if it is not found."""
    try:
        return redacted(nodes_of(url).url_of((), key))
    except redis.RedisError as error:
        raise translated(error, url) from None
