"""Tests of one family: how the level is shared among them, what they find, and which to reject."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from online_svm.compiled.elementary import logs
from online_svm.errors import InvalidInput, InvalidSnapshot
from online_svm.storage.state import as_array
from online_svm.stream.alarm import AlarmKind, AlarmScope
from online_svm.types import Arrays, Floats


@dataclass(frozen=True, slots=True)
class Finding:
    """A sequential test whose wealth passed its threshold.

    Attributes
    ----------
    row : int
        Index of the row that did it, in the call of `update`.
    kind : {"calibration", "exchangeability", "comparison"}
        What does not hold: the announced probability is off by more than the tolerance; the
        examples are not exchangeable; two maps are not equally good.
    scope : {"overall", "class", "category", "bin", "slice", "scores"}
        Which part of the examples the test is about.
    name : str or None
        Which class, category, bin or slice.
    monitor : str
        Name of the test.
    log_wealth, threshold : float
        Natural logarithms; the wealth is a supermartingale that begins at 1 while its null holds.
    since : int
        Examples learned before the first row that the test looked at.
    estimate, lower, upper : float or None
        Mean of y - p over the rows that tell most, with its confidence sequence; None where the
        test has none.
    moved : tuple of (int, float)
        Of a test of exchangeability: the features that moved most, by index, each with its recent
        mean less its usual one, in standard deviations.
    """

    row: int
    kind: AlarmKind
    scope: AlarmScope
    name: str | None
    monitor: str
    log_wealth: float
    threshold: float
    since: int
    estimate: float | None = None
    lower: float | None = None
    upper: float | None = None
    moved: tuple[tuple[int, float], ...] = ()


MOST_OF_A_SCOPE = 64
"""Classes, categories or slices that are watched; what comes later is not, so memory is bounded."""

_HARMONIC = sum(1.0 / k for k in range(1, MOST_OF_A_SCOPE + 1))


class Subject(NamedTuple):
    """What a test is about."""

    scope: AlarmScope
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
    >>> level = family.add(Subject("class", "spam"))
    >>> family.index(Subject("class", "spam")), family.index(Subject("class", "ham"))
    (0, None)
    """

    def __init__(self, levels: Mapping[AlarmScope, float]) -> None:
        self._levels = levels
        self.parts: list[Subject] = []

    def add(self, part: Subject) -> float | None:
        """Begin a test; return its level, or None where its scope is full or not watched."""
        if not self.takes(part):
            return None
        self.parts.append(part)
        return self.level(len(self.parts) - 1)

    def takes(self, part: Subject) -> bool:
        """Return whether `add` would begin a test."""
        same = sum(other.scope == part.scope for other in self.parts)
        return part.scope in self._levels and same < MOST_OF_A_SCOPE and part not in self.parts

    def level(self, number: int) -> float:
        """Return the level of a test, by its number."""
        scope = self.parts[number].scope
        return self._level(scope, sum(part.scope == scope for part in self.parts[: number + 1]))

    def _level(self, scope: AlarmScope, place: int) -> float:
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

    def index(self, part: Subject) -> int | None:
        """Return the number of a test; None where there is none."""
        return self.parts.index(part) if part in self.parts else None

    def state(self) -> Arrays:
        """Return the names of the tests."""
        return {"parts": as_array(json.dumps(self.parts).encode())}

    @classmethod
    def from_state(cls, state: Arrays, levels: Mapping[AlarmScope, float]) -> Self:
        """Return the family that `state` describes.

        Raises
        ------
        InvalidSnapshot
            If the names are absent or damaged.
        """
        restored = cls(levels)
        try:
            named = [Subject(*one) for one in json.loads(state["parts"].tobytes())]
            fits = all(restored.add(part) is not None for part in named)
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidSnapshot(f"monitors: {error}") from error
        if not fits:
            raise InvalidSnapshot("monitors: the names of the tests do not fit")
        return restored


def e_benjamini_hochberg(log_wealth: ArrayLike, level: float) -> list[int]:
    """Return which of several nulls to reject, with a false discovery rate of at most `level`.

    e-BH (Wang & Ramdas 2022, "False discovery rate control with e-values"): the k largest e-values,
    for the largest k of which the k-th is at least m / (k level). They may depend on one another.

    Parameters
    ----------
    log_wealth : array-like of shape (m,)
        Natural logarithms of e-values.
    level : float
        In (0, 1).

    Raises
    ------
    InvalidInput
        If the level is out of range, or a logarithm is NaN.

    Examples
    --------
    >>> e_benjamini_hochberg(np.log([30.0, 50.0, 1.0]), 0.1)
    [0, 1]
    """
    if not 0.0 < level < 1.0:
        raise InvalidInput(f"level: must lie in (0, 1), got {level}")
    values = _checked(log_wealth)
    order = np.argsort(-values, kind="stable")
    k = np.arange(1, len(values) + 1)
    enough = np.flatnonzero(values[order] >= logs(len(values) / (k * level)))
    return sorted(order[: enough[-1] + 1].tolist()) if len(enough) else []


def _checked(log_wealth: ArrayLike) -> Floats:
    values = np.array(log_wealth, dtype=np.float64)
    if values.ndim != 1 or np.isnan(values).any():
        raise InvalidInput("log_wealth: expected one number a test, none of them NaN")
    return values
