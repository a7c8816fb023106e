"""One connection to Redis: no hidden retries, a named error for each failure, one retry loop."""

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import redis
import structlog
from redis.backoff import NoBackoff
from redis.retry import Retry

from workers.broker.backoff import delays
from workers.broker.pipeline import Argument, Pipeline, Sent
from workers.broker.redis_errors import UnknownScript, kind_of, translated
from workers.broker.reply_limit import LimitedParser
from workers.broker.script import Script
from workers.config.redis_url import check_url, unusable
from workers.errors import ReadCut, ReadTooLarge, Stopped, Unavailable
from workers.stop import Stop
from workers.trouble import Trouble, still

TIMEOUT = 5.0
"""Seconds without a reply after which the connection counts as dead: far above network latency."""

log = structlog.get_logger("online_svm.redis")


def client(url: str, timeout: float = TIMEOUT) -> redis.Redis:
    """Return a client with one connection, unparsed RESP2 replies and no retries of its own.

    redis-py 8 would send a write again after a lost reply, and it parses replies differently under
    RESP3. Only the loop here may repeat a command.

    Raises
    ------
    BadConfiguration
        If the URL cannot be used; see `check_url`.
    """
    verified = check_url(url)
    try:
        connected = redis.Redis.from_url(
            url,
            protocol=2,
            decode_responses=False,
            single_connection_client=True,
            retry=Retry(NoBackoff(), 0),
            retry_on_timeout=False,
            socket_timeout=timeout,
            socket_connect_timeout=min(timeout, TIMEOUT),
            health_check_interval=0,
            parser_class=LimitedParser,
            **verified,
        )
    except ValueError:
        raise unusable(url) from None
    names = ("XREAD", "XREADGROUP", "XRANGE", "XREVRANGE", "HGETALL", "INFO", "TYPE", "SCAN", "SET")
    for command in names:
        connected.set_response_callback(command, _unparsed)
    return connected


class Connection:
    """Sends commands to Redis, and sends them again after errors that may pass.

    A command may run twice, because a reply can be lost. So every command must be idempotent.

    Parameters
    ----------
    url : str
    stop : Stop
        After a stop is requested, waiting ends with `Stopped`.
    patience : float or None
        Seconds of retries before `Unavailable`; with None, retries go on until a stop is requested.
    timeout : float
        Seconds for one reply.

    Attributes
    ----------
    failures : int
        Failures of the connection so far. After one, Redis may have been restarted.
    retries : Counter of str
        The same failures by kind; see `redis_errors.kind_of`.
    trouble : Trouble or None
        Why the last attempt failed; None once a reply came.
    """

    def __init__(
        self, url: str, stop: Stop, patience: float | None = 0.0, timeout: float = TIMEOUT
    ) -> None:
        self.url, self.stop, self.patience, self.timeout = url, stop, patience, timeout
        self.failures = 0
        self.retries: Counter[str] = Counter()
        self.trouble: Trouble | None = None
        self._pipeline: Pipeline | None = None

    def call(
        self,
        *command: Argument,
        name: str = "",
        limit: int | None = None,
        most_cuts: int | None = None,
    ) -> Any:
        """Return the reply to a command. `name` names its failpoints; the default is the command.

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
        return self.receive(self.send(*command, name=name, limit=limit, most_cuts=most_cuts))

    def call_all(self, commands: Iterable[Sequence[Argument]]) -> list[Any]:
        """Return the replies to commands, all sent before the first reply is read; see `call`."""
        return [self.receive(sent) for sent in [self.send(*command) for command in commands]]

    def send(
        self,
        *command: Argument,
        name: str = "",
        limit: int | None = None,
        most_cuts: int | None = None,
    ) -> Sent:
        """Send a command; `receive` returns its reply later, or raises its error."""
        name = name or str(command[0]).lower()
        sent = Sent(command, name, limit=limit, most_cuts=most_cuts)
        self._transmit(sent)
        return sent

    def spin(self) -> None:
        """Poll for the next reply briefly, so that the caller need not sleep for a short wait."""
        if self._pipeline is not None:
            self._pipeline.spin()

    def receive(self, sent: Sent) -> Any:
        """Return the reply to a command that `send` sent; send it again after errors that may pass.

        Raises
        ------
        ReadTooLarge, Unavailable, Stopped, AccessDenied, WrongKeyType, WorkerError
            As `call`.
        """
        began = time.monotonic()
        for delay in delays():
            try:
                reply = self._reply(sent)
            except redis.RedisError as error:
                reason = self._check_retry(error, sent, began)
            else:
                self.trouble = None
                return reply
            log.warning(
                "redis refuses or does not answer; trying again",
                command=sent.command[0],
                after=delay,
                reason=reason,
            )
            if self.stop.wait(delay):
                time.sleep(delay)  # the last attempts of a graceful stop are spaced as well
            self._transmit(sent)
        raise AssertionError("the delays never end")

    def evaluate(self, script: Script, keys: Sequence[str], args: Sequence[Argument]) -> Any:
        """Run a script by its hash; send its text if Redis does not know it."""
        return self.receive_script(script, self.send_script(script, keys, args))

    def send_script(self, script: Script, keys: Sequence[str], args: Sequence[Argument]) -> Sent:
        """Send a call of a script, as `send`."""
        return self.send("EVALSHA", script.sha1, len(keys), *keys, *args, name=script.name)

    def receive_script(self, script: Script, sent: Sent) -> Any:
        """Return the reply to a call of a script, as `receive`."""
        try:
            return self.receive(sent)
        except UnknownScript:
            return self.call("EVAL", script.text, *sent.command[2:], name=script.name)

    def close(self) -> None:
        """Close the connection."""
        if self._pipeline is not None:
            self._pipeline.close()
            self._pipeline = None

    def _transmit(self, sent: Sent) -> None:
        try:
            self._connected().send(sent)
        except redis.RedisError as error:
            sent.error = error

    def _reply(self, sent: Sent) -> Any:
        if self._pipeline is not None:
            self._pipeline.read_until(sent)
        if sent.error is not None:
            raise sent.error
        return sent.reply

    def _connected(self) -> Pipeline:
        if self._pipeline is None:
            self._pipeline = Pipeline(client(self.url, self.timeout))
        return self._pipeline

    def _check_retry(self, error: redis.RedisError, sent: Sent, began: float) -> str:
        """Return why the command should be sent again; raise the named error if it should not."""
        named = translated(error, self.url)
        if isinstance(named, ReadTooLarge):
            self.close()  # the rest of the reply is still on its way
        if not isinstance(named, Unavailable):
            raise named from None
        self.failures += 1
        self.retries[kind_of(error)] += 1
        self.trouble = still(self.trouble, str(named))
        # A new connection: a cut reply may still be on its way on the old one.
        self.close()
        if self.stop.requested and (self.patience is not None or self.stop.overdue):
            raise Stopped("stopped while Redis did not answer") from None
        is_over = self.patience is not None and time.monotonic() - began >= self.patience
        if sent.most_cuts is not None and sent.cuts >= (1 if is_over else sent.most_cuts):
            raise ReadCut(str(named)) from None
        if is_over:
            raise named from None
        return str(named)


def _unparsed(reply: Any, **_options: Any) -> Any:
    return reply
