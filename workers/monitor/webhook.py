"""Post each alarm of a feed to a URL, at least once, in a thread of its own.

The queue is the stream `alarms`; the position in it is a consumer group, which Redis keeps. An
entry is acknowledged after all of its alarms were taken. So a worker that dies, or a receiver that
is away for days, loses none that `alarms` still holds, and the memory of this process holds one
entry at a time. The worker's own thread does not know of any of it.
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import structlog

from workers.admin.answers import answer
from workers.broker.backoff import delays
from workers.broker.batch_size import Entry
from workers.broker.connection import Connection
from workers.errors import StateLost, WorkerError
from workers.feed.keys import FeedKeys
from workers.monitor.silences import Silences
from workers.monitor.webhook_post import Delivery, PostFailed, Receiver, delivery
from workers.stop import Stop

GROUP = "osvm-webhook"
"""Consumer group of `alarms`."""

CONSUMER = "webhook"
"""One name for every process, so that the next one finds what the last one did not finish."""

BLOCK = 1000
"""Milliseconds that a read waits; an alarm ends the wait."""

FIRST, CAP = 0.5, 300.0
"""Seconds before the second attempt, about, and between attempts at most."""

log = structlog.get_logger("online_svm.webhook")


class Webhook:
    """Delivers the alarms of one feed while this process runs it.

    Parameters
    ----------
    url, feed : str
        Of Redis, and the feed's name.
    receiver : Receiver
    is_at_work : callable
        Returns whether this worker holds the feed; a standby leaves the alarms to the other.
    ended : Event
        Set to end.
    first, cap : float
        Seconds before the second attempt, about, and between attempts at most.
    block : int
        Milliseconds that a read waits for an alarm.

    Attributes
    ----------
    delivered, silenced, lost : int
        Alarms that were taken, that came while the feed was silenced, and entries that were trimmed
        before they were delivered.
    failures : Counter of str
        Failed attempts by reason.
    """

    def __init__(
        self,
        url: str,
        feed: str,
        receiver: Receiver,
        is_at_work: Callable[[], bool],
        ended: threading.Event,
        first: float = FIRST,
        cap: float = CAP,
        block: int = BLOCK,
    ) -> None:
        self._keys, self._receiver = FeedKeys(feed), receiver
        self._redis = Connection(url, Stop(), timeout=block / 1000 + 5.0)
        self._silences = Silences(self._redis, self._keys)
        self._is_at_work, self._ended = is_at_work, ended
        self._first, self._cap, self._block = first, cap, block
        self._begin = _cursor(url, self._keys)
        self._resumes = True
        self.delivered = self.silenced = self.lost = 0
        self.failures: Counter[str] = Counter()

    def run(self) -> None:
        """Deliver alarms until the end; what Redis refuses or does not answer is tried again."""
        waits = self._delays()
        while not self._ended.is_set():
            try:
                if self._is_at_work():
                    self._deliver_next()
                else:
                    self._ended.wait(self._block / 1000)
                waits = self._delays()
            except WorkerError as error:
                log.warning("alarms cannot be read; trying again", reason=str(error))
                self._resumes = True
                self._ended.wait(next(waits))
        self._redis.close()

    def _deliver_next(self) -> None:
        """Deliver the alarms of the next entry; return after a wait if there is none."""
        if self._resumes:
            if not self._has_group():
                self._ended.wait(self._block / 1000)
                return
            # First what an earlier process, or attempt, did not finish.
            found = self._read("0")
            self._resumes = bool(found)
        else:
            found = self._read(">")
        for entry, fields in found:
            if fields:
                is_done = self._deliver(entry.decode(), _alarms_of((entry, fields)))
            else:
                self.lost += 1
                is_done = True
                log.warning("an alarm was trimmed before it was delivered", entry=entry)
            if is_done:
                self._redis.call("XACK", self._keys.alarms, GROUP, entry)

    def _read(self, after: str) -> list[Any]:
        """Return the next entry, or none after a wait."""
        reply = self._redis.call(
            "XREADGROUP", "GROUP", GROUP, CONSUMER, "COUNT", 1, "BLOCK", self._block,
            "STREAMS", self._keys.alarms, after,
        )  # fmt: skip
        found: list[Any] = reply[0][1] if reply else []
        return found

    def _deliver(self, entry: str, alarms: Sequence[Any]) -> bool:
        """Post the alarms of an entry; return whether all were taken, or silenced."""
        for number, alarm in enumerate(alarms):
            sent = delivery(self._keys.feed, entry, number, alarm)
            if self._silences.hold():
                self.silenced += 1
                log.info("an alarm is not posted: the feed is silenced", alarm=sent.key)
            elif not self._post(sent):
                return False
        return True

    def _post(self, sent: Delivery) -> bool:
        """Post until it is taken; return False if the end comes first."""
        for wait in self._delays():
            try:
                self._receiver.post(sent)
            except PostFailed as error:
                self.failures[str(error)] += 1
                log.warning(
                    "an alarm was not taken; trying again",
                    alarm=sent.key, host=self._receiver.host, reason=str(error), after=wait,
                )  # fmt: skip
                if self._ended.wait(wait) or not self._is_at_work():
                    self._resumes = True
                    return False
            else:
                self.delivered += 1
                return True
        raise AssertionError("the delays never end")

    def _has_group(self) -> bool:
        """Make the group if there is none; return False if there is no feed yet."""
        keys = self._keys
        if not self._redis.call("EXISTS", keys.state):
            return False
        try:
            self._redis.call("XGROUP", "CREATE", keys.alarms, GROUP, self._begin, "MKSTREAM")
        except WorkerError as error:
            if "BUSYGROUP" not in str(error):
                raise
        return True

    def _delays(self) -> Iterator[float]:
        return delays(first=self._first, cap=self._cap)


def _alarms_of(entry: Entry) -> Sequence[Any]:
    """Return the alarms of an entry; none where another program wrote it."""
    try:
        alarms = answer(entry).get("alarms")
    except StateLost:
        alarms = None
    if isinstance(alarms, list):
        return alarms
    log.warning("an entry of alarms is of another program; it is passed over", entry=entry[0])
    return []


def _cursor(url: str, keys: FeedKeys) -> bytes:
    """Return up to where the feed was answered before; alarms after it are delivered.

    A group that exists goes on from its own position. Where Redis does not say, every alarm that is
    kept counts as new.
    """
    connection = Connection(url, Stop(), timeout=1.0)
    try:
        return connection.call("HGET", keys.state, "cursor") or b"0-0"
    except WorkerError:
        return b"0-0"
    finally:
        connection.close()


@contextmanager
def posting(
    url: str, feed: str, receiver: Receiver | None, is_at_work: Callable[[], bool]
) -> Iterator[Webhook | None]:
    """Deliver alarms within the block, if there is a receiver.

    At the end a request under way is not waited for: the next process repeats it.
    """
    if receiver is None:
        yield None
        return
    ended = threading.Event()
    webhook = Webhook(url, feed, receiver, is_at_work, ended)
    threading.Thread(target=webhook.run, name="webhook", daemon=True).start()
    try:
        yield webhook
    finally:
        ended.set()
