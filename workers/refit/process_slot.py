"""A process of a pool as its schedule sees it: what it holds, and how urgent it is."""

from collections import OrderedDict
from typing import TYPE_CHECKING

from workers.refit.child import Message
from workers.refit.pipe import ChildPipe

if TYPE_CHECKING:
    from workers.refit.learner_queue import LearnerQueue


class ProcessSlot:
    """What is known of one process. The schedule's lock guards all of it.

    Attributes
    ----------
    queues : ordered mapping
        Those whose learners the process holds, the one that computed last at the end; to the bytes
        that each learner takes.
    left : list of Message
        By which it is told to give learners up.
    is_begun : bool
        Whether there is, or soon will be, a process.
    is_working : bool
    child : ChildPipe or None
        The present process.
    """

    def __init__(self) -> None:
        self.queues: OrderedDict[LearnerQueue, int] = OrderedDict()
        self.left: list[Message] = []
        self.is_begun = self.is_working = False
        self.child: ChildPipe | None = None

    @property
    def is_urgent(self) -> bool:
        """Whether it computes now, at normal priority."""
        return self.is_working and self.child is not None and not self.child.has_low_priority

    def give_up(self, queue: "LearnerQueue") -> None:
        """Let the process forget a learner, if it holds it."""
        if queue in self.queues:
            del self.queues[queue]
            self.left.append(queue.forget)

    def hurry(self) -> None:
        """Give the process its normal priority."""
        if self.child is not None:
            self.child.hurry()

    def note_wait(self, waited: float) -> None:
        """Choose the priority of the process by the seconds that a result was waited for."""
        if self.child is not None:
            self.child.note_wait(waited)
