"""Publish states for scorers; no answer waits for it.

A state is published where a commit ends: when a new model answers, and when `every` further
examples were learned. Its bytes are sent behind that commit, and the reply is read with later
replies. So publishing costs the time to save the state, about a millisecond, and to send it. After
a publication that took t seconds the next one begins 20 t later, so it takes a twentieth of the
worker's time at most. Ten a second at most bound what Redis holds of replaced states. A state that
falls due meanwhile is published then, newer.
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

MAX_TIME_SHARE = 0.05
"""Largest part of the worker's time that goes into publishing."""

PAUSE_SECONDS = 0.1
"""Least seconds between two publications."""

PART_BYTES = 1 << 20
"""Largest number of bytes under one key: another client waits for about a part at most."""

log = Logger("online_svm.worker")


class Publisher:
    """Publishes the states of one feed, one at a time.

    Between two states of one model are `every` learned examples; 0 publishes nothing.
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
        self._newest: tuple[int, int] | None = None  # model, and how often `every` had passed
        self._sent: tuple[Publication, PendingReply] | None = None
        self._before: Publication | None = None  # the newest in Redis, once that is known
        self._is_known = False

    def offer(self, predictor: OnlinePredictor, position: Position, epoch: int) -> None:
        """Publish the state of a predictor, at the end of the last sent commit, if one is due."""
        if not self._every or predictor.n == 0:
            return
        self._look_at_reply()
        model = 0 if predictor.active is None else predictor.active.version
        due = (model, predictor.n // self._every)
        began = self._clock()
        if due == self._newest or self._sent is not None or began < self._not_before:
            return
        if not self._is_known:
            self._before, self._is_known = self._found(), True
        data = predictor.frozen().snapshot()
        new = Publication.of(position, data, PART_BYTES)
        sent = self._store.publish(new, data, epoch, self._before)
        self._sent, self._newest = (new, sent), due
        self._not_before = began + max(self._pause, (self._clock() - began) / MAX_TIME_SHARE)

    def _look_at_reply(self) -> None:
        """Learn what became of the last publication, if its reply was read by now."""
        if self._sent is None:
            return
        new, sent = self._sent
        if sent.reply is None and sent.error is None:
            return
        self._sent = None
        if sent.reply == 1:
            self._before = new
            return
        # The connection broke, Redis has no memory left, or the commit before was refused or sent
        # again. The next offer publishes; what is in Redis is looked up again.
        reason = "its commit came later" if sent.error is None else str(sent.error)
        log.info("a state was not published; a newer one follows", n=new.n, reason=reason)
        self._is_known, self._newest = False, None

    def _found(self) -> Publication | None:
        """Return the newest state in Redis, which an earlier worker published."""
        try:
            return self._store.publication()
        except InvalidPublication as error:
            log.warning("the published state cannot be used; it is replaced", reason=str(error))
            return None
