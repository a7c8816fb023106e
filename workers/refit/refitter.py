"""The refits of one feed, computed in a pool of processes."""

import time
from collections import deque
from concurrent.futures import Future
from typing import Self

from typing_extensions import override

from online_svm.config import PredictorConfig
from online_svm.refit.state_checks import opened
from online_svm.refit.task import RefitResult, RefitTask, Refitter
from workers.errors import Stopped
from workers.refit.process import STATE, TASK, Message, Reply
from workers.refit.schedule import PooledLearner, RefitObserver, Schedule
from workers.stop import Stop

_CHECK_SECONDS = 0.05  # between two checks for a stop during a wait


class PooledRefitter(Refitter):
    """Computes the refits of a feed in a pool; created by `RefitPool.refitter`.

    Each refit takes effect at a fixed example number, so its start may be delayed: while
    `is_deferring`, a submitted refit starts when `begin` is called or its result is awaited.
    """

    _learner: PooledLearner
    _results: deque[Future[Reply]]
    _state: Future[Reply] | None  # of the learner after the last task
    _awaited_since: float | None  # first poll for a result that was not ready

    def __init__(
        self,
        config: PredictorConfig,
        schedule: Schedule,
        stop: Stop,
        observer: RefitObserver | None = None,
    ) -> None:
        self._config, self._schedule, self._stop = config, schedule, stop
        self._observer = observer or RefitObserver()
        self.is_deferring = False
        self._deferred: list[Message] = []
        self._restart(None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def is_busy(self) -> bool:
        """Whether a refit is being computed at normal priority."""
        learner = self._learner
        return learner.is_running and learner.slot is not None and learner.slot.is_urgent

    @property
    def is_ready(self) -> bool:
        """Whether `result` would return or raise at once. Starts deferred refits.

        Polling for a result that is not ready marks it as awaited.
        """
        self.begin()
        if self._schedule.failure is not None or (self._results and self._results[0].done()):
            return True
        now = time.perf_counter()
        if self._awaited_since is None:
            self._awaited_since = now
        elif now - self._awaited_since >= _CHECK_SECONDS:
            # On a busy machine a process with low priority hardly runs.
            self._schedule.hurry()
        return False

    @property
    def has_state(self) -> bool:
        """Whether `state` would return or raise at once, once all results are taken.

        If not, the state is requested, to be fetched after the submitted tasks.
        """
        self.begin()
        if self._state is None:
            if self._is_log_empty():
                return True
            self._state = self._schedule.submit(self._learner, (STATE, b""))
        return self._state.done() or self._schedule.failure is not None

    @override
    def submit(self, task: RefitTask) -> None:
        self._state = None
        self._deferred.append((TASK, task.state()))
        if not self.is_deferring:
            self.begin()

    def begin(self) -> None:
        """Start the deferred refits."""
        deferred, self._deferred = self._deferred, []
        self._results += [self._schedule.submit(self._learner, message) for message in deferred]

    @override
    def result(self) -> RefitResult:
        """Wait for the next result. Raises RefitFailed; Stopped if it does not come in time."""
        self.begin()
        began = time.perf_counter() if self._awaited_since is None else self._awaited_since
        reply = self._awaited(self._results[0])
        self._results.popleft()
        waited, self._awaited_since = time.perf_counter() - began, None
        self._schedule.note_wait(self._learner, waited)
        self._observer.refitted(reply.seconds, waited)
        return RefitResult.from_state(reply.body)

    @override
    def state(self) -> bytes:
        assert not self._deferred
        if self._state is None and self._is_log_empty():
            state = self._learner.state
            assert state is not None
            return state
        if self._state is None:
            self._state = self._schedule.submit(self._learner, (STATE, b""))
        return self._awaited(self._state).body

    @override
    def withdraw(self) -> None:
        self.close()
        self._restart(None)

    @override
    def reset(self, state: bytes | None) -> None:
        if state is not None:
            opened(self._config, state)
        self.is_deferring = False  # no client waits during a replay
        self.close()
        self._restart(state)

    def close(self) -> None:
        """Drop all tasks and the learner.

        A running refit is not interrupted, since its process has other learners, too.
        """
        self._deferred.clear()
        self._schedule.abandon(self._learner)

    def _restart(self, state: bytes | None) -> None:
        self._results, self._state, self._awaited_since = deque(), None, None
        self._learner = PooledLearner(self._config, state, self._observer, self._stop.wake)

    def _is_log_empty(self) -> bool:
        """Return whether the last fetched state includes the learner's last task."""
        with self._schedule.changed:
            return self._learner.is_idle and not self._learner.tasks

    def _awaited(self, reply: Future[Reply]) -> Reply:
        self._learner.is_awaited = True
        try:
            while not reply.done():
                if self._schedule.failure is not None:
                    raise self._schedule.failure
                if self._stop.pressing or self._schedule.is_closed:
                    raise Stopped("stopped while a refit was awaited")
                try:
                    return reply.result(_CHECK_SECONDS)
                except TimeoutError:
                    self._schedule.hurry()
            return reply.result()
        finally:
            self._learner.is_awaited = False
