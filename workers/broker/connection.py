"""A connection to Redis: one retry loop, no hidden retries, a WorkerError for each failure.

On a Redis Cluster it keeps one connection to each node. If a slot has moved, its old node redirects
the command to the new one. If a node does not answer, the slot table is read from another.
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
"""Redirects of a command between nodes of a cluster, before it is retried after a pause."""

_FAST_CONNECT_TIMEOUT = 1.0
"""Seconds to connect to a node of a cluster: commands for other nodes wait meanwhile."""

log = Logger("online_svm.redis")


class Connection(Keys):
    """Sends commands to Redis, and retries them after transient errors.

    A reply can be lost, so a command may run twice and must be idempotent. Different nodes may run
    commands in another order than they were sent.

    Parameters
    ----------
    stop : Stop
        A requested stop ends the retries with `Stopped`.
    retry_timeout : float or None
        Seconds of retries before `Unavailable`; None retries until a stop is requested.
    timeout : float
        Seconds to wait for one reply.
    fail_fast_for : float
        On a cluster: seconds after a node did not answer during which its commands fail at once,
        so that commands for other nodes do not wait for it again.

    Attributes
    ----------
    failures, retries : int, Counter of str
        Connection failures and moved slots so far; retries by `client.failure_kind`. After a
        failure, Redis may have restarted, or a replica without the last writes may be primary.
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
        self._silent_since = 0.0  # by `time.monotonic`; 0 while Redis answers
        self._pipelines: dict[str, Pipeline] = {}
        self._last: Pipeline | None = None

    def call(
        self,
        *command: Argument,
        name: str = "",
        limit: int | None = None,
        max_cuts: int | None = None,
        key: str | None = None,
    ) -> Any:
        """Return the reply to a command; its failpoints are named `name`, or as the command.

        A command without a key goes to the server of `key`. Raises ReadTooLarge if the reply has
        more than `limit` bytes; ReadCut if the connection closed `max_cuts` times within the reply;
        Unavailable after `retry_timeout`; Stopped after a stop; AccessDenied, WrongKeyType or
        another WorkerError after a permanent refusal.
        """
        sent = self.send(*command, name=name, limit=limit, max_cuts=max_cuts, key=key)
        return self.receive(sent)

    @override
    def value(self, key: str, limit: int | None = None) -> bytes | None:
        """Return a string of at most `limit` bytes; None if it does not exist."""
        found: bytes | None = self.call("GET", key, limit=limit)
        return found

    @override
    def call_all(self, commands: Iterable[Sequence[Argument]]) -> list[Any]:
        return [self.receive(sent) for sent in [self.send(*command) for command in commands]]

    def send_all(self, commands: Iterable[Sequence[Argument]]) -> list[PendingReply]:
        """Send small commands to one server in one system call.

        If one cannot be sent, the later ones fail at once instead of waiting for the server.
        """
        found: list[PendingReply] = []
        with nullcontext() if self._last is None else self._last.batched():
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
        max_cuts: int | None = None,
        key: str | None = None,
        replicas: int = 0,
        is_large: bool = False,
    ) -> PendingReply:
        """Send a command; `receive` returns its reply or raises its error.

        The reply counts once `replicas` replicas acknowledged the write. With `is_large` the
        arguments, which may be memory views, are not copied.
        """
        name = name or str(command[0]).lower()
        sent = PendingReply(
            command, name, limit=limit, max_cuts=max_cuts, key=key, is_large=is_large,
            replicas=replicas,
        )  # fmt: skip
        self._transmit(sent)
        return sent

    def descriptor(self, sent: PendingReply) -> int | None:
        """Return the descriptor on which a reply arrives; None if the connection broke."""
        pipeline = self._pipelines.get(sent.url)
        return None if pipeline is None or sent.error is not None else pipeline.descriptor

    def has_reply(self, sent: PendingReply) -> bool:
        """Return whether `receive` returns at once: the reply was read, or there will be none."""
        pipeline = self._pipelines.get(sent.url)
        return pipeline is None or not pipeline.awaits(sent)

    @property
    def descriptors(self) -> list[int]:
        """The descriptors on which replies are awaited."""
        found = [
            pipeline.descriptor for pipeline in self._pipelines.values() if pipeline.is_awaiting
        ]
        return [descriptor for descriptor in found if descriptor is not None]

    def read_arrived(self, readable: Container[int]) -> None:
        """Read the replies that arrived on `readable` descriptors; `receive` returns them later."""
        for pipeline in self._pipelines.values():
            if pipeline.is_awaiting and pipeline.descriptor in readable:
                pipeline.read_arrived()

    def receive(self, sent: PendingReply) -> Any:
        """Return the reply to a sent command; send it again after transient errors.

        A further call after `Unavailable` sends the command again. Raises as `call`.
        """
        began, pauses = time.monotonic(), delays()
        if sent.has_failed:
            sent.has_failed = False
            self._transmit(sent)
        while True:
            try:
                reply = self._reply(sent)
            except redis.RedisError as error:
                if self._follow_redirect(error, sent):
                    continue
                reason = self._check_retry(error, sent, began)
            else:
                self.trouble = None
                if self._silent_since:
                    log.info(
                        "redis answers again", after=round(time.monotonic() - self._silent_since, 1)
                    )
                    self._silent_since = 0.0
                return reply
            delay = next(pauses)
            self._silent_since = self._silent_since or time.monotonic()
            log.warning(
                "redis refuses or does not answer; trying again",
                command=sent.command[0],
                after=delay,
                reason=reason,
            )
            if self.stop.wait(delay):
                time.sleep(delay)  # once a stop is requested, `wait` returns at once
            self._transmit(sent)

    def evaluate(
        self, script: Script, keys: Sequence[str], args: Sequence[Argument], replicas: int = 0
    ) -> Any:
        """Run a script by its hash, or by its text if Redis does not have it."""
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
        """Return the node of a key and that node's failures; without a cluster, None and all.

        If a later call returns the same, there was no failure in between.
        """
        node = nodes_of(self.url).node_of_key(key)
        return node, self.failures if node is None else self._failed[node]

    def note_failure(self, url: str) -> None:
        """Count a failure of another connection to the same servers."""
        self.failures += 1
        self._failed[url] += 1

    def close(self) -> None:
        """Close the connections."""
        for url in list(self._pipelines):
            self._close(url)

    def _close(self, url: str) -> None:
        pipeline = self._pipelines.pop(url, None)
        if pipeline is not None:
            pipeline.close()
        if self._last is pipeline:
            self._last = None

    def _transmit(self, sent: PendingReply, ask_url: str | None = None) -> None:
        """Send a command to its server, or to `ask_url` after an ASK redirect."""
        sent.is_ask, sent.url = ask_url is not None, ""
        nodes = nodes_of(self.url)
        try:
            sent.url = ask_url or nodes.url_of(sent.command, sent.key)
            if self.fail_fast_for:
                _check_health(nodes.health(sent.url, self.fail_fast_for), sent)
            self._last = self._pipeline(sent.url)
            self._last.send(sent)
        except redis.RedisError as error:
            sent.error = error

    def _reply(self, sent: PendingReply) -> Any:
        pipeline = self._pipelines.get(sent.url)
        if pipeline is not None:
            pipeline.read_until(sent)
        if sent.error is not None:
            raise sent.error
        return sent.reply

    def _pipeline(self, url: str) -> Pipeline:
        if url not in self._pipelines:
            connected = client(
                url, self.timeout, _FAST_CONNECT_TIMEOUT if self.fail_fast_for else TIMEOUT
            )
            pipeline = Pipeline(connected)
            try:
                nodes_of(self.url).check_role(connected)
            except redis.RedisError:
                pipeline.close()
                raise
            self._pipelines[url] = pipeline
        return self._pipelines[url]

    def _follow_redirect(self, error: redis.RedisError, sent: PendingReply) -> bool:
        """Send a redirected command to its new node; return whether there was a redirect."""
        if not isinstance(error, redis.exceptions.AskError) or sent.redirects >= _MAX_REDIRECTS:
            return False
        nodes: Nodes = nodes_of(self.url)
        url = nodes.redirect_url(error.host, error.port, sent.url)
        if url is None:
            return False
        sent.redirects += 1
        if isinstance(error, redis.exceptions.MovedError):
            self.note_failure(sent.url)
            nodes.note_moved(error.slot_id, url)
            self._transmit(sent)
        else:
            self._transmit(sent, ask_url=url)
        return True

    def _check_retry(self, error: redis.RedisError, sent: PendingReply, began: float) -> str:
        """Return why the command should be sent again; raise the WorkerError if it should not."""
        failure = translated(error, self.url)
        is_replaced = self._pipelines.get(sent.url) not in (None, sent.pipeline)
        if isinstance(failure, ReadTooLarge) and not is_replaced:
            self._close(sent.url)  # the rest of the reply may still arrive on this connection
        if not isinstance(failure, Unavailable):
            raise failure from None
        kind = failure_kind(error)
        self.retries[kind] += 1
        self.trouble = still(self.trouble, str(failure))
        sent.redirects = 0
        if kind != "tryagain":  # a moving slot concerns no other command
            self.note_failure(sent.url)
            if not is_replaced:
                self._close(sent.url)  # the rest of a cut reply may still arrive on it
            health = NodeHealth.GOOD if is_replaced else _health_after(error)
            nodes_of(self.url).note_failure(sent.url, health)
        if self.stop.requested and (self.retry_timeout is not None or self.stop.overdue):
            raise Stopped("stopped while Redis did not answer") from None
        is_over = self.retry_timeout is not None and time.monotonic() - began >= self.retry_timeout
        if sent.max_cuts is not None and sent.cuts >= (1 if is_over else sent.max_cuts):
            raise ReadCut(str(failure)) from None
        if is_over:
            sent.has_failed = True
            raise failure from None
        return str(failure)


class _NotSent(redis.ConnectionError):
    """A command was not sent because of the known health of its server."""


def _check_health(health: NodeHealth, sent: PendingReply) -> None:
    """Raise if a server with this health cannot run the command."""
    if health is NodeHealth.SILENT:
        raise _NotSent("it did not answer a moment ago")
    if health is NodeHealth.NO_REPLICAS and sent.replicas:
        raise _NotSent("NOREPLICAS: too few replicas acknowledged a write a moment ago")


def _health_after(error: redis.RedisError) -> NodeHealth:
    """Return the health of a server after an error."""
    if isinstance(error, _NotSent):
        return NodeHealth.GOOD  # nothing new to record
    if isinstance(error, Unacknowledged):
        return NodeHealth.NO_REPLICAS
    is_silent = isinstance(error, redis.ConnectionError | redis.TimeoutError) and not isinstance(
        error, redis.exceptions.BusyLoadingError
    )
    return NodeHealth.SILENT if is_silent else NodeHealth.GOOD
