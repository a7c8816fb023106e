"""The program of a refit process: answer messages on standard input until it closes.

It imports only what refits need, because a starting worker waits for it.
"""

import ctypes
import os
import sys
import time
from contextlib import suppress
from typing import IO

from workers.python_process import importing
from workers.refit.process import (
    CONFIG,
    DONE,
    FAILED,
    FIT,
    FORGET,
    LOAD,
    SELECT,
    STATE,
    TASK,
    WEIGH,
    WEIGHT,
    Message,
    read_message,
    write_message,
)

with importing():
    from online_svm.config import PredictorConfig
    from online_svm.refit.learner import Learner
    from online_svm.refit.memory_trees import fitted_bytes
    from online_svm.refit.task import RefitTask
    from online_svm.storage.memory import array_bytes


class Learners:
    """The learners of this process, one per feed; a message is for the last selected one."""

    def __init__(self) -> None:
        self._key = b""
        self._learners: dict[bytes, Learner] = {}

    def answer(self, kind: bytes, body: bytes) -> Message:
        """Return the reply to a message."""
        try:
            return DONE, self._done(kind, body)
        except Exception as error:  # the parent reports any error and tries another process
            return FAILED, repr(error).encode()

    def _done(self, kind: bytes, body: bytes) -> bytes:
        if kind == SELECT:
            self._key = body
        elif kind == FORGET:
            self._learners.pop(body, None)
            _return_memory()
        elif kind == CONFIG:
            self._learners[self._key] = Learner(PredictorConfig.model_validate_json(body))
        elif kind == LOAD:
            config = self._learners[self._key].config
            self._learners[self._key] = Learner.from_state(body, config)
        elif kind == WEIGH:
            return WEIGHT.pack(array_bytes(self._learners[self._key]))
        elif kind == STATE:
            return self._learners[self._key].state()
        elif kind == TASK:
            return self._learners[self._key].refit(RefitTask.from_state(body)).state()
        elif kind == FIT:
            return fitted_bytes(body)
        else:
            raise ValueError(f"a message of the kind {kind!r}")
        return b""


def _return_memory() -> None:
    """Make the C library return freed memory to the system; see malloc_trim(3)."""
    with suppress(AttributeError, OSError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)


def serve(source: IO[bytes], target: IO[bytes]) -> None:
    """Answer the messages from one pipe on the other, until it is closed."""
    learners = Learners()
    while True:
        try:
            message = read_message(source)
            began = time.perf_counter()
            answer = learners.answer(*message)
            write_message(target, *answer, seconds=time.perf_counter() - began)
        except (EOFError, BrokenPipeError):
            return


def main() -> None:
    """Serve on standard input and output; redirect other output to standard error."""
    target = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    serve(sys.stdin.buffer, target)


if __name__ == "__main__":
    main()
