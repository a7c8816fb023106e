"""Tests of one family: which there are, and how the level is shared among them."""

import json
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple, Self

from online_svm.errors import InvalidSnapshot
from online_svm.metrics.sequential.finding import FindingScope
from online_svm.storage.state import as_array
from online_svm.types import Arrays

MOST_OF_A_SCOPE = 64
"""Classes, categories or slices that are watched; what comes later is not, so memory is bounded."""

_HARMONIC = sum(1.0 / k for k in range(1, MOST_OF_A_SCOPE + 1))


class Part(NamedTuple):
    """What a test is about."""

    scope: FindingScope
    name: str | None


class Family:
    """The tests of a family, in the order in which they began.

    How many classes, categories or slices there will be is not known when the first test begins.
    So the k-th of a scope has the share 1 / k, over the sum of all, of the level of its scope.

    Parameters
    ----------
    levels : mapping from a scope to the level of all tests of it together

    Examples
    --------
    >>> family = Family({"overall": 0.002, "class": 0.003})
    >>> level = family.add(Part("class", "spam"))
    >>> family.index(Part("class", "spam")), family.index(Part("class", "ham"))
    (0, None)
    """

    def __init__(self, levels: Mapping[FindingScope, float]) -> None:
        self._levels = levels
        self.parts: list[Part] = []

    def add(self, part: Part) -> float | None:
        """Begin a test; return its level, or None where its scope is full or not watched."""
        if not self.takes(part):
            return None
        self.parts.append(part)
        return self.level(len(self.parts) - 1)

    def takes(self, part: Part) -> bool:
        """Return whether `add` would begin a test."""
        same = sum(other.scope == part.scope for other in self.parts)
        return part.scope in self._levels and same < MOST_OF_A_SCOPE and part not in self.parts

    def level(self, number: int) -> float:
        """Return the level of a test, by its number."""
        scope = self.parts[number].scope
        return self._level(scope, sum(part.scope == scope for part in self.parts[: number + 1]))

    def _level(self, scope: FindingScope, place: int) -> float:
        """Return the level of the k-th test of a scope."""
        if scope == "overall":
            return self._levels[scope]
        return self._levels[scope] / (place * _HARMONIC)

    @property
    def levels(self) -> list[float]:
        """Levels of all tests."""
        found, places = [], Counter[str]()
        for part in self.parts:
            places[part.scope] += 1
            found.append(self._level(part.scope, places[part.scope]))
        return found

    def index(self, part: Part) -> int | None:
        """Return the number of a test; None where there is none."""
        return self.parts.index(part) if part in self.parts else None

    def state(self) -> Arrays:
        """Return the names of the tests."""
        return {"parts": as_array(json.dumps(self.parts).encode())}

    @classmethod
    def from_state(cls, state: Arrays, levels: Mapping[FindingScope, float]) -> Self:
        """Return the family that `state` describes.

        Raises
        ------
        InvalidSnapshot
            If the names are absent or damaged.
        """
        restored = cls(levels)
        try:
            named = [Part(*one) for one in json.loads(state["parts"].tobytes())]
            fits = all(restored.add(part) is not None for part in named)
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidSnapshot(f"monitors: {error}") from error
        if not fits:
            raise InvalidSnapshot("monitors: the names of the tests do not fit")
        return restored
