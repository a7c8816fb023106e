"""Refits in a process of their own, so that the feed is answered while one is computed.

The result takes effect at an example number that was fixed when the refit began, so the process
may be slow, die or hang without a trace in any answer: another one is set up from the last state
that was fetched, the tasks since are computed again, and the feed waits meanwhile.

refit_child.py is the other end of the pipe, and says what goes through it.
"""

from collections import deque
from typing import Self

import structlog
from typing_extensions import override

from online_svm.config import PredictorConfig
from online_svm.refit.state_checks import opened
from online_svm.refit.task import RefitResult, RefitTask, Refitter
from workers.errors import RefitFailed
from workers.refit.child import CONFIG, LOAD, STATE, TASK, Child, Message
from workers.refit.pipe import ChildFailed, ChildPipe
from workers.stop import Stop

ATTEMPTS = 3
"""Processes to try a task in before giving up: a third failure is no accident."""

PATIENCE = 300.0
"""Seconds for one exchange before the process counts as hung. Only a large window comes near."""

# Fetching the state costs about as much as sending it; when the tasks since weigh more than it
# does, and more than this, the state replaces them.
_MIN_HISTORY_BYTES = 1 << 20

log = structlog.get_logger("online_svm.refit")


class ProcessRefitter(Refitter):
    """Computes refits in a child process; a `Refitter`.

    What is asked for waits in the pipe while the child is at work, so that it goes from one task
    to the next without a pause, whatever this process is doing.

    Parameters
    ----------
    config : PredictorConfig
    patience : float
        Seconds for one exchange before the process counts as hung.
    stop : Stop, optional
        When this stop is asked for, a result is not awaited longer than half its grace period.
    child : Popen, optional
        A process that was begun already, to be the first.
    """

    def __init__(
        self,
        config: PredictorConfig,
        patience: float = PATIENCE,
        stop: Stop | None = None,
        child: Child | None = None,
    ) -> None:
        self._config = config
        self._patience, self._stop = patience, stop or Stop()
        self._base: bytes | None = None
        self._history: list[Message] = []  # the tasks since, finished or not
        self._waiting: list[Message] = []  # tasks that were not begun
        self._asked: deque[Message] = deque()  # what has no reply yet
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
        return bool(self._asked) and not child.stands_back and not child.has_replied

    @override
    def submit(self, task: RefitTask) -> None:
        self._waiting.append((TASK, task.state()))

    @override
    def begin(self) -> None:
        waiting, self._waiting = self._waiting, []
        for request in waiting:
            self._hand_over(request)

    def _hand_over(self, request: Message) -> None:
        self._history.append(request)
        self._ask(request)
        weight = sum(len(body) for _, body in self._history)
        is_asked = any(kind == STATE for kind, _ in self._asked)
        if weight > max(_MIN_HISTORY_BYTES, len(self._base or b"")) and not is_asked:
            self._ask((STATE, b""))

    @override
    def result(self) -> RefitResult:
        """Return the next result, waiting for it where necessary.

        Raises
        ------
        RefitFailed
            If the task failed in several processes in a row.
        Stopped
            If a stop was asked for and the result does not come.
        """
        self.begin()
        while self._asked[0][0] == STATE:
            self._take_state()
        return RefitResult.from_state(self._finish())

    @override
    def state(self) -> bytes:
        assert not self._waiting
        if not self._asked and self._history:
            self._ask((STATE, b""))
        while self._asked:
            self._take_state()
        assert self._base is not None
        return self._base

    @override
    def reset(self, state: bytes | None) -> None:
        if state is not None:
            opened(self._config, state)
        is_busy = bool(self._asked)
        self._asked.clear()
        self._waiting.clear()
        self._base, self._history = state, []
        if is_busy:
            self._restart()
        else:
            self._pending = self._set_up()

    def close(self) -> None:
        """End the child process."""
        self._child.close()

    def _ask(self, request: Message) -> None:
        """Send a request, after whatever sets the learner up for it."""
        for message in [*self._pending, request]:
            self._child.send(message)
        self._to_skip += len(self._pending)
        self._pending = []
        self._asked.append(request)

    def _take_state(self) -> None:
        """Let the state that was asked for replace the tasks before it."""
        assert self._asked[0][0] == STATE
        self._base = self._finish()
        self._history = [request for request in self._asked if request[0] == TASK]

    def _finish(self) -> bytes:
        """Return the next reply's body, from another process if this one dies, hangs or fails."""
        reason = ""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                body = self._reply()
            except ChildFailed as error:
                reason = str(error)
            else:
                self._asked.popleft()
                return body
            log.warning("the refit process failed", reason=reason, attempt=attempt)
            self._ask_again()
        raise RefitFailed(f"a refit failed in {ATTEMPTS} processes in a row; last: {reason}")

    def _reply(self) -> bytes:
        while self._to_skip:
            self._child.reply(self._patience, self._stop)
            self._to_skip -= 1
        body = self._child.reply(self._patience, self._stop)
        self._child.note_wait()
        return body

    def _ask_again(self) -> None:
        """Send everything that has no reply yet to another process."""
        requests = list(self._asked)
        unfinished = sum(kind == TASK for kind, _ in requests)
        self._asked.clear()
        self._restart()
        self._pending = self._pending[: len(self._pending) - unfinished]
        for request in requests:
            self._ask(request)

    def _set_up(self) -> list[Message]:
        """Return the messages that bring any child to where the learner is."""
        config = self._config.model_dump_json().encode()
        load = [] if self._base is None else [(LOAD, self._base)]
        return [(CONFIG, config), *load, *self._history]

    def _restart(self) -> None:
        self.close()
        self._start()

    def _start(self, child: Child | None = None) -> None:
        self._child = ChildPipe(child)
        self._to_skip = 0  # replies to come before the one to the oldest request
        self._pending = self._set_up()
