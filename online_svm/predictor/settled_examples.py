"""SettledExamples: ids of examples that wait no longer, and of labels that came too soon."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from online_svm.errors import InvalidExample
from online_svm.storage.state import State

GIVEN_UP = -1
"""In the place of the number of a learned example: it was not learned."""

EARLY_KEPT = 1000
"""Ids of labels for unknown examples that are remembered, to count examples that come after."""


@dataclass(slots=True)
class SettledExample:
    """What is remembered of an example that waits no longer.

    Attributes
    ----------
    n : int
        Number of the learned example, or `GIVEN_UP`.
    label : str or None
        What it was learned with; None where that was a probability, or it was not learned.
    """

    n: int
    label: str | None


class SettledExamples:
    """Examples that were learned or given up, by their ids, in the order in which they were.

    Parameters
    ----------
    most : int
        The oldest are forgotten beyond so many.

    Examples
    --------
    >>> settled = SettledExamples(most=100)
    >>> settled.remember("a", 7, "yes")
    >>> settled.relabel("a", "no", first=0)
    ('yes', 7)
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._by_id: dict[str, SettledExample] = {}
        self._early: dict[str, None] = {}

    def remember(self, id: str, n: int, label: str | None) -> None:
        """Note what became of an example."""
        self._by_id[id] = SettledExample(n, label)
        _forget_oldest(self._by_id, self._most)

    def came_after_its_label(self, id: str) -> bool:
        """Forget what is known of an id whose example comes now; return whether its label had."""
        self._by_id.pop(id, None)
        return self._early.pop(id, False) is None

    def relabel(self, id: str, label: str, first: int) -> tuple[str, int]:
        """Take a label of an example that waits no longer; return the one before, and its number.

        Parameters
        ----------
        id, label : str
        first : int
            Number of the first example of the window.

        Raises
        ------
        InvalidExample
            If it cannot be used: ``unknown_id``, ``after_horizon``, ``after_window`` or
            ``conflict``. Nothing has changed then, but that an unknown id is remembered.
        """
        settled = self._by_id.get(id)
        if settled is None:
            self._early[id] = None
            _forget_oldest(self._early, EARLY_KEPT)
            raise InvalidExample(
                "unknown_id",
                f"no example with id {id[:40]!r} waits for a label: none came, or too long ago, or "
                "it comes later; send a label after its example",
            )
        if settled.n == GIVEN_UP:
            raise InvalidExample(
                "after_horizon",
                f"the example with id {id[:40]!r} was given up without a label before; a longer "
                "horizon waits longer",
            )
        if settled.label is None:
            raise has_probability(id)
        if settled.label != label and settled.n < first:
            raise InvalidExample(
                "after_window",
                f"the example with id {id[:40]!r} has left the window: another label would "
                "change nothing",
            )
        before, settled.label = settled.label, label
        return before, settled.n

    def state(self) -> State:
        """Return all that is remembered."""
        numbers = [settled.n for settled in self._by_id.values()]
        header = {
            "early": list(self._early),
            "settled_ids": list(self._by_id),
            "settled_labels": [settled.label for settled in self._by_id.values()],
        }
        return State(header, {"settled": np.array(numbers, dtype=np.int64)})

    @classmethod
    def from_state(cls, state: State, most: int) -> Self:
        """Return what `state` describes.

        Raises
        ------
        LookupError, TypeError, ValueError
            If a part is missing, or they do not fit one another.
        """
        header, arrays = state
        restored = cls(most)
        restored._early = dict.fromkeys(header["early"])
        parts = (header["settled_ids"], arrays["settled"].tolist(), header["settled_labels"])
        restored._by_id = {
            id: SettledExample(n, label) for id, n, label in zip(*parts, strict=True)
        }
        return restored


def has_probability(id: str) -> InvalidExample:
    """Return the error of a label for an example that came with a probability."""
    return InvalidExample(
        "conflict",
        f"the example with id {id[:40]!r} came with a probability in the place of a label",
    )


def _forget_oldest(remembered: dict[str, Any], most: int) -> None:
    while len(remembered) > most:
        del remembered[next(iter(remembered))]
