"""The refits of one feed, computed in a pool of processes."""

import time
from typing import Self

from typing_extensions import override

from online_svm.config import PredictorConfig
from online_svm.refit.state_checks import opened
from online_svm.refit.task import RefitResult, RefitTask, Refitter
from workers.errors import Stopped
from workers.refit.learner_queue import FETCH, LearnerQueue, Reply
from workers.refit.messages import STATE, TASK, Message
from workers.refit.observer import NobodyLooks, RefitObserver
from workers.refit.schedule import Schedule
from workers.stop import Stop

# Seconds between two looks at the stop while a reply is awaited.
_LOOK = 0.05


class PooledRefitter(Refitter):
    """Computes the refits of a feed in a pool; a `Refitter`. `RefitPool.refitter` makes it.

    When a refit begins changes no answer, since each takes effect at an example number of its own.

    Parameters
    ----------
    config : PredictorConfig
    schedule : Schedule
    stop : Stop
    observer : RefitObserver, optional

    Attributes
    ----------
    is_patient : bool
        A refit that is submitted begins when `begin` is called, or its result is awaited; else at
        once.
    """

    def __init__(
        self,
        config: PredictorConfig,
        schedule: Schedule,
        stop: Stop,
        observer: RefitObserver | None = None,
    ) -> None:
        self._config, self._schedule, self._stop = config, schedule, stop
        self._observer = observer or NobodyLooks()
        self.is_patient = False
        self._unsent: list[Message] = []  # submitted tasks that were not begun
        self._asked_since: float | None = None  # when a result was first asked for in vain
        self._is_fetching = False  # the state, since the last task
        self._queue = LearnerQueue(config, None, self._observer, stop.wake)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def is_busy(self) -> bool:
        """Whether one is being computed now, at normal priority."""
        queue = self._queue
        return queue.is_under_way and queue.slot is not None and queue.slot.is_urgent

    @property
    def is_ready(self) -> bool:
        """Whether `result` would return or raise at once.

        Tasks that were submitted begin. A result that is asked for in vain counts as waited for
        from then on.
        """
        self.begin()
        is_ready = self._queue.has_reply or self._schedule.failure is not None
        if not is_ready:
            now = time.perf_counter()
            if self._asked_since is None:
                self._asked_since = now
            elif now - self._asked_since >= _LOOK:
                # On a busy machine a process of low priority would hardly run.
                with self._schedule.changed:
                    self._schedule.hurry()
        return is_ready

    @property
    def has_state(self) -> bool:
        """Whether `state` would return or raise at once, if all results were taken.

        If not, the state is fetched behind the tasks that were submitted, and is there until the
        next one.
        """
        self.begin()
        if self._is_current() or self._queue.failure is not None:
            return True
        if not self._is_fetching:
            self._is_fetching = True
            self._schedule.add(self._queue, FETCH)
        return self._schedule.failure is not None

    @override
    def submit(self, task: RefitTask) -> None:
        self._is_fetching = False
        self._unsent.append((TASK, task.state()))
        if not self.is_patient:
            self.begin()

    def begin(self) -> None:
        """Begin what was submitted."""
        unsent, self._unsent = self._unsent, []
        for request in unsent:
            self._schedule.add(self._queue, request)

    @override
    def result(self) -> RefitResult:
        """Wait for the next result and return it.

        Raises
        ------
        RefitFailed
            If the task failed in several processes in a row, or the pool itself failed.
        Stopped
            If a stop was requested and the result does not arrive.
        """
        self.begin()
        began = time.perf_counter() if self._asked_since is None else self._asked_since
        reply = self._awaited()
        waited, self._asked_since = time.perf_counter() - began, None
        if self._queue.slot is not None:
            with self._schedule.changed:
                self._queue.slot.note_wait(waited)
        self._observer.refitted(reply.seconds, waited)
        return RefitResult.from_state(reply.body)

    @override
    def state(self) -> bytes:
        assert not self._unsent
        if not self._is_current():
            self._schedule.add(self._queue, (STATE, b""))
            return self._awaited().body
        state = self._queue.log.state
        assert state is not None
        return state

    @override
    def withdraw(self) -> None:
        self._begin_anew(None)

    @override
    def reset(self, state: bytes | None) -> None:
        if state is not None:
            opened(self._config, state)
        self.is_patient = False  # in a replay no client waits
        self._begin_anew(state)

    def close(self) -> None:
        """Give up all tasks and the learner."""
        self._unsent.clear()
        self._schedule.abandon(self._queue)

    def _begin_anew(self, state: bytes | None) -> None:
        # A refit that is being computed is not interrupted: its process has other learners too.
        self.close()
        self._asked_since, self._is_fetching = None, False
        self._queue = LearnerQueue(self._config, state, self._observer, self._stop.wake)

    def _is_current(self) -> bool:
        """Return whether the log holds the state after the last task."""
        with self._schedule.changed:
            return self._queue.is_idle and not self._queue.log.tasks

    def _awaited(self) -> Reply:
        """Wait for the next reply."""
        queue, changed = self._queue, self._schedule.changed
        with changed:
            queue.is_awaited = True
            try:
                while not queue.has_reply:
                    if self._schedule.failure is not None:
                        raise self._schedule.failure
                    if self._stop.pressing or self._schedule.is_closed:
                        raise Stopped("stopped while a refit was awaited")
                    if not changed.wait(_LOOK):
                        self._schedule.hurry()
            finally:
                queue.is_awaited = False
            if queue.replies:
                return queue.replies.popleft()
        assert queue.failure is not None
        raise queue.failure
