"""One pool of refit processes for many feeds.

A process may be slow, die or hang without changing any answer, since the example number at which a
result takes effect is fixed when the refit begins: another process goes on from the log.
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

MAX_ATTEMPTS = 3
"""Processes in which a task is tried."""

REPLY_TIMEOUT = 300.0
"""Seconds for one exchange before the process counts as hung. Only a large window comes near."""

FAILURES = (ProcessFailed, MemoryError, OSError, RuntimeError)
"""By which a process fails, or cannot be started. The thread outlives them: callers wait for it."""

FETCH_STATE: Message = (STATE, b"")

log = Logger("online_svm.refit")


class RefitPool:
    """Computes the refits of many feeds, a few at a time.

    At most `processes` start, when they are needed, the first one at once; by default one less than
    there are cores. All end with the pool.

    Parameters
    ----------
    stop : Stop, optional
        After a stop is requested, results are awaited for at most half of the grace period.
    memory : int
        Bytes that learners, with their kernel rows, may take in all processes together. Those that
        computed longest ago are unloaded to their states, and their next refit takes longer. Each
        process keeps at least one learner, of any size.
    timeout : float
        Seconds for one exchange before a process counts as hung.
    first : Popen, optional
        A process that was started early, to use first.
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
        """Process ids of the present processes."""
        found = (thread.slot.process for thread in self._threads)
        return [process.pid for process in found if process is not None]

    def refitter(
        self,
        config: PredictorConfig,
        observer: RefitObserver | None = None,
        stop: Stop | None = None,
    ) -> PooledRefitter:
        """Return the refitter of one feed; its `close` releases the learner.

        The observer gets the cost of each refit, and failures of processes, from any thread. The
        caller waits for results until its `stop`, by default the pool's; each result wakes it.
        """
        return PooledRefitter(config, self._schedule, stop or self._stop, observer)

    def close(self) -> None:
        """End all processes; results that are awaited do not come."""
        self._schedule.close()
        for thread in self._threads:
            thread.join()


class PoolThread(threading.Thread):
    """Computes, in one process, what the schedule gives it; replaces the process if it fails.

    Only the learners that the process held are rebuilt, each when its next request comes. If they
    take more than `memory` bytes together, the one that computed longest ago is unloaded: it is
    rebuilt from its state, with the same bits, for its next task.
    """

    def __init__(self, schedule: Schedule, slot: ProcessSlot, timeout: float, memory: int) -> None:
        super().__init__(name="refits", daemon=True)
        self.slot = slot
        self._schedule, self._timeout, self._memory = schedule, timeout, memory
        self._has_failed = False  # and no other process has replied since
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
        except BaseException as error:  # no feed may wait for a thread that is gone
            self._schedule.close(RefitFailed(f"a thread of the refit pool failed: {error!r}"))
            raise
        finally:
            self._end()

    def _compute(self, learner: PooledLearner, request: LearnerRequest) -> None:
        """Reply to a request; then keep the log of the learner short, and the learners few."""
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
        """Fetch the state of a learner whose log is long, and unload others unless it is alone."""
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
        """Return the reply; use another process if this one dies, hangs or fails."""
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
        """Send a message, after those that bring the learner here; return the reply to it."""
        return self._replies([*self._set_up(learner), message])[-1]

    def _replies(self, messages: list[Message]) -> list[Reply]:
        process = self._live_process()
        for message in messages:
            process.send(message)
        return [self._reply(process) for _ in messages]

    def _set_up(self, learner: PooledLearner) -> list[Message]:
        """Return the messages after which this process has the learner, and no other one has it."""
        with self._schedule.changed:
            if learner in self.slot.learners:
                self.slot.learners.move_to_end(learner)
                return [*self._taken_forgets(), learner.select]
            self._schedule.move(learner, self.slot)
            return [*self._taken_forgets(), learner.select, *learner.rebuilding()]

    def _taken_forgets(self) -> list[Message]:
        forgets, self.slot.forgets = self.slot.forgets, []
        return forgets

    def _forget(self) -> None:
        """Let the process forget the learners that were removed from it."""
        with self._schedule.changed:
            forgets = self._taken_forgets()
        try:
            self._replies(forgets)
        except FAILURES:
            self._end()  # it forgets all of them

    def _reply(self, process: RefitProcess) -> Reply:
        return process.receive(self._timeout, lambda: self._schedule.is_closed)

    def _live_process(self) -> RefitProcess:
        if (process := self.slot.process) is None:
            process = RefitProcess(refit_process.start())
            with self._schedule.changed:
                self.slot.process = process
        return process

    def _end(self) -> None:
        """End the process; its learners are in no process then."""
        with self._schedule.changed:
            process, self.slot.process = self.slot.process, None
            self.slot.learners.clear()
            self.slot.forgets = []
        if process is not None:
            process.close()


def _report(learner: PooledLearner, reason: str | None) -> None:
    """Report to the feed's observer why the process failed, or that it works again."""
    if reason is not None or learner.trouble is not None:
        learner.trouble = None if reason is None else still(learner.trouble, reason)
        learner.observer.refits_fail(learner.trouble)
