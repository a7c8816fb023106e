"""A learner of a pool, and the requests for it: they are answered in order, one at a time."""

from collections import deque
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from online_svm.config import PredictorConfig
from workers.errors import RefitFailed
from workers.refit.child import FORGET, SELECT, STATE, Message
from workers.refit.learner_log import LearnerLog
from workers.refit.observer import RefitObserver
from workers.trouble import Trouble

if TYPE_CHECKING:
    from workers.refit.process_slot import ProcessSlot

FETCH: Message = (STATE, b"for the log")
"""A request for the state of the learner that has no reply: its log holds the state then."""

_KEYS = count()


class Reply(NamedTuple):
    """What a process replied, and the seconds that it computed."""

    body: bytes
    seconds: float


class LearnerQueue:
    """The requests for one learner of one feed. The schedule's lock guards all but the log.

    Parameters
    ----------
    config : PredictorConfig
    state : bytes or None
        Of the learner to continue from.
    observer : RefitObserver
    wake : callable
        Called when there is a reply, by the thread that computes.

    Attributes
    ----------
    log : LearnerLog
        Holds the finished tasks. It belongs to whoever computes a request.
    waiting : deque of Message
        Requests that no process has.
    replies : deque of Reply
        Those that were not taken yet.
    failure : RefitFailed or None
        Why there will be no more replies.
    trouble : Trouble or None
        Why the last process that had a request failed.
    slot : ProcessSlot or None
        The one that took the last request.
    is_under_way : bool
        Whether a process computes a request.
    is_awaited : bool
        Whether a caller does nothing else until there is a reply.
    is_over : bool
        Whether nobody wants a reply any more.
    """

    def __init__(
        self,
        config: PredictorConfig,
        state: bytes | None,
        observer: RefitObserver,
        wake: Callable[[], None],
    ) -> None:
        self._key = str(next(_KEYS)).encode()
        self.log, self.observer, self.wake = LearnerLog(config, state), observer, wake
        self.waiting: deque[Message] = deque()
        self.replies: deque[Reply] = deque()
        self.failure: RefitFailed | None = None
        self.trouble: Trouble | None = None
        self.slot: ProcessSlot | None = None
        self.is_under_way = self.is_awaited = self.is_over = False

    @property
    def select(self) -> Message:
        """The message before those for this learner."""
        return SELECT, self._key

    @property
    def forget(self) -> Message:
        """The message by which a process gives the learner up."""
        return FORGET, self._key

    @property
    def has_reply(self) -> bool:
        """Whether a caller need not wait."""
        return bool(self.replies) or self.failure is not None

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to compute."""
        return not self.waiting and not self.is_under_way
