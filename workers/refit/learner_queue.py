"""The learners of a pool with their requests, and the processes that hold them, for the schedule.

The requests for one learner are answered in order, one at a time.
"""

from collections import OrderedDict, deque
from collections.abc import Callable
from itertools import count
from typing import NamedTuple

from online_svm.config import PredictorConfig
from workers.errors import RefitFailed
from workers.refit.learner_log import LearnerLog
from workers.refit.messages import FORGET, SELECT, STATE, Message
from workers.refit.observer import RefitObserver
from workers.refit.pipe import ChildPipe
from workers.trouble import Trouble

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


class ProcessSlot:
    """What is known of one process. The schedule's lock guards all of it.

    Attributes
    ----------
    queues : ordered mapping
        Those whose learners the process holds, the one that computed last at the end; to the bytes
        that each learner takes.
    forgets : list of Message
        To be sent: each lets the process forget a learner.
    is_begun : bool
        Whether there is, or soon will be, a process.
    is_working : bool
    child : ChildPipe or None
        The present process.
    """

    def __init__(self) -> None:
        self.queues: OrderedDict[LearnerQueue, int] = OrderedDict()
        self.forgets: list[Message] = []
        self.is_begun = self.is_working = False
        self.child: ChildPipe | None = None

    @property
    def is_urgent(self) -> bool:
        """Whether it computes now, at normal priority."""
        return self.is_working and self.child is not None and not self.child.has_low_priority

    def give_up(self, queue: LearnerQueue) -> None:
        """Let the process forget a learner, if it holds it."""
        if queue in self.queues:
            del self.queues[queue]
            self.forgets.append(queue.forget)

    def hurry(self) -> None:
        """Give the process its normal priority."""
        if self.child is not None:
            self.child.hurry()

    def note_wait(self, waited: float) -> None:
        """Choose the priority of the process by the seconds that a result was waited for."""
        if self.child is not None:
            self.child.note_wait(waited)
