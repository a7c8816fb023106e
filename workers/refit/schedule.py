"""Decide which request is computed next, and by which process of the pool.

Learners with requests take turns, round robin; the requests of a learner are computed in order, one
at a time, whenever a process is idle. So a learner with heavy refits delays each other learner by
at most one refit, however many requests it has. Fits of the memory's trees come after all refits.

A learner stays in the process that computed its last refit, where its kernel rows are. It moves to
an idle process only if its log is empty, so that no refit must be repeated there.
"""

import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import Future
from itertools import count
from operator import attrgetter
from typing import NamedTuple

from online_svm.config import PredictorConfig
from workers.errors import RefitFailed, Stopped, Trouble
from workers.refit.process import (
    CONFIG,
    FIT,
    FORGET,
    LOAD,
    SELECT,
    STATE,
    Message,
    RefitProcess,
    Reply,
)

MIN_LOG_BYTES_ALONE = 1 << 20
"""Log size in bytes from which the state of a learner that is alone in its process is fetched, if
the log is also larger than the state. Fetching a state costs about as much as sending it."""

MIN_LOG_BYTES_SHARED, LOG_SHARE_SHARED = 1 << 17, 0.25
"""The same for learners that share a process: log size in bytes, and as a fraction of the state.
The answering process keeps the logs of all feeds. With a full window the state is fetched at every
third refit, in about 2 % of the time."""

_KEYS = count()


class RefitObserver:
    """Ignores reports about refits; subclasses override the methods, which must return at once."""

    def refitted(self, seconds: float, waited: float) -> None:
        """Report the seconds that a refit computed, and that the feed waited for it."""

    def refits_fail(self, trouble: Trouble | None) -> None:
        """Report why refits fail; None if they work again."""


class LearnerRequest(NamedTuple):
    """A message for a learner, and the future of its reply."""

    message: Message
    reply: Future[Reply]


class PooledLearner:
    """A feed's learner: its requests, and the log from which another process rebuilds it.

    A result depends only on the last fetched state and the tasks since then, so a rebuilt learner
    continues bit for bit. Only the computing thread uses the log; the schedule's lock guards the
    rest.

    `is_background`: whether learners with refits go first. Fits of the memory's trees are requests
        of such a learner, which they do not change.
    """

    def __init__(
        self,
        config: PredictorConfig,
        state: bytes | None = None,
        observer: RefitObserver | None = None,
        wake: Callable[[], object] = lambda: None,
        *,
        is_background: bool = False,
    ) -> None:
        self.is_background = is_background
        self._config = config.model_dump_json().encode()
        key = str(next(_KEYS)).encode()
        self.select, self.forget = (SELECT, key), (FORGET, key)  # messages
        self.state = state  # last fetched, if any
        self.tasks: list[Message] = []  # the log: tasks computed since then
        self.observer, self.wake = observer or RefitObserver(), wake
        self.requests: deque[LearnerRequest] = deque()  # not sent to a process yet
        self.failure: RefitFailed | None = None  # why no more requests are computed
        self.trouble: Trouble | None = None  # why the last process failed
        self.slot: ProcessSlot | None = None  # that took the last request
        self.is_running = False  # whether a process computes a request
        self.is_awaited = False  # whether a caller blocks until a reply
        self.is_abandoned = False

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to compute."""
        return not self.requests and not self.is_running

    def note(self, message: Message, reply: Reply) -> None:
        """Add a computed task to the log; a fetched state replaces the log."""
        if message[0] == STATE:
            self.state, self.tasks = reply.body, []
        elif message[0] != FIT:
            self.tasks.append(message)

    def has_long_log(self, is_alone: bool) -> bool:
        """Return whether the state should be fetched, to replace the log."""
        min_bytes = MIN_LOG_BYTES_ALONE if is_alone else MIN_LOG_BYTES_SHARED
        share = 1.0 if is_alone else LOG_SHARE_SHARED
        size = sum(len(body) for _, body in self.tasks)
        return size > max(min_bytes, share * len(self.state or b""))

    def rebuild_messages(self) -> list[Message]:
        """Return the messages that rebuild the learner in another process."""
        load = [] if self.state is None else [(LOAD, self.state)]
        return [(CONFIG, self._config), *load, *self.tasks]


class ProcessSlot:
    """One process of the pool and its learners. The schedule's lock guards all fields."""

    def __init__(self) -> None:
        # Learners with their bytes, the most recently used last.
        self.learners: OrderedDict[PooledLearner, int] = OrderedDict()
        self.forgets: list[Message] = []  # unsent messages that delete learners
        self.is_started = False  # whether there is, or soon will be, a process
        self.is_working = False
        self.process: RefitProcess | None = None

    @property
    def is_urgent(self) -> bool:
        """Whether the process computes at normal priority."""
        return self.is_working and self.process is not None and not self.process.priority.is_low

    def remove(self, learner: PooledLearner) -> None:
        """Remove a learner from the process, if it is there."""
        if learner in self.learners:
            del self.learners[learner]
            self.forgets.append(learner.forget)


class Schedule:
    """The queue of learners with requests, and the processes that compute them."""

    def __init__(self, slots: list[ProcessSlot]) -> None:
        self._slots = slots
        self.changed = threading.Condition()  # its lock guards learners and slots
        self.is_closed = False
        self.failure: RefitFailed | None = None  # the error that closed it, if any
        self._turns: deque[PooledLearner] = deque()  # learners with requests, none running
        self._was_preferred = False  # whether the last turn went to an awaited learner

    def submit(self, learner: PooledLearner, message: Message) -> Future[Reply]:
        """Queue a request after the learner's earlier ones; its reply wakes the caller."""
        request = LearnerRequest(message, Future())
        request.reply.add_done_callback(lambda _reply: learner.wake())
        with self.changed:
            failure = learner.failure
            if failure is None:
                learner.requests.append(request)
                self._enlist(learner)
        if failure is not None:
            request.reply.set_exception(failure)
        return request.reply

    def abandon(self, learner: PooledLearner) -> None:
        """Drop a learner and its requests; a running request is completed but ignored."""
        with self.changed:
            is_unused = learner.slot is None and learner.is_idle
            learner.is_abandoned = True
            learner.requests.clear()
            if learner in self._turns:
                self._turns.remove(learner)
            self._remove(learner)
            if not is_unused:
                self.changed.notify_all()  # a process must delete it

    def take(self, slot: ProcessSlot) -> tuple[PooledLearner, LearnerRequest] | None:
        """Wait for a request; return None if the process must delete learners. Raises Stopped."""
        with self.changed:
            slot.is_working = False
            while not self.is_closed:
                if (learner := self._next(slot)) is not None:
                    self._turns.remove(learner)
                    learner.is_running = slot.is_working = slot.is_started = True
                    learner.slot = slot
                    return learner, learner.requests.popleft()
                if slot.forgets:
                    return None
                self.changed.wait()
        raise Stopped("the pool is closed")

    def move(self, learner: PooledLearner, slot: ProcessSlot) -> None:
        """Assign a learner to a slot; the caller holds the lock."""
        self._remove(learner)
        slot.learners[learner] = 0

    def fail(self, learner: PooledLearner, request: LearnerRequest, error: RefitFailed) -> None:
        """Fail a request of a learner, and all of its later ones."""
        with self.changed:
            learner.failure = error
            failed = [request, *learner.requests]
            learner.requests.clear()
        for each in failed:
            each.reply.set_exception(error)

    def finish(self, learner: PooledLearner) -> None:
        """Record that a learner's request was computed; queue its next one."""
        with self.changed:
            learner.is_running = False
            if learner.is_abandoned:
                self._remove(learner)
            self._enlist(learner)

    def hurry(self) -> None:
        """Give all processes their normal priority."""
        with self.changed:
            for slot in self._slots:
                if slot.process is not None:
                    slot.process.priority.restore()

    def note_wait(self, learner: PooledLearner, waited: float) -> None:
        """Choose the priority of a learner's process after a result that was waited for."""
        with self.changed:
            if learner.slot is not None and learner.slot.process is not None:
                learner.slot.process.priority.note(waited)

    def to_unload(
        self, slot: ProcessSlot, learner: PooledLearner, weight: int, memory: int
    ) -> PooledLearner | None:
        """Record the bytes of a learner; return a learner to unload, if there is too little memory.

        No process computes the returned learner until `unload`.
        """
        with self.changed:
            if learner not in slot.learners:  # abandoned meanwhile
                return None
            slot.learners[learner] = weight
            oldest = next(iter(slot.learners))
            if oldest is learner or sum(slot.learners.values()) <= memory:
                return None
            if oldest in self._turns:
                self._turns.remove(oldest)
            oldest.is_running = True
            return oldest

    def unload(self, learner: PooledLearner) -> None:
        """Remove a learner from its process until its next request."""
        with self.changed:
            self._remove(learner)
        self.finish(learner)

    def close(self, failure: RefitFailed | None = None) -> None:
        """End all waiting."""
        with self.changed:
            self.is_closed, self.failure = True, failure
            self.changed.notify_all()

    def _remove(self, learner: PooledLearner) -> None:
        for slot in self._slots:
            slot.remove(learner)

    def _enlist(self, learner: PooledLearner) -> None:
        if learner.requests and not learner.is_running and learner not in self._turns:
            self._turns.append(learner)
        self.changed.notify_all()

    def _next(self, slot: ProcessSlot) -> PooledLearner | None:
        """Return the learner whose turn it is in this slot; an awaited one goes first.

        But not twice in a row: a caller that awaits one reply after another would otherwise block
        all other learners.
        """
        if not slot.is_started and any(s.is_started and not s.is_working for s in self._slots):
            return None  # a running process is idle
        able = [learner for learner in self._turns if self._is_able(slot, learner)]
        able.sort(key=attrgetter("is_background"))
        preferred = [learner for learner in able if learner.is_awaited]
        self._was_preferred = bool(preferred) and not self._was_preferred
        if self._was_preferred:
            return preferred[0]
        return able[0] if able else None

    def _is_able(self, slot: ProcessSlot, learner: PooledLearner) -> bool:
        """Return whether a slot may take a learner: if it has it, or the learner may move."""
        home = next((other for other in self._slots if learner in other.learners), None)
        return home in (None, slot) or (home.is_working and not learner.tasks)
