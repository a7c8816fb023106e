"""The refits of one feed, computed in a pool of processes."""

import time
from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future
from hashlib import sha256
from types import MappingProxyType
from typing import NamedTuple, Self

from typing_extensions import override

from online_svm.config import PredictorConfig
from online_svm.refit.memory_trees import kind_of
from online_svm.refit.state_checks import opened
from online_svm.refit.task import ForestFit, RefitResult, RefitTask, Refitter
from workers.errors import Stopped
from workers.feed.state import StoredFit
from workers.log import Logger
from workers.refit.process import FIT, STATE, TASK, Message, Reply
from workers.refit.schedule import PooledLearner, RefitObserver, Schedule
from workers.stop import Stop

_CHECK_SECONDS = 0.05  # between two checks for a stop during a wait

NO_FITS: Mapping[bytes, bytes] = MappingProxyType({})
"""No stored trees."""

log = Logger("online_svm.refit")


class PooledFit(ForestFit):
    """A fit of the memory's trees in a pool."""

    def __init__(self, refitter: "PooledRefitter", reply: Future[Reply]) -> None:
        self._refitter, self._reply = refitter, reply
        self._awaited_since: float | None = None  # first poll while it was not ready

    @property
    @override
    def is_ready(self) -> bool:
        if self._refitter.is_done(self._reply, self._awaited_since):
            return True
        self._awaited_since = self._awaited_since or time.perf_counter()
        return False

    @override
    def result(self) -> bytes:
        """Wait for the trees. Raises RefitFailed; Stopped if they do not come in time."""
        return self._refitter.trees(self._reply)


class KnownFit(NamedTuple):
    """A fit whose trees an earlier worker has stored."""

    trees: bytes
    is_ready: bool = True

    def result(self) -> bytes:
        """Return the trees."""
        return self.trees


class SubmittedFit(NamedTuple):
    """A fit that was sent to the pool."""

    kind: str
    task: bytes  # SHA-256 of the task
    reply: Future[Reply]


class PooledRefitter(Refitter):
    """Computes the refits of a feed in a pool; created by `RefitPool.refitter`.

    Each refit takes effect at a fixed example number, so its start may be delayed: while
    `is_deferring`, a submitted refit starts when `begin` is called or its result is awaited.

    `known_fits` are stored trees by the SHA-256 of their tasks: these tasks are not computed.
    """

    _learner: PooledLearner
    _trees: PooledLearner  # its requests are fits of the memory's trees
    _results: deque[Future[Reply]]
    _state: Future[Reply] | None  # of the learner after the last task
    _awaited_since: float | None  # first poll for a result that was not ready
    _submitted: list[SubmittedFit]  # fits that `pop_finished` has not returned yet

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
        self.known_fits = NO_FITS
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
        if self.is_done(self._results[0] if self._results else None, self._awaited_since):
            return True
        self._awaited_since = self._awaited_since or time.perf_counter()
        return False

    def is_done(self, reply: Future[Reply] | None, since: float | None) -> bool:
        """Return whether a reply can be taken; `since`: of the first poll when it could not."""
        if self._schedule.failure is not None or (reply is not None and reply.done()):
            return True
        if since is not None and time.perf_counter() - since >= _CHECK_SECONDS:
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
    def fit(self, task: bytes) -> ForestFit:
        kind, name = kind_of(task), sha256(task).digest()
        if (trees := self.known_fits.get(name)) is not None:
            log.info("a stored fit is used again", kind=kind)
            return KnownFit(trees)
        reply = self._schedule.submit(self._trees, (FIT, task))
        self._submitted.append(SubmittedFit(kind, name, reply))
        return PooledFit(self, reply)

    def pop_finished(self) -> list[StoredFit]:
        """Return the fits that were finished since the last call."""
        done = [fit for fit in self._submitted if fit.reply.done()]
        self._submitted = [fit for fit in self._submitted if fit not in done]
        return [
            StoredFit(kind, task, reply.result().body)
            for kind, task, reply in done
            if reply.exception() is None
        ]

    def trees(self, reply: Future[Reply]) -> bytes:
        """Wait for the trees of a fit. Raises as `result`."""
        return self._awaited(self._trees, reply).body

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
        reply = self._awaited(self._learner, self._results[0])
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
        return self._awaited(self._learner, self._state).body

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
        """Drop all tasks, fits and the learner.

        A running refit is not interrupted, since its process has other learners, too.
        """
        self._deferred.clear()
        self._schedule.abandon(self._learner)
        self._schedule.abandon(self._trees)

    def _restart(self, state: bytes | None) -> None:
        self._results, self._state, self._awaited_since = deque(), None, None
        self._submitted = []
        self._learner = PooledLearner(self._config, state, self._observer, self._stop.wake)
        self._trees = PooledLearner(
            self._config, None, self._observer, self._stop.wake, is_background=True
        )

    def _is_log_empty(self) -> bool:
        """Return whether the last fetched state includes the learner's last task."""
        with self._schedule.changed:
            return self._learner.is_idle and not self._learner.tasks

    def _awaited(self, learner: PooledLearner, reply: Future[Reply]) -> Reply:
        learner.is_awaited = True
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
            learner.is_awaited = False
