"""Publish states for scores, without delaying answers.

A state is published after a commit: when a new model answers, or `every` further examples are
learned. Its bytes are sent behind that commit, and the reply is read with later replies; so
publishing costs the time to serialize the state, about a millisecond, and to send it. After a
publication that took t seconds the next one starts 20 t later: publishing takes at most a twentieth
of the worker's time. A limit of ten publications a second bounds the memory of replaced states.
"""

import time
from collections.abc import Callable

from online_svm.predictor.online_predictor import OnlinePredictor
from workers.broker.pipeline import PendingReply
from workers.broker.store import Store
from workers.errors import InvalidPublication
from workers.feed.position import Position
from workers.feed.state import Publication
from workers.log import Logger

MAX_TIME_SHARE = 0.05  # largest fraction of the worker's time for publishing
PAUSE_SECONDS = 0.1  # smallest time between two publications

PART_BYTES = 1 << 20
"""Largest number of bytes under one key: other clients wait while Redis receives a part."""

log = Logger("online_svm.worker")


class Publisher:
    """Publishes states of one feed, one at a time.

    States of the same model are `every` learned examples apart; 0 publishes nothing.
    """

    def __init__(
        self,
        store: Store,
        every: int,
        clock: Callable[[], float] = time.perf_counter,
        pause: float = PAUSE_SECONDS,
    ) -> None:
        self._store, self._every, self._clock = store, every, clock
        self._pause = pause
        self._not_before = -float("inf")
        self._newest: tuple[int, int] | None = None  # model, and n // every, when last published
        self._sent: tuple[Publication, PendingReply] | None = None
        self._stored: Publication | None = None  # the newest in Redis, if `_is_stored_known`
        self._is_stored_known = False

    def offer(self, predictor: OnlinePredictor, position: Position, epoch: int) -> None:
        """Publish a predictor's state, if due; `position` is the end of the last sent commit."""
        if not self._every or predictor.n == 0:
            return
        self._check_reply()
        model = 0 if predictor.active is None else predictor.active.version
        due = (model, predictor.n // self._every)
        began = self._clock()
        if due == self._newest or self._sent is not None or began < self._not_before:
            return
        if not self._is_stored_known:
            self._stored, self._is_stored_known = self._read_stored(), True
        data = predictor.frozen().snapshot()
        new = Publication.of(position, data, PART_BYTES)
        sent = self._store.publish(new, data, epoch, self._stored)
        self._sent, self._newest = (new, sent), due
        self._not_before = began + max(self._pause, (self._clock() - began) / MAX_TIME_SHARE)

    def _check_reply(self) -> None:
        """Check the reply to the last publication, if it has been read."""
        if self._sent is None:
            return
        new, sent = self._sent
        if sent.reply is None and sent.error is None:
            return
        self._sent = None
        if sent.reply == 1:
            self._stored = new
            return
        # The connection broke, Redis is out of memory, or the commit was refused or sent again. The
        # next offer publishes, after it has read again what is stored.
        reason = "its commit came later" if sent.error is None else str(sent.error)
        log.info("a state was not published; a newer one follows", n=new.n, reason=reason)
        self._is_stored_known, self._newest = False, None

    def _read_stored(self) -> Publication | None:
        try:
            return self._store.publication()
        except InvalidPublication as error:
            log.warning("the published state cannot be used; it is replaced", reason=str(error))
            return None
