"""Whose turn it is in a pool of refit processes: round robin over the learners with requests.

A request begins when a process has nothing else to do. So a learner whose refits are heavy delays
each other one by one refit at most, however many of its own wait.

A learner stays in the process that computed its last refit, where its kernel rows are. It moves to
a process without work only if that need not compute a refit again.
"""

import threading
from collections import deque

from workers.errors import RefitFailed, Stopped
from workers.refit.child import Message
from workers.refit.line import Line, Reply
from workers.refit.seat import Seat


class Schedule:
    """The lines with requests, in turn, and the processes that take them.

    Parameters
    ----------
    seats : sequence of Seat

    Attributes
    ----------
    changed : Condition
        Told of each reply; its lock guards lines and seats.
    is_closed : bool
    failure : RefitFailed or None
        Why it was closed, if not on purpose.
    """

    def __init__(self, seats: list[Seat]) -> None:
        self._seats = seats
        self.changed = threading.Condition()
        self.is_closed = False
        self.failure: RefitFailed | None = None
        self._turns: deque[Line] = deque()  # lines with requests, none of which is under way
        self._was_preferred = False

    @property
    def pressing(self) -> bool:
        """Whether processes are awaited no more."""
        return self.is_closed

    def add(self, line: Line, request: Message) -> None:
        """Let a request wait for its turn."""
        with self.changed:
            line.waiting.append(request)
            self._queue(line)

    def abandon(self, line: Line) -> None:
        """Let nothing more of a line be computed, and its learner be given up."""
        with self.changed:
            # Where nothing was ever asked of it, no process has to hear of its end.
            was_used = line.seat is not None or line.is_under_way or line in self._turns
            line.is_over = True
            line.waiting.clear()
            if line in self._turns:
                self._turns.remove(line)
            self._give_up(line)
            if was_used:
                self.changed.notify_all()

    def take(self, seat: Seat) -> tuple[Line, Message] | None:
        """Wait for work; return the request to compute, None if there are only learners to forget.

        Raises
        ------
        Stopped
            If there will be none.
        """
        with self.changed:
            seat.is_working = False
            while not self.is_closed:
                if (line := self._next(seat)) is not None:
                    self._turns.remove(line)
                    line.is_under_way = seat.is_working = seat.is_begun = True
                    line.seat = seat
                    return line, line.waiting.popleft()
                if seat.left:
                    return None
                self.changed.wait()
        raise Stopped("the pool is closed")

    def move(self, line: Line, seat: Seat) -> None:
        """Let a seat have a line, and no other; whoever calls this holds the lock."""
        self._give_up(line)
        seat.lines[line] = 0

    def reply(self, line: Line, reply: Reply | RefitFailed) -> None:
        """Let the caller have what was replied."""
        with self.changed:
            if isinstance(reply, RefitFailed):
                line.failure = reply
                line.waiting.clear()
            else:
                line.replies.append(reply)
            self.changed.notify_all()
        line.wake()

    def finish(self, line: Line) -> None:
        """Let the next request of a line take its turn."""
        with self.changed:
            line.is_under_way = False
            if line.is_over:
                self._give_up(line)
            self._queue(line)

    def hurry(self) -> None:
        """Give all processes their normal priority; whoever calls this holds the lock."""
        for seat in self._seats:
            seat.hurry()

    def too_many(self, seat: Seat, line: Line, weight: int, memory: int) -> Line | None:
        """Note the bytes that a learner takes; return the one to set down, None if all may stay.

        Nobody else takes the one that is returned, until `set_down`.
        """
        with self.changed:
            if line not in seat.lines:  # it was abandoned meanwhile
                return None
            seat.lines[line] = weight
            oldest = next(iter(seat.lines))
            if oldest is line or sum(seat.lines.values()) <= memory:
                return None
            if oldest in self._turns:
                self._turns.remove(oldest)
            oldest.is_under_way = True
            return oldest

    def set_down(self, line: Line) -> None:
        """Let no process have a learner, until it has another task."""
        with self.changed:
            self._give_up(line)
        self.finish(line)

    def close(self, failure: RefitFailed | None = None) -> None:
        """End all waiting."""
        with self.changed:
            self.is_closed, self.failure = True, failure
            self.changed.notify_all()

    def _give_up(self, line: Line) -> None:
        for seat in self._seats:
            seat.give_up(line)

    def _queue(self, line: Line) -> None:
        if line.waiting and not line.is_under_way and line not in self._turns:
            self._turns.append(line)
        self.changed.notify_all()

    def _next(self, seat: Seat) -> Line | None:
        """Return the line whose turn it is at this seat; one that is awaited goes first.

        Not twice in a row: a caller that awaits one reply after the other would else hold up all
        the other lines.
        """
        if not seat.is_begun and any(s.is_begun and not s.is_working for s in self._seats):
            return None  # a process that runs has nothing to do
        able = [line for line in self._turns if self._is_able(seat, line)]
        preferred = [line for line in able if line.is_awaited]
        self._was_preferred = bool(preferred) and not self._was_preferred
        if self._was_preferred:
            return preferred[0]
        return able[0] if able else None

    def _is_able(self, seat: Seat, line: Line) -> bool:
        """Return whether a seat may take a line: its own, or one that may move."""
        home = next((other for other in self._seats if line in other.lines), None)
        return home in (None, seat) or (home.is_working and not line.log.tasks)
