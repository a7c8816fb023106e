"""The learners of a refit process, and its answers to messages."""

import ctypes
from contextlib import suppress

from online_svm.config import PredictorConfig
from online_svm.refit.learner import Learner
from online_svm.refit.task import RefitTask
from online_svm.storage.memory import array_bytes
from workers.refit.messages import (
    CONFIG,
    DONE,
    FAILED,
    FORGET,
    LOAD,
    SELECT,
    STATE,
    TASK,
    WEIGH,
    WEIGHT,
    Message,
)


class ServedLearners:
    """The learners of a process, one a feed; a message goes to the one that was selected last."""

    def __init__(self) -> None:
        self._key = b""
        self._learners: dict[bytes, Learner] = {}

    def answer(self, kind: bytes, body: bytes) -> Message:
        """Return the answer to a message."""
        try:
            return DONE, self._done(kind, body)
        except Exception as error:  # the parent reports any error and tries another process
            return FAILED, repr(error).encode()

    def _done(self, kind: bytes, body: bytes) -> bytes:
        if kind == SELECT:
            self._key = body
        elif kind == FORGET:
            self._learners.pop(body, None)
            _give_back()
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
        else:
            raise ValueError(f"a message of the kind {kind!r}")
        return b""


def _give_back() -> None:
    """Let the system have the memory of what was given up: the C library keeps it otherwise.

    See malloc_trim(3).
    """
    with suppress(AttributeError, OSError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)
