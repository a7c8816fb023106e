"""One refit process of a pool, and the thread that gives it work."""

import threading

from workers.errors import RefitFailed, Stopped
from workers.log import Logger
from workers.refit.child import begin
from workers.refit.learner_queue import FETCH, LearnerQueue, ProcessSlot, Reply
from workers.refit.messages import STATE, WEIGH, WEIGHT, Message
from workers.refit.pipe import ChildFailed, ChildPipe
from workers.refit.schedule import Schedule
from workers.trouble import still

LONG, SHARE = 1 << 17, 0.25
"""Bytes of tasks, and their share in those of the state, after which the state of a learner is
fetched: the logs of all feeds are held by the process that answers. Of a full window that is every
third refit, for some 2 % of its time."""

ATTEMPTS = 3
"""Number of processes in which a task is tried."""

PATIENCE = 300.0
"""Seconds for one exchange before the process counts as hung. Only a large window comes near."""

FAILURES = (ChildFailed, MemoryError, OSError, RuntimeError)
"""By which a process fails, or cannot be begun. The thread outlives them: callers wait for it."""

log = Logger("online_svm.refit")


class PoolProcess:
    """A process that computes what its schedule gives it, and is replaced where it fails.

    Only the learners that it held are built again, each when its next request comes. Learners that
    take too much memory together are set down: the one that computed longest ago is given up, and
    is built again from its state, with the same bits, when it has another task.

    Parameters
    ----------
    schedule : Schedule
    slot : ProcessSlot
    patience : float
        Seconds for one exchange before the process counts as hung.
    memory : int
        Bytes that the learners of the process may take together, unless one alone takes more.
    """

    def __init__(self, schedule: Schedule, slot: ProcessSlot, patience: float, memory: int) -> None:
        self._schedule, self._slot = schedule, slot
        self._patience, self._memory = patience, memory
        self._has_failed = False  # and no other process has replied since
        self._thread = threading.Thread(target=self._run, name="refits", daemon=True)
        self._thread.start()

    @property
    def pid(self) -> int | None:
        """Process id of the present child; None before there is one."""
        child = self._slot.child
        return None if child is None else child.pid

    def join(self) -> None:
        """Wait until the thread has ended, which the closed schedule makes it do."""
        self._thread.join()

    def _run(self) -> None:
        try:
            if self._slot.is_begun:
                self._begun()
            while True:
                work = self._schedule.take(self._slot)
                if work is None:
                    self._tidy()
                else:
                    self._compute(*work)
        except Stopped:
            pass
        except BaseException as error:  # nobody may wait for a thread that is gone
            self._schedule.close(RefitFailed(f"a thread of the refit pool failed: {error!r}"))
            raise
        finally:
            self._end()

    def _compute(self, queue: LearnerQueue, request: Message) -> None:
        """Reply to a request; then keep the log of the learner short, and all learners few."""
        reply = self._tried(queue, request)
        if isinstance(reply, Reply):
            _note(queue, request, reply)
        if request != FETCH or isinstance(reply, RefitFailed):
            self._schedule.reply(queue, reply)
        try:
            if isinstance(reply, Reply) and not queue.is_over:
                self._house(queue)
        except FAILURES as error:  # nobody waits for it
            log.warning("a refit process failed", reason=str(error), attempt=1)
            self._has_failed = True
            self._end()
        self._schedule.finish(queue)
        if request == FETCH:
            queue.wake()

    def _house(self, queue: LearnerQueue) -> None:
        """Fetch the state of a learner whose log is long, and set others down if need be.

        A learner that has the process for itself stays, whatever it takes: it is not weighed.
        """
        is_alone = len(self._slot.queues) == 1
        if queue.log.is_long() if is_alone else queue.log.is_long(LONG, SHARE):
            _note(queue, (STATE, b""), self._exchange(queue, (STATE, b"")))
        if is_alone:
            return
        weight = WEIGHT.unpack(self._exchange(queue, (WEIGH, b"")).body)[0]
        schedule, slot = self._schedule, self._slot
        while (other := schedule.too_many(slot, queue, weight, self._memory)) is not None:
            try:
                if other.log.tasks:
                    _note(other, (STATE, b""), self._exchange(other, (STATE, b"")))
            finally:
                schedule.set_down(other)

    def _tried(self, queue: LearnerQueue, request: Message) -> Reply | RefitFailed:
        """Return the reply; use another process if this one dies, hangs or fails."""
        reason = ""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                reply = self._exchange(queue, request)
            except FAILURES as error:
                reason = str(error)
            else:
                _tell(queue, None)
                if self._has_failed:
                    log.info("a refit process works again")
                    self._has_failed = False
                return reply
            self._end()
            if queue.is_over:
                break
            log.warning("a refit process failed", reason=reason, attempt=attempt)
            self._has_failed = True
            _tell(queue, reason)
        return RefitFailed(f"a refit failed in {ATTEMPTS} processes in a row; last: {reason}")

    def _exchange(self, queue: LearnerQueue, request: Message) -> Reply:
        """Send a request, after what brings the learner here; return the reply to it."""
        child = self._begun()
        messages = [*self._set_up(queue), request]
        for message in messages:
            child.send(message)
        for _ in messages[:-1]:
            self._reply(child)
        body = self._reply(child)
        return Reply(body, child.seconds)

    def _set_up(self, queue: LearnerQueue) -> list[Message]:
        """Return the messages by which the process has the learner, and no other process has it."""
        with self._schedule.changed:
            forgets, self._slot.forgets = self._slot.forgets, []
            if queue in self._slot.queues:
                self._slot.queues.move_to_end(queue)
                return [*forgets, queue.select]
            self._schedule.move(queue, self._slot)
        return [*forgets, queue.select, *queue.log.set_up()]

    def _tidy(self) -> None:
        """Let the process forget the learners that it is to give up."""
        with self._schedule.changed:
            forgets, self._slot.forgets = self._slot.forgets, []
        try:
            child = self._begun()
            for message in forgets:
                child.send(message)
            for _ in forgets:
                self._reply(child)
        except FAILURES:
            self._end()  # it forgets all of them

    def _reply(self, child: ChildPipe) -> bytes:
        return child.reply(self._patience, self._schedule, is_urgent=False)

    def _begun(self) -> ChildPipe:
        if (child := self._slot.child) is None:
            child = ChildPipe(begin())
            with self._schedule.changed:
                self._slot.child = child
        return child

    def _end(self) -> None:
        """End the process; its learners are in no process then."""
        with self._schedule.changed:
            child, self._slot.child = self._slot.child, None
            self._slot.queues.clear()
            self._slot.forgets = []
        if child is not None:
            child.close()


def _tell(queue: LearnerQueue, reason: str | None) -> None:
    """Tell the observer of the feed why the process failed, or that it works again."""
    if reason is not None or queue.trouble is not None:
        queue.trouble = None if reason is None else still(queue.trouble, reason)
        queue.observer.refits_fail(queue.trouble)


def _note(queue: LearnerQueue, request: Message, reply: Reply) -> None:
    if request[0] == STATE:
        queue.log.replace(reply.body)
    else:
        queue.log.add(request)
