"""A connection to Redis: no hidden retries, a named error for each failure, one retry loop.

On a Redis Cluster it has one connection to each node. A slot may move: its old node then names the
new one, and the command follows. If a node does not answer, the others are asked who has the slot.
"""

import time
from collections import Counter
from collections.abc import Container, Iterable, Sequence
from contextlib import nullcontext
from typing import Any

import redis
from typing_extensions import override

from workers.broker.client import TIMEOUT, UnknownScript, client, delays, failure_kind, translated
from workers.broker.commands import Script
from workers.broker.nodes import NodeHealth, Nodes, nodes_of
from workers.broker.pipeline import Argument, PendingReply, Pipeline, Unacknowledged
from workers.broker.streams import Keys
from workers.errors import ReadCut, ReadTooLarge, Stopped, Trouble, Unavailable, still
from workers.log import Logger
from workers.stop import Stop

_MAX_REDIRECTS = 5
"""Times that a command follows from one node of a cluster to the next, before it waits."""

_FAST_CONNECT_TIMEOUT = 1.0
"""Seconds for a connection to be made, where the commands for other nodes wait for that."""

log = Logger("online_svm.redis")


class Connection(Keys):
    """Sends commands to Redis, and repeats them after transient errors.

    A reply can be lost, so a command may run twice and must be idempotent. Commands to different
    nodes may run in another order than they were sent.

    Parameters
    ----------
    stop : Stop
        After a stop is requested, waiting ends with `Stopped`.
    retry_timeout : float or None
        Seconds of retries before `Unavailable`; None retries until a stop is requested.
    timeout : float
        Seconds for one reply.
    fail_fast_for : float
        On a cluster: for so many seconds after a node did not answer, its commands fail at once, so
        that commands for other nodes do not wait for it again.

    Attributes
    ----------
    failures, retries : int, Counter of str
        Connection failures and moves of slots so far; the same by `client.failure_kind`. After one,
        Redis may have been restarted, or a server that lacks the last writes may have taken over.
    trouble : Trouble or None
        Why the last attempt failed; None after a reply.
    """

    def __init__(
        self,
        url: str,
        stop: Stop,
        retry_timeout: float | None = 0.0,
        timeout: float = TIMEOUT,
        fail_fast_for: float = 0.0,
    ) -> None:
        self.url, self.stop, self.retry_timeout, self.timeout = url, stop, retry_timeout, timeout
        self.fail_fast_for = fail_fast_for
        self.failures = 0
        self._failed: Counter[str] = Counter()  # by the URL of the server
        self.retries: Counter[str] = Counter()
        self.trouble: Trouble | None = None
        self._warned = 0.0  # when the log first reported that Redis is silent; 0 once it answers
        self._links: dict[str, Pipeline] = {}
        self._last: Pipeline | None = None

    def call(
        self,
        *command: Argument,
        name: str = "",
        limit: int | None = None,
        most_cuts: int | None = None,
        key: str | None = None,
    ) -> Any:
        """Return the reply to a command. `name` names its failpoints; the default is the command.

        A command that names no key goes to the server of `key`. Raises ReadTooLarge if the reply
        has more than `limit` bytes; ReadCut if the connection closed `most_cuts` times within the
        reply; Unavailable after `retry_timeout`; Stopped after a stop; AccessDenied, WrongKeyType
        or WorkerError if Redis refused for good.
        """
        sent = self.send(*command, name=name, limit=limit, most_cuts=most_cuts, key=key)
        return self.receive(sent)

    @override
    def value(self, key: str, limit: int | None = None) -> bytes | None:
        """Return a string of at most `limit` bytes; None if it does not exist."""
        found: bytes | None = self.call("GET", key, limit=limit)
        return found

    @override
    def call_all(self, sent: Iterable[Sequence[Argument]]) -> list[Any]:
        return [self.receive(one) for one in [self.send(*command) for command in sent]]

    def send_all(self, commands: Iterable[Sequence[Argument]]) -> list[PendingReply]:
        """Send a few small commands to one server in one system call.

        If one cannot be sent, the later ones fail too: each would wait for the server.
        """
        found: list[PendingReply] = []
        with nullcontext() if self._last is None else self._last.together():
            for command in commands:
                last = found[-1] if found else None
                if last is None or last.error is None:
                    found.append(self.send(*command))
                else:
                    name = str(command[0]).lower()
                    found.append(PendingReply(tuple(command), name, error=last.error, url=last.url))
        return found

    def send(
        self,
        *command: Argument,
        name: str = "",
        limit: int | None = None,
        most_cuts: int | None = None,
        key: str | None = None,
        replicas: int = 0,
        is_large: bool = False,
    ) -> PendingReply:
        """Send a command; `receive` returns its reply or raises its error.

        The reply counts once `replicas` replicas acknowledged the write. The arguments of a command
        that `is_large` are not copied; they may be memory views.
        """
        name = name or str(command[0]).lower()
        sent = PendingReply(
            command, name, limit=limit, most_cuts=most_cuts, key=key, is_large=is_large,
            replicas=replicas,
        )  # fmt: skip
        self._transmit(sent)
        return sent

    def descriptor(self, sent: PendingReply) -> int | None:
        """Return the descriptor on which a reply arrives; None if the connection broke."""
        link = self._links.get(sent.url)
        return None if link is None or sent.error is not None else link.descriptor

    def has_reply(self, sent: PendingReply) -> bool:
        """Return whether `receive` returns at once: the reply was read, or there will be none."""
        link = self._links.get(sent.url)
        return link is None or not link.awaits(sent)

    @property
    def descriptors(self) -> list[int]:
        """The descriptors on which unread replies arrive."""
        found = [link.descriptor for link in self._links.values() if link.is_awaiting]
        return [descriptor for descriptor in found if descriptor is not None]

    def read_arrived(self, readable: Container[int]) -> None:
        """Read the replies that have arrived on `readable` descriptors; `receive` returns each."""
        for link in self._links.values():
            if link.is_awaiting and link.descriptor in readable:
                link.read_arrived()

    def receive(self, sent: PendingReply) -> Any:
        """Return the reply to a command that `send` sent; repeat it after transient errors.

        After `Unavailable` it may be called again, which sends the command again. Raises as `call`.
        """
        began, pauses = time.monotonic(), delays()
        if sent.is_raised:
            sent.is_raised = False
            self._transmit(sent)
        while True:
            try:
                reply = self._reply(sent)
            except redis.RedisError as error:
                if self._follows(error, sent):
                    continue
                reason = self._check_retry(error, sent, began)
            else:
                self.trouble = None
                if self._warned:
                    log.info("redis answers again", after=round(time.monotonic() - self._warned, 1))
                    self._warned = 0.0
                return reply
            delay = next(pauses)
            self._warned = self._warned or time.monotonic()
            log.warning(
                "redis refuses or does not answer; trying again",
                command=sent.command[0],
                after=delay,
                reason=reason,
            )
            if self.stop.wait(delay):
                time.sleep(delay)  # the last attempts of a graceful stop are spaced as well
            self._transmit(sent)

    def evaluate(
        self, script: Script, keys: Sequence[str], args: Sequence[Argument], replicas: int = 0
    ) -> Any:
        """Run a script by its hash; send its text if Redis does not know it."""
        return self.receive_script(script, self.send_script(script, keys, args, replicas))

    def send_script(
        self,
        script: Script,
        keys: Sequence[str],
        args: Sequence[Argument],
        replicas: int = 0,
        is_large: bool = False,
    ) -> PendingReply:
        """Send a call of a script, as `send`."""
        called = ("EVALSHA", script.sha1, len(keys), *keys, *args)
        return self.send(*called, name=script.name, replicas=replicas, is_large=is_large)

    def receive_script(self, script: Script, sent: PendingReply) -> Any:
        """Return the reply to a call of a script, as `receive`."""
        try:
            return self.receive(sent)
        except UnknownScript:
            text = ("EVAL", script.text, *sent.command[2:])
            again = self.send(
                *text, name=script.name, replicas=sent.replicas, is_large=sent.is_large
            )
            return self.receive(again)

    def failures_about(self, key: str) -> tuple[str | None, int]:
        """Return the node of a key and its failures, or all failures without a cluster.

        If both are unchanged, no failure came between.
        """
        at = nodes_of(self.url).place(key)
        return at, self.failures if at is None else self._failed[at]

    def note_failure(self, url: str) -> None:
        """Count a failure of another connection to the same servers."""
        self.failures += 1
        self._failed[url] += 1

    def close(self) -> None:
        """Close the connection."""
        for url in list(self._links):
            self._close(url)

    def _close(self, url: str) -> None:
        """Close the connection to one server."""
        link = self._links.pop(url, None)
        if link is not None:
            link.close()
        if self._last is link:
            self._last = None

    def _transmit(self, sent: PendingReply, asked: str | None = None) -> None:
        """Send a command to its server; or to the one that a node named for it alone."""
        sent.is_asking, sent.url = asked is not None, ""
        nodes = nodes_of(self.url)
        try:
            sent.url = asked or nodes.url_of(sent.command, sent.key)
            if self.fail_fast_for:
                _check_health(nodes.health(sent.url, self.fail_fast_for), sent)
            self._last = self._linked(sent.url)
            self._last.send(sent)
        except redis.RedisError as error:
            sent.error = error

    def _reply(self, sent: PendingReply) -> Any:
        link = self._links.get(sent.url)
        if link is not None:
            link.read_until(sent)
        if sent.error is not None:
            raise sent.error
        return sent.reply

    def _linked(self, url: str) -> Pipeline:
        if url not in self._links:
            opened = client(
                url, self.timeout, _FAST_CONNECT_TIMEOUT if self.fail_fast_for else TIMEOUT
            )
            link = Pipeline(opened)
            try:
                nodes_of(self.url).check(opened)
            except redis.RedisError:
                link.close()
                raise
            self._links[url] = link
        return self._links[url]

    def _follows(self, error: redis.RedisError, sent: PendingReply) -> bool:
        """Send a command to the node that another one named for it; return False if none did."""
        if not isinstance(error, redis.exceptions.AskError) or sent.redirects >= _MAX_REDIRECTS:
            return False
        nodes: Nodes = nodes_of(self.url)
        url = nodes.at(error.host, error.port, sent.url)
        if url is None:
            return False
        sent.redirects += 1
        if isinstance(error, redis.exceptions.MovedError):
            self.note_failure(sent.url)
            nodes.moved(error.slot_id, url)
            self._transmit(sent)
        else:
            self._transmit(sent, asked=url)
        return True

    def _check_retry(self, error: redis.RedisError, sent: PendingReply, began: float) -> str:
        """Return why the command should be sent again; raise the named error if it should not."""
        named = translated(error, self.url)
        is_replaced = self._links.get(sent.url) not in (None, sent.link)
        if isinstance(named, ReadTooLarge) and not is_replaced:
            self._close(sent.url)  # the rest of the reply is still on its way
        if not isinstance(named, Unavailable):
            raise named from None
        kind = failure_kind(error)
        self.retries[kind] += 1
        self.trouble = still(self.trouble, str(named))
        sent.redirects = 0
        if kind != "tryagain":  # its slot is being moved; that concerns no other command
            self.note_failure(sent.url)
            if not is_replaced:
                # A new connection: a cut reply may still be on its way on the old one.
                self._close(sent.url)
            health = NodeHealth.GOOD if is_replaced else _health_after(error)
            nodes_of(self.url).failed(sent.url, health)
        if self.stop.requested and (self.retry_timeout is not None or self.stop.overdue):
            raise Stopped("stopped while Redis did not answer") from None
        is_over = self.retry_timeout is not None and time.monotonic() - began >= self.retry_timeout
        if sent.most_cuts is not None and sent.cuts >= (1 if is_over else sent.most_cuts):
            raise ReadCut(str(named)) from None
        if is_over:
            sent.is_raised = True
            raise named from None
        return str(named)


class _PassedOver(redis.ConnectionError):
    """A command was not sent, because of the health of its server a moment ago."""


def _check_health(health: NodeHealth, sent: PendingReply) -> None:
    """Raise if a server cannot run a command now, as a command found a moment ago."""
    if health is NodeHealth.SILENT:
        raise _PassedOver("it did not answer a moment ago")
    if health is NodeHealth.NO_REPLICAS and sent.replicas:
        raise _PassedOver("NOREPLICAS: too few replicas acknowledged a write a moment ago")


def _health_after(error: redis.RedisError) -> NodeHealth:
    """Return the health of a server that answered with an error, or did not answer."""
    if isinstance(error, _PassedOver):
        return NodeHealth.GOOD  # nothing new
    if isinstance(error, Unacknowledged):
        return NodeHealth.NO_REPLICAS
    is_silent = isinstance(error, redis.ConnectionError | redis.TimeoutError) and not isinstance(
        error, redis.exceptions.BusyLoadingError
    )
    return NodeHealth.SILENT if is_silent else NodeHealth.GOOD
