"""The slot table of a Redis Cluster: which node has which keys, asked for again when it changes.

The table is ours and not that of redis-py's cluster client. That one sends a write again after a
lost connection, holds a pool of connections to every node, and takes a missing permission for a
server without cluster mode. Its parser of CLUSTER SLOTS and its hash of keys are used.
"""

import random
import threading
import time
from collections.abc import Sequence

import redis
from redis.cluster import parse_cluster_slots
from redis.crc import REDIS_CLUSTER_HASH_SLOTS, key_slot

from workers.broker.client import client
from workers.broker.command_keys import key_of
from workers.broker.node_health import NodeHealth
from workers.broker.pipeline import Argument
from workers.config.redis_servers import Address, Servers, address_in
from workers.config.redis_url import redacted
from workers.errors import RedisUnsuitable

TIMEOUT = 2.0
"""Seconds that one node has for the table; then another is asked."""

PAUSE = 0.1
"""Seconds between two looks at the table. While a node is replaced, each connection of it asks."""

SILENT = 10.0
"""Seconds for which a node that did not answer is asked for the table after all others."""

_REFUSED = (redis.ResponseError, redis.AuthenticationError)

# A node does not know its own name, and says so.
_NAMELESS = ("?", "")


class ClusterNodes:
    """The nodes of a cluster, by slot; see `nodes.Nodes`. Safe to use from several threads.

    Parameters
    ----------
    servers : Servers
        The nodes that the URL names.
    url : str
        For messages.
    """

    def __init__(self, servers: Servers, url: str) -> None:
        self._servers, self._shown = servers, redacted(url)
        self._refreshing = threading.Lock()
        self._table: list[str | None] = [None] * REDIS_CLUSTER_HASH_SLOTS
        self._known = set(servers.hosts)
        self._is_stale, self._read_at = True, float("-inf")
        self._health: dict[Address, tuple[NodeHealth, float]] = {}  # and when that was found
        # Which node is asked first changes no answer.
        self._random = random.SystemRandom()

    def url_of(self, command: Sequence[Argument], key: str | None = None) -> str:
        """Return the URL of the primary that has the slot of the command's key."""
        about = key_of(command) if key is None else key.encode()
        slot = 0 if about is None else key_slot(about)
        self._refresh()
        found = self._table[slot]
        if found is None:
            self._is_stale = True
            raise redis.exceptions.ClusterDownError(f"no node serves slot {slot}")
        return found

    def check(self, _client: redis.Redis) -> None:
        """Accept a node: one that lost its slots says so at each command."""

    def failed(self, url: str, health: NodeHealth = NodeHealth.GOOD) -> None:
        """Ask for the table again before the next command; note the health of the node."""
        self._is_stale = True
        if url and health:
            self._health[address_in(url)] = health, time.monotonic()

    def answers(self, url: str) -> None:
        """Note that a node answers again."""
        self._health.pop(address_in(url), None)

    def health(self, url: str, seconds: float) -> NodeHealth:
        """Return the health of a node, as found in the last so many seconds."""
        return self._health_of(address_in(url), seconds) if self._health else NodeHealth.GOOD

    def place(self, key: str) -> str:
        """Return the URL of the node that a key is on as far as is known; empty for none."""
        return self._table[key_slot(key.encode())] or ""

    def primaries(self) -> list[str]:
        """Return the URLs of the primaries, sorted."""
        self._refresh()
        return sorted({url for url in self._table if url is not None})

    def moved(self, slot: int, url: str) -> None:
        """Put a slot to another node; the rest of the table is left as it is."""
        self._table[slot] = url
        self._known = self._known | {address_in(url)}  # another thread may go through the old one

    def at(self, host: str, port: int, asked: str) -> str | None:
        """Return the URL of a node that another node named."""
        if host in _NAMELESS:  # it means its own host
            host = address_in(asked)[0]
        return self._servers.url_of((host.strip("[]"), port))

    def _health_of(self, address: Address, seconds: float) -> NodeHealth:
        health, since = self._health.get(address, (NodeHealth.GOOD, 0.0))
        return health if time.monotonic() - since < seconds else NodeHealth.GOOD

    def _refresh(self) -> None:
        """Read the table if it may have changed; while another thread does, use the one there is.

        Before the first one is read, wait for it.
        """
        is_first = self._read_at == float("-inf")
        if not self._is_stale or not self._refreshing.acquire(blocking=is_first):
            return
        try:
            if self._is_stale and time.monotonic() - self._read_at >= PAUSE:
                self._read_from_any()
        finally:
            self._refreshing.release()

    def _read_from_any(self) -> None:
        # In random order: a node that is cut off from the others would tell an old table for ever.
        # One that did not answer a moment ago comes last: it would take `TIMEOUT` again.
        known = self._random.sample(sorted(self._known), len(self._known))
        known.sort(key=lambda address: self._health_of(address, SILENT) is NodeHealth.SILENT)
        self._is_stale = False  # what fails from here on makes it so again
        refusals: list[redis.RedisError] = []
        for address in known:
            try:
                self._read(address)
            except redis.RedisError as error:
                refusals.append(error)
                if not isinstance(error, _REFUSED):
                    self._health[address] = NodeHealth.SILENT, time.monotonic()
            else:
                self._read_at = time.monotonic()
                return
        self._is_stale = True
        told = [error for error in refusals if isinstance(error, _REFUSED)]
        if any("cluster support disabled" in str(error) for error in told):
            raise RedisUnsuitable(
                f"Redis at {self._shown} is not part of a Redis Cluster (cluster-enabled no): "
                "begin the URL with redis:// or rediss://, and name one server"
            )
        raise (told or refusals)[0]

    def _read(self, address: Address) -> None:
        with client(self._servers.url_of(address), TIMEOUT) as asked:
            reply = asked.execute_command("CLUSTER", "SLOTS")
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
