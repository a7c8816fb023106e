"""Refits in a process of their own, so that the feed is answered while one is computed.

The result takes effect at an example number that was fixed when the refit began, so the process
may be slow, die or hang without a trace in any answer: another one is set up from the last state
that was fetched, the tasks since are computed again, and the feed waits meanwhile.

refit_child.py is the other end of the pipe, and says what goes through it.
"""

import threading
import time
from contextlib import suppress
from typing import Self

import structlog

from online_svm.config import PredictorConfig
from online_svm.learner_state import opened
from online_svm.refit import RefitResult, RefitTask
from workers import refit_child
from workers.errors import RefitFailed, Stopped
from workers.refit_child import (
    CONFIG,
    FAILED,
    LOAD,
    STATE,
    TASK,
    Child,
    Message,
    read_message,
    write_message,
)
from workers.stopping import Stop

ATTEMPTS = 3
"""Processes to try a task in before giving up: a third failure is no accident."""

PATIENCE = 300.0
"""Seconds for one exchange before the process counts as hung. Only a large window comes near."""

# Seconds between two looks at the stop while a reply is awaited.
_LOOK = 0.2

# Fetching the state costs about as much as sending it; when the tasks since weigh more than it
# does, and more than this, the state replaces them.
_MIN_HISTORY_BYTES = 1 << 20

log = structlog.get_logger("online_svm.refit")


class ProcessRefitter:
    """Computes refits in a child process; a `Refitter`.

    Parameters
    ----------
    config : PredictorConfig
    patience : float
        Seconds for one exchange before the process counts as hung.
    stop : Stop, optional
        When this stop is asked for, a result is not awaited longer than half its grace period.
    """

    def __init__(
        self, config: PredictorConfig, patience: float = PATIENCE, stop: Stop | None = None
    ) -> None:
        self._config = config
        self._patience, self._stop = patience, stop or Stop()
        self._base: bytes | None = None
        self._history: list[Message] = []
        self._exchange: _Exchange | None = None
        self._start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """Process id of the present child."""
        return self._child.pid

    def submit(self, task: RefitTask) -> None:
        """Begin the refit in the background."""
        request = (TASK, task.to_bytes())
        self._exchange = self._ask(request)
        self._history.append(request)

    def result(self) -> RefitResult:
        """Return the result of the submitted task, waiting for it where necessary.

        Raises
        ------
        RefitFailed
            If the task failed in several processes in a row.
        Stopped
            If a stop was asked for and the result does not come.
        """
        assert self._exchange is not None
        exchange, self._exchange = self._exchange, None
        body = self._finish(exchange)
        weight = sum(len(task) for _, task in self._history)
        if weight > max(_MIN_HISTORY_BYTES, len(self._base or b"")):
            self.state()
        return RefitResult.from_bytes(body)

    def state(self) -> bytes:
        """Return the learner after the last finished task."""
        if self._history:
            self._base = self._finish(self._ask((STATE, b"")))
            self._history = []
        assert self._base is not None
        return self._base

    def reset(self, state: bytes | None) -> None:
        """Continue from `state`, or from nothing; a task under way is forgotten.

        Raises
        ------
        InvalidSnapshot
            If the state cannot be read; it is looked at here, before a task depends on it.
        """
        if state is not None:
            opened(self._config, state)
        is_busy, self._exchange = self._exchange is not None, None
        self._base, self._history = state, []
        if is_busy:
            self._restart()
        else:
            self._pending = self._set_up()

    def close(self) -> None:
        """End the child process."""
        refit_child.end(self._child)

    def _ask(self, request: Message) -> "_Exchange":
        """Send a request, after whatever sets the learner up for it."""
        messages, self._pending = [*self._pending, request], []
        return _Exchange(self._child, messages)

    def _finish(self, exchange: "_Exchange") -> bytes:
        """Return the reply's body, from another process if this one dies, hangs or fails."""
        reason = ""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return exchange.reply(self._patience, self._stop)
            except _ChildFailed as error:
                reason = str(error)
            log.warning("the refit process failed", reason=reason, attempt=attempt)
            request = exchange.messages[-1]
            self._restart()
            if request in self._history[-1:]:
                self._pending.pop()  # it is the request itself
            exchange = self._ask(request)
        raise RefitFailed(f"a refit failed in {ATTEMPTS} processes in a row; last: {reason}")

    def _set_up(self) -> list[Message]:
        """Return the messages that bring any child to where the learner is."""
        load = [] if self._base is None else [(LOAD, self._base)]
        config = self._config.model_dump_json().encode()
        return [(CONFIG, config), *load, *self._history]

    def _restart(self) -> None:
        self.close()
        self._start()

    def _start(self) -> None:
        self._child = refit_child.begin()
        self._pending = self._set_up()


class _ChildFailed(Exception):
    """The child died, hung, or reported an error."""


class _Exchange:
    """Messages to the child, each with its reply, by a thread: killing the child ends it."""

    def __init__(self, child: Child, messages: list[Message]) -> None:
        self.messages = messages
        self._child = child
        self._reply: Message | None = None
        self._thread = threading.Thread(target=self._run, name="refit", daemon=True)
        self._thread.start()

    def reply(self, patience: float, stop: Stop) -> bytes:
        """Return the body of the last reply.

        Raises
        ------
        _ChildFailed
            If the child died, reported an error, or hung and was killed.
        Stopped
            If the stop is pressing.
        """
        deadline = time.monotonic() + patience
        while self._thread.is_alive() and time.monotonic() < deadline:
            if stop.pressing:
                raise Stopped("stopped while a refit was awaited")
            self._thread.join(min(_LOOK, max(0.0, deadline - time.monotonic())))
        if self._thread.is_alive():
            self._child.kill()
            self._thread.join()
            raise _ChildFailed(f"no reply within {patience:g} s")
        if self._reply is None:
            raise _ChildFailed("it died")
        kind, body = self._reply
        if kind == FAILED:
            raise _ChildFailed(body.decode(errors="replace"))
        return body

    def _run(self) -> None:
        stdin, stdout = self._child.stdin, self._child.stdout
        assert stdin is not None
        assert stdout is not None
        with suppress(OSError, EOFError, ValueError):  # ValueError: the pipe was closed here
            for kind, body in self.messages:
                write_message(stdin, kind, body)
                reply = read_message(stdout)
                if reply[0] == FAILED:
                    break
            self._reply = reply
