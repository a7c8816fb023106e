"""A pool of refit processes for many feeds.

A process may be slow, die or hang without changing any answer: another process continues from the
log, and the example number at which a result takes effect is fixed when the task is submitted.
"""

import os
import threading
from typing import Self

from online_svm.config import PredictorConfig
from workers.config.settings import REFIT_MEMORY
from workers.errors import RefitFailed, Stopped, still
from workers.log import Logger
from workers.refit import process as refit_process
from workers.refit.process import (
    STATE,
    WEIGH,
    WEIGHT,
    Child,
    Message,
    ProcessFailed,
    RefitProcess,
    Reply,
)
from workers.refit.refitter import PooledRefitter
from workers.refit.schedule import (
    LearnerRequest,
    PooledLearner,
    ProcessSlot,
    RefitObserver,
    Schedule,
)
from workers.stop import Stop

MAX_ATTEMPTS = 3  # number of processes in which a task is tried

REPLY_TIMEOUT = 300.0
"""Seconds without a reply after which a process counts as hung; only large windows come near."""

FAILURES = (ProcessFailed, MemoryError, OSError, RuntimeError)
"""Errors of a process, or of starting one. The thread must survive them: callers wait for it."""

FETCH_STATE: Message = (STATE, b"")

log = Logger("online_svm.refit")


class RefitPool:
    """Computes the refits of many feeds, in up to `processes` processes.

    The default is the number of cores less one. The first process starts at once, the others when
    they are needed; all end with the pool.

    Parameters
    ----------
    stop : Stop, optional
        After a stop request, results are awaited for at most half of the grace period.
    memory : int
        Bytes of the learners, with their kernel rows, in all processes together. Beyond it, the
        least recently used learners are unloaded to their states, and their next refit takes
        longer. Each process keeps at least one learner, of any size.
    timeout : float
        Seconds without a reply after which a process counts as hung.
    first : Popen, optional
        A process that was started early, to be used first.
    """

    def __init__(
        self,
        processes: int | None = None,
        stop: Stop | None = None,
        memory: int = REFIT_MEMORY,
        timeout: float = REPLY_TIMEOUT,
        first: Child | None = None,
    ) -> None:
        self._stop = stop or Stop()
        processes = processes or max(1, len(os.sched_getaffinity(0)) - 1)
        slots = [ProcessSlot() for _ in range(processes)]
        slots[0].is_started = True
        slots[0].process = None if first is None else RefitProcess(first)
        each = memory // len(slots)
        self._schedule = Schedule(slots)
        self._threads = [PoolThread(self._schedule, slot, timeout, each) for slot in slots]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pids(self) -> list[int]:
        """Ids of the running processes."""
        found = (thread.slot.process for thread in self._threads)
        return [process.pid for process in found if process is not None]

    def refitter(
        self,
        config: PredictorConfig,
        observer: RefitObserver | None = None,
        stop: Stop | None = None,
    ) -> PooledRefitter:
        """Return the refitter of one feed; its `close` releases the learner.

        Any thread may report the time of each refit, and failures of processes, to the observer.
        Waiting for a result ends at `stop`, by default the pool's, which each result wakes.
        """
        return PooledRefitter(config, self._schedule, stop or self._stop, observer)

    def close(self) -> None:
        """End all processes; waiting for a result raises Stopped."""
        self._schedule.close()
        for thread in self._threads:
            thread.join()


class PoolThread(threading.Thread):
    """Computes requests in one process; replaces the process if it fails.

    Only the learners of a failed process are rebuilt, each at its next request. If the learners
    take more than `memory` bytes together, the least recently used one is unloaded: it is rebuilt
    from its state, bit for bit, for its next task.
    """

    def __init__(self, schedule: Schedule, slot: ProcessSlot, timeout: float, memory: int) -> None:
        super().__init__(name="refits", daemon=True)
        self.slot = slot
        self._schedule, self._timeout, self._memory = schedule, timeout, memory
        self._has_failed = False  # whether the last exchange failed
        self.start()

    def run(self) -> None:
        """Compute requests until the schedule is closed."""
        try:
            if self.slot.is_started:
                self._live_process()
            while True:
                work = self._schedule.take(self.slot)
                if work is None:
                    self._forget()
                else:
                    self._compute(*work)
        except Stopped:
            pass
        except BaseException as error:  # feeds must not wait for a dead thread
            self._schedule.close(RefitFailed(f"a thread of the refit pool failed: {error!r}"))
            raise
        finally:
            self._end()

    def _compute(self, learner: PooledLearner, request: LearnerRequest) -> None:
        """Reply to a request; then bound the learner's log, and the memory of all learners."""
        try:
            reply = self._tried(learner, request.message)
        except RefitFailed as error:
            self._schedule.fail(learner, request, error)
        else:
            learner.note(request.message, reply)
            request.reply.set_result(reply)
            if not learner.is_abandoned:
                self._tidy(learner)
        self._schedule.finish(learner)

    def _tidy(self, learner: PooledLearner) -> None:
        """Fetch the state of a learner with a long log; unload other learners beyond the memory."""
        slot, is_alone = self.slot, len(self.slot.learners) == 1
        try:
            if learner.has_long_log(is_alone):
                self._fetch_state(learner)
            if is_alone:
                return
            weight = WEIGHT.unpack(self._exchange(learner, (WEIGH, b"")).body)[0]
            while other := self._schedule.to_unload(slot, learner, weight, self._memory):
                try:
                    if other.tasks:
                        self._fetch_state(other)
                finally:
                    self._schedule.unload(other)
        except FAILURES as error:  # no caller waits for this state
            self._note_failure(str(error), attempt=1)
            self._end()

    def _fetch_state(self, learner: PooledLearner) -> None:
        learner.note(FETCH_STATE, self._exchange(learner, FETCH_STATE))

    def _tried(self, learner: PooledLearner, message: Message) -> Reply:
        """Return the reply; after a failure try another process."""
        reason = ""
        for attempt in range(1, MAX_ATTEMPTS + 1):
            try:
                reply = self._exchange(learner, message)
            except FAILURES as error:
                reason = str(error)
            else:
                _report(learner, None)
                if self._has_failed:
                    log.info("a refit process works again")
                    self._has_failed = False
                return reply
            self._end()
            if learner.is_abandoned:
                break
            self._note_failure(reason, attempt)
            _report(learner, reason)
        raise RefitFailed(f"a refit failed in {MAX_ATTEMPTS} processes in a row; last: {reason}")

    def _note_failure(self, reason: str, attempt: int) -> None:
        log.warning("a refit process failed", reason=reason, attempt=attempt)
        self._has_failed = True

    def _exchange(self, learner: PooledLearner, message: Message) -> Reply:
        """Load the learner if necessary, send a message, and return the reply."""
        return self._replies([*self._set_up(learner), message])[-1]

    def _replies(self, messages: list[Message]) -> list[Reply]:
        process = self._live_process()
        for message in messages:
            process.send(message)
        return [self._reply(process) for _ in messages]

    def _set_up(self, learner: PooledLearner) -> list[Message]:
        """Move the learner to this process; return the messages that load and select it."""
        with self._schedule.changed:
            if learner in self.slot.learners:
                self.slot.learners.move_to_end(learner)
                return [*self._pop_forgets(), learner.select]
            self._schedule.move(learner, self.slot)
            return [*self._pop_forgets(), learner.select, *learner.rebuild_messages()]

    def _pop_forgets(self) -> list[Message]:
        forgets, self.slot.forgets = self.slot.forgets, []
        return forgets

    def _forget(self) -> None:
        """Delete removed learners from the process."""
        with self._schedule.changed:
            forgets = self._pop_forgets()
        try:
            self._replies(forgets)
        except FAILURES:
            self._end()  # which deletes all learners

    def _reply(self, process: RefitProcess) -> Reply:
        return process.receive(self._timeout, lambda: self._schedule.is_closed)

    def _live_process(self) -> RefitProcess:
        if (process := self.slot.process) is None:
            process = RefitProcess(refit_process.start())
            with self._schedule.changed:
                self.slot.process = process
        return process

    def _end(self) -> None:
        with self._schedule.changed:
            process, self.slot.process = self.slot.process, None
            self.slot.learners.clear()
            self.slot.forgets = []
        if process is not None:
            process.close()


def _report(learner: PooledLearner, reason: str | None) -> None:
    if reason is not None or learner.trouble is not None:
        learner.trouble = None if reason is None else still(learner.trouble, reason)
        learner.observer.refits_fail(learner.trouble)
