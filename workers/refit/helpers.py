"""Helpers of a refit process: each holds some members of the committee, in a process of its own.

They are begun before the slow imports, which then take place in all processes at a time.
"""

import json
import math
import select
from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

from workers.errors import Stopped
from workers.refit.child import CONFIG, MEMBERS, begin_helper
from workers.refit.pipe import ChildPipe

if TYPE_CHECKING:
    from online_svm.config import PredictorConfig
    from online_svm.refit.committee.progressive_scores import ProgressiveScores


class ParentGone(Exception):
    """The process that this one answers has ended."""


class Helpers:
    """The helpers of this process, if any. Each of them gives one reply to a request.

    A helper that fails is not replaced here: this process then reports an error, and is replaced
    with all of them. Nor is a hung one noticed here, but where this process is awaited.

    Parameters
    ----------
    count : int
    source : int
        Descriptor of the pipe of the process that this one answers: where it is closed, no helper
        is waited for.
    """

    def __init__(self, count: int, source: int) -> None:
        self._pipes = [ChildPipe(begin_helper()) for _ in range(count)]
        self._parent = _Parent(source)
        self._numbers: list[tuple[int, ...]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for pipe in self._pipes:
            pipe.close()

    def share(self, config: "PredictorConfig") -> tuple[int, ...]:
        """Give each helper some members of the committee; return those that are left for here."""
        own, *self._numbers = shares(len(config.members), 1 + len(self._pipes))
        self.ask(CONFIG, config.model_dump_json().encode())
        self.replies()
        for pipe, numbers in zip(self._pipes, self._numbers, strict=True):
            pipe.send((MEMBERS, json.dumps(numbers).encode()))
        self.replies()
        return own

    def ask(self, kind: bytes, body: bytes = b"") -> None:
        """Send a request to each helper."""
        for pipe in self._pipes:
            pipe.send((kind, body))

    def replies(self) -> list[bytes]:
        """Wait for the reply of each helper.

        Raises
        ------
        ChildFailed
            If one of them died, or reported an error.
        ParentGone
            If nobody waits for what this process does.
        """
        try:
            return [pipe.reply(math.inf, self._parent) for pipe in self._pipes]
        except Stopped:
            raise ParentGone from None

    def said(self) -> "list[ProgressiveScores]":
        """Wait for what the members of each helper say of a task that it was asked."""
        from online_svm.refit.committee.progressive_scores import ProgressiveScores

        return [ProgressiveScores.from_state(reply) for reply in self.replies()]

    def states(self) -> dict[tuple[int, ...], bytes]:
        """Wait for the states that the helpers were asked for, by the numbers of their members."""
        return dict(zip(self._numbers, self.replies(), strict=True))


def shares(members: int, processes: int) -> Sequence[tuple[int, ...]]:
    """Return the numbers of the members of each process, dealt out in turn.

    Examples
    --------
    >>> shares(members=3, processes=2)
    [(0, 2), (1,)]
    """
    return [tuple(range(first, members, processes)) for first in range(processes)]


class _Parent:
    """Whether the pipe of the process that this one answers was closed."""

    def __init__(self, source: int) -> None:
        self._watch = select.poll()
        self._watch.register(source, 0)  # its end is told without being asked for

    @property
    def pressing(self) -> bool:
        return bool(self._watch.poll(0))
