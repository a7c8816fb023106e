"""One connection to Redis: no hidden retries, a named error for each failure, one retry loop.

On a Redis Cluster it is one connection to each node that its commands are about. The node of a slot
may change. A node that has a slot no more, or not yet, names another, which is followed. If a node
does not answer, the others are asked which node has the slot.
"""

import time
from collections import Counter
from collections.abc import Container, Iterable, Sequence
from typing import Any

import redis

from workers.broker.backoff import delays
from workers.broker.client import TIMEOUT, client
from workers.broker.nodes import NodeHealth, Nodes, nodes_of
from workers.broker.pipeline import Argument, Pipeline, Sent, Unacknowledged
from workers.broker.redis_errors import UnknownScript, kind_of, translated
from workers.broker.script import Script
from workers.errors import ReadCut, ReadTooLarge, Stopped, Unavailable
from workers.log import Logger
from workers.stop import Stop
from workers.trouble import Trouble, still

_REDIRECTS = 5
"""Times that a command follows from one node of a cluster to the next, before it waits."""

_HASTY_CONNECT = 1.0
"""Seconds for a connection to be made, where the commands for other nodes wait for that."""

log = Logger("online_svm.redis")


class Connection:
    """Sends commands to Redis, and sends them again after errors that may pass.

    A command may run twice, because a reply can be lost. So every command must be idempotent.
    Commands on different nodes may run in another order than they were sent in.

    Parameters
    ----------
    url : str
        Of one server, or of several; see `redis_servers`.
    stop : Stop
        After a stop is requested, waiting ends with `Stopped`.
    patience : float or None
        Seconds of retries before `Unavailable`; with None, retries go on until a stop is requested.
    timeout : float
        Seconds for one reply.
    haste : float
        Seconds for which a node of a cluster that did not answer is passed over, as one that does
        not answer: so the commands for other nodes wait for it once, and not each time.

    Attributes
    ----------
    failures : int
        Failures of the connection so far, and moves of a slot. After one, Redis may have been
        restarted, or another server may have taken over that lacks the last writes.
    retries : Counter of str
        The same failures by kind; see `redis_errors.kind_of`.
    trouble : Trouble or None
        Why the last attempt failed; None once a reply came.
    """

    def __init__(
        self,
        url: str,
        stop: Stop,
        patience: float | None = 0.0,
        timeout: float = TIMEOUT,
        haste: float = 0.0,
    ) -> None:
        self.url, self.stop, self.patience, self.timeout = url, stop, patience, timeout
        self.haste = haste
        self.failures = 0
        self._failed: Counter[str] = Counter()  # by the URL of the server
        self.retries: Counter[str] = Counter()
        self.trouble: Trouble | None = None
        self._warned = 0.0  # when it was first said that Redis does not answer; 0 once it does
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

        A command without a key goes to the server of `key`.

        Raises
        ------
        ReadTooLarge
            If the reply has more than `limit` bytes.
        ReadCut
            If the connection was closed `most_cuts` times before the reply was complete.
        Unavailable
            If Redis did not answer within the patience.
        Stopped
            If a stop was requested while waiting.
        AccessDenied, WrongKeyType, WorkerError
            If Redis refused for good.
        """
        sent = self.send(*command, name=name, limit=limit, most_cuts=most_cuts, key=key)
        return self.receive(sent)

    def call_all(self, commands: Iterable[Sequence[Argument]]) -> list[Any]:
        """Return the replies to commands, all sent before the first reply is read; see `call`."""
        return [self.receive(sent) for sent in [self.send(*command) for command in commands]]

    def send_all(self, commands: Iterable[Sequence[Argument]]) -> list[Sent]:
        """Send a few small commands, as `send`, with one call of the system where possible."""
        if self._last is None:
            return [self.send(*command) for command in commands]
        with self._last.together():
            return [self.send(*command) for command in commands]

    def send(
        self,
        *command: Argument,
        name: str = "",
        limit: int | None = None,
        most_cuts: int | None = None,
        key: str | None = None,
        replicas: int = 0,
        is_large: bool = False,
    ) -> Sent:
        """Send a command; `receive` returns its reply later, or raises its error.

        With `replicas` it has a reply once so many replicas acknowledged what it wrote. Of one that
        `is_large` the arguments are not copied; they may be views of memory.
        """
        name = name or str(command[0]).lower()
        sent = Sent(
            command, name, limit=limit, most_cuts=most_cuts, key=key, is_large=is_large,
            replicas=replicas,
        )  # fmt: skip
        self._transmit(sent)
        return sent

    def descriptor(self, sent: Sent) -> int | None:
        """Return what can be read once a reply arrives, or the connection breaks; None if broken.

        Where the reply was read already, nothing more may arrive.
        """
        link = self._links.get(sent.url)
        return None if link is None or sent.error is not None else link.descriptor

    def has_reply(self, sent: Sent) -> bool:
        """Return whether `receive` need not wait: the reply was read, or there will be none."""
        link = self._links.get(sent.url)
        return link is None or not link.awaits(sent)

    @property
    def descriptors(self) -> list[int]:
        """What can be read once one of the replies arrives that were not read yet."""
        found = [link.descriptor for link in self._links.values() if link.is_awaiting]
        return [descriptor for descriptor in found if descriptor is not None]

    def read_arrived(self, readable: Container[int]) -> None:
        """Read the replies that have arrived; `receive` returns each.

        Parameters
        ----------
        readable : container of int
            Those of `descriptors` that can be read.
        """
        for link in self._links.values():
            if link.is_awaiting and link.descriptor in readable:
                link.read_arrived()

    def receive(self, sent: Sent) -> Any:
        """Return the reply to a command that `send` sent; send it again after errors that may pass.

        After `Unavailable` it may be called again, which sends the command again.

        Raises
        ------
        ReadTooLarge, Unavailable, Stopped, AccessDenied, WrongKeyType, WorkerError
            As `call`.
        """
        began, pauses = time.monotonic(), delays()
        if sent.is_told:
            sent.is_told = False
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
                    self._tell_answer()
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

    def _tell_answer(self) -> None:
        away = round(time.monotonic() - self._warned, 1)
        log.info("redis answers again", after=away)
        self._warned = 0.0

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
    ) -> Sent:
        """Send a call of a script, as `send`."""
        called = ("EVALSHA", script.sha1, len(keys), *keys, *args)
        return self.send(*called, name=script.name, replicas=replicas, is_large=is_large)

    def receive_script(self, script: Script, sent: Sent) -> Any:
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
        """Return where a key is, and the failures there: equal ones mean that none came between.

        On a cluster they are those of the node of the key; else all of them.
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

    def _transmit(self, sent: Sent, asked: str | None = None) -> None:
        """Send a command to its server; or to the one that a node named for it alone."""
        sent.is_asking, sent.url = asked is not None, ""
        nodes = nodes_of(self.url)
        try:
            sent.url = asked or nodes.url_of(sent.command, sent.key)
            if self.haste:
                _check_health(nodes.health(sent.url, self.haste), sent)
            self._last = self._linked(sent.url)
            self._last.send(sent)
        except redis.RedisError as error:
            sent.error = error

    def _reply(self, sent: Sent) -> Any:
        link = self._links.get(sent.url)
        if link is not None:
            link.read_until(sent)
        if sent.error is not None:
            raise sent.error
        return sent.reply

    def _linked(self, url: str) -> Pipeline:
        if url not in self._links:
            opened = client(url, self.timeout, _HASTY_CONNECT if self.haste else TIMEOUT)
            link = Pipeline(opened)
            try:
                nodes_of(self.url).check(opened)
            except redis.RedisError:
                link.close()
                raise
            self._links[url] = link
        return self._links[url]

    def _follows(self, error: redis.RedisError, sent: Sent) -> bool:
        """Send a command to the node that another one named for it; return False if none did."""
        if not isinstance(error, redis.exceptions.AskError) or sent.redirects >= _REDIRECTS:
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

    def _check_retry(self, error: redis.RedisError, sent: Sent, began: float) -> str:
        """Return why the command should be sent again; raise the named error if it should not."""
        named = translated(error, self.url)
        is_replaced = self._links.get(sent.url) not in (None, sent.link)
        if isinstance(named, ReadTooLarge) and not is_replaced:
            self._close(sent.url)  # the rest of the reply is still on its way
        if not isinstance(named, Unavailable):
            raise named from None
        kind = kind_of(error)
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
        if self.stop.requested and (self.patience is not None or self.stop.overdue):
            raise Stopped("stopped while Redis did not answer") from None
        is_over = self.patience is not None and time.monotonic() - began >= self.patience
        if sent.most_cuts is not None and sent.cuts >= (1 if is_over else sent.most_cuts):
            raise ReadCut(str(named)) from None
        if is_over:
            sent.is_told = True
            raise named from None
        return str(named)


class _PassedOver(redis.ConnectionError):
    """A command was not sent, because of the health of its server a moment ago."""


def _check_health(health: NodeHealth, sent: Sent) -> None:
    """Raise if a server cannot do what a command needs."""
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
