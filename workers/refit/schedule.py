"""Whose turn it is in a pool of refit processes: round robin over the learners with requests.

A request begins when a process has nothing else to do. So a learner whose refits are heavy delays
each other one by one refit at most, however many of its own wait.

A learner stays in the process that computed its last refit, where its kernel rows are. It moves to
a process without work only if that need not compute a refit again.
"""

import threading
from collections import deque

from workers.errors import RefitFailed, Stopped
from workers.refit.learner_queue import LearnerQueue, ProcessSlot, Reply
from workers.refit.messages import Message


class Schedule:
    """The queues with requests, in turn, and the processes that take them.

    Parameters
    ----------
    slots : sequence of ProcessSlot

    Attributes
    ----------
    changed : Condition
        Told of each reply; its lock guards queues and slots.
    is_closed : bool
    failure : RefitFailed or None
        Why it was closed, if not on purpose.
    """

    def __init__(self, slots: list[ProcessSlot]) -> None:
        self._slots = slots
        self.changed = threading.Condition()
        self.is_closed = False
        self.failure: RefitFailed | None = None
        self._turns: deque[LearnerQueue] = deque()  # with requests, none under way
        self._was_preferred = False

    @property
    def pressing(self) -> bool:
        """True once closed: nobody waits for a process then."""
        return self.is_closed

    def add(self, queue: LearnerQueue, request: Message) -> None:
        """Let a request wait for its turn."""
        with self.changed:
            queue.waiting.append(request)
            self._enlist(queue)

    def abandon(self, queue: LearnerQueue) -> None:
        """Let nothing more of a queue be computed, and its learner be given up."""
        with self.changed:
            # Where nothing was ever asked of it, no process has to hear of its end.
            was_used = queue.slot is not None or queue.is_under_way or queue in self._turns
            queue.is_over = True
            queue.waiting.clear()
            if queue in self._turns:
                self._turns.remove(queue)
            self._give_up(queue)
            if was_used:
                self.changed.notify_all()

    def take(self, slot: ProcessSlot) -> tuple[LearnerQueue, Message] | None:
        """Wait for work; return the request to compute, None if there are only learners to forget.

        Raises
        ------
        Stopped
            If there will be none.
        """
        with self.changed:
            slot.is_working = False
            while not self.is_closed:
                if (queue := self._next(slot)) is not None:
                    self._turns.remove(queue)
                    queue.is_under_way = slot.is_working = slot.is_begun = True
                    queue.slot = slot
                    return queue, queue.waiting.popleft()
                if slot.forgets:
                    return None
                self.changed.wait()
        raise Stopped("the pool is closed")

    def move(self, queue: LearnerQueue, slot: ProcessSlot) -> None:
        """Let a slot have a queue, and no other; whoever calls this holds the lock."""
        self._give_up(queue)
        slot.queues[queue] = 0

    def reply(self, queue: LearnerQueue, reply: Reply | RefitFailed) -> None:
        """Let the caller have what was replied."""
        with self.changed:
            if isinstance(reply, RefitFailed):
                queue.failure = reply
                queue.waiting.clear()
            else:
                queue.replies.append(reply)
            self.changed.notify_all()
        queue.wake()

    def finish(self, queue: LearnerQueue) -> None:
        """Let the next request of a queue take its turn."""
        with self.changed:
            queue.is_under_way = False
            if queue.is_over:
                self._give_up(queue)
            self._enlist(queue)

    def hurry(self) -> None:
        """Give all processes their normal priority; whoever calls this holds the lock."""
        for slot in self._slots:
            slot.hurry()

    def too_many(
        self, slot: ProcessSlot, queue: LearnerQueue, weight: int, memory: int
    ) -> LearnerQueue | None:
        """Note the bytes that a learner takes; return the one to set down, None if all may stay.

        Nobody else takes the one that is returned, until `set_down`.
        """
        with self.changed:
            if queue not in slot.queues:  # it was abandoned meanwhile
                return None
            slot.queues[queue] = weight
            oldest = next(iter(slot.queues))
            if oldest is queue or sum(slot.queues.values()) <= memory:
                return None
            if oldest in self._turns:
                self._turns.remove(oldest)
            oldest.is_under_way = True
            return oldest

    def set_down(self, queue: LearnerQueue) -> None:
        """Let no process have a learner, until it has another task."""
        with self.changed:
            self._give_up(queue)
        self.finish(queue)

    def close(self, failure: RefitFailed | None = None) -> None:
        """End all waiting."""
        with self.changed:
            self.is_closed, self.failure = True, failure
            self.changed.notify_all()

    def _give_up(self, queue: LearnerQueue) -> None:
        for slot in self._slots:
            slot.give_up(queue)

    def _enlist(self, queue: LearnerQueue) -> None:
        if queue.waiting and not queue.is_under_way and queue not in self._turns:
            self._turns.append(queue)
        self.changed.notify_all()

    def _next(self, slot: ProcessSlot) -> LearnerQueue | None:
        """Return the queue whose turn it is at this slot; one that is awaited goes first.

        Not twice in a row: a caller that awaits one reply after the other would else hold up all
        the other queues.
        """
        if not slot.is_begun and any(s.is_begun and not s.is_working for s in self._slots):
            return None  # a process that runs has nothing to do
        able = [queue for queue in self._turns if self._is_able(slot, queue)]
        preferred = [queue for queue in able if queue.is_awaited]
        self._was_preferred = bool(preferred) and not self._was_preferred
        if self._was_preferred:
            return preferred[0]
        return able[0] if able else None

    def _is_able(self, slot: ProcessSlot, queue: LearnerQueue) -> bool:
        """Return whether a slot may take a queue: its own, or one that may move."""
        home = next((other for other in self._slots if queue in other.queues), None)
        return home in (None, slot) or (home.is_working and not queue.log.tasks)
