"""Compute refits in a process of their own, so that the feed is answered meanwhile.

A result takes effect at an example number that is fixed when the refit begins. So the process may
be slow, die or hang without changing any answer. Another process then starts from the last fetched
state and computes the later tasks again, while the feed waits.

`child.py` is the other end of the pipe, and defines the messages.
"""

import time
from collections import deque
from collections.abc import Iterable
from typing import Self

import structlog
from typing_extensions import override

from online_svm.config import PredictorConfig
from online_svm.refit.state_checks import opened
from online_svm.refit.task import RefitResult, RefitTask, Refitter
from workers.errors import RefitFailed
from workers.refit.background import Background
from workers.refit.child import STATE, TASK, Child, Message, begin, spread
from workers.refit.learner_log import LearnerLog
from workers.refit.observer import NobodyLooks, RefitObserver
from workers.refit.pipe import ChildFailed, ChildPipe
from workers.stop import Stop
from workers.trouble import Trouble, still

ATTEMPTS = 3
"""Number of processes in which a task is tried."""

PATIENCE = 300.0
"""Seconds for one exchange before the process counts as hung. Only a large window comes near."""

log = structlog.get_logger("online_svm.refit")


class ProcessRefitter(Refitter, Background):
    """Computes refits in a child process; a `Refitter`.

    Requests wait in the pipe while the child is busy, so it goes from one task to the next without
    a pause, whatever this process is doing.

    Parameters
    ----------
    config : PredictorConfig
    patience : float
        Seconds for one exchange before the process counts as hung.
    stop : Stop, optional
        After a stop is requested, results are awaited for at most half of the grace period.
    child : Popen, optional
        A process that was already started, over as many processes, to use first.
    observer : RefitObserver, optional
        Is told how long each refit took, and when the process fails.
    processes : int
        Over so many the members of a committee are spread, at most one each. The results have the
        same bits; the child starts the others, and they end with it.
    """

    def __init__(
        self,
        config: PredictorConfig,
        patience: float = PATIENCE,
        stop: Stop | None = None,
        child: Child | None = None,
        observer: RefitObserver | None = None,
        processes: int = 1,
    ) -> None:
        self._config = config
        self._observer = observer or NobodyLooks()
        self._trouble: Trouble | None = None
        self._processes = spread(len(config.members), processes)
        self._patience, self._stop = patience, stop or Stop()
        self.is_patient = False
        self._log = LearnerLog(config)
        self._waiting: list[Message] = []  # submitted tasks that were not sent
        self._asked: deque[Message] = deque()  # requests without a reply
        self._start(child)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """Process id of the present child."""
        return self._child.pid

    @property
    @override
    def is_busy(self) -> bool:
        child = self._child
        return bool(self._asked) and not child.has_low_priority and not child.has_replied

    @override
    def submit(self, task: RefitTask) -> None:
        self._waiting.append((TASK, task.state()))
        if not self.is_patient:
            self.begin()

    @override
    def begin(self) -> None:
        waiting, self._waiting = self._waiting, []
        for request in waiting:
            self._hand_over(request)

    def _hand_over(self, request: Message) -> None:
        self._log.add(request)
        self._ask(request)
        is_asked = any(kind == STATE for kind, _ in self._asked)
        if self._log.is_long() and not is_asked:
            self._ask((STATE, b""))

    @override
    def result(self) -> RefitResult:
        """Wait for the next result and return it.

        Raises
        ------
        RefitFailed
            If the task failed in several processes in a row.
        Stopped
            If a stop was requested and the result does not arrive.
        """
        self.begin()
        while self._asked[0][0] == STATE:
            self._take_state()
        began = time.perf_counter()
        body = self._finish()
        self._observer.refitted(self._child.seconds, time.perf_counter() - began)
        return RefitResult.from_state(body)

    @override
    def state(self) -> bytes:
        assert not self._waiting
        if not self._asked and self._log.tasks:
            self._ask((STATE, b""))
        while self._asked:
            self._take_state()
        assert self._log.state is not None
        return self._log.state

    @override
    def withdraw(self) -> None:
        # A refit that is being computed is not interrupted, since a new process would take longer
        # to start. Its reply is skipped, and the child makes a new learner then.
        self._to_skip += len(self._asked)
        self._asked.clear()
        self._waiting.clear()
        self._log = LearnerLog(self._config)
        self._pending = self._log.set_up()

    @override
    def reset(self, state: bytes | None) -> None:
        if state is not None:
            opened(self._config, state)
        self.is_patient = False  # in a replay no client waits
        is_busy = bool(self._asked)
        self._asked.clear()
        self._waiting.clear()
        self._log = LearnerLog(self._config, state)
        if is_busy:
            self._restart()
        else:
            self._pending = self._log.set_up()

    def close(self) -> None:
        """End the child process."""
        self._child.close()

    def _ask(self, request: Message) -> None:
        """Send a request, after the messages that set up the learner."""
        for message in [*self._pending, request]:
            self._child.send(message)
        self._to_skip += len(self._pending)
        self._pending = []
        self._asked.append(request)

    def _take_state(self) -> None:
        """Read a requested state, which replaces the tasks before it."""
        assert self._asked[0][0] == STATE
        state = self._finish()
        self._log.replace(state, unfinished=_tasks_among(self._asked))

    def _finish(self) -> bytes:
        """Return the next reply; use another process if this one dies, hangs or fails."""
        reason = ""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                body = self._reply()
            except ChildFailed as error:
                reason = str(error)
            else:
                self._asked.popleft()
                self._tell(None)
                return body
            log.warning("the refit process failed", reason=reason, attempt=attempt)
            self._tell(reason)
            self._ask_again()
        raise RefitFailed(f"a refit failed in {ATTEMPTS} processes in a row; last: {reason}")

    def _tell(self, reason: str | None) -> None:
        """Tell the observer why the process failed, or that it works again."""
        if reason is None and self._trouble is not None:
            log.info("the refit process works again")
        if reason is not None or self._trouble is not None:
            self._trouble = None if reason is None else still(self._trouble, reason)
            self._observer.refits_fail(self._trouble)

    def _reply(self) -> bytes:
        while self._to_skip:
            self._child.reply(self._patience, self._stop)
            self._to_skip -= 1
        body = self._child.reply(self._patience, self._stop)
        self._child.note_wait()
        return body

    def _ask_again(self) -> None:
        """Send all requests without a reply to a new process."""
        requests = list(self._asked)
        self._asked.clear()
        self._restart()
        self._pending = self._log.set_up(unfinished=_tasks_among(requests))
        for request in requests:
            self._ask(request)

    def _restart(self) -> None:
        self.close()
        self._start()

    def _start(self, child: Child | None = None) -> None:
        self._child = ChildPipe(child or begin(self._processes))
        self._to_skip = 0  # replies that come before that of the oldest request
        self._pending = self._log.set_up()


def _tasks_among(requests: Iterable[Message]) -> int:
    """Return how many of these are tasks."""
    return sum(kind == TASK for kind, _ in requests)
