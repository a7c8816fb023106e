"""Values of slices: their codes, which of them are told apart, and how findings spell them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np

from online_svm.stream.alarm import Alarm
from online_svm.stream.slices import SliceValue
from online_svm.types import Ints

SLICE_VALUES = 20
"""Values of a slice of a feed that are told apart, those that come first; all others are counted
together."""


class SliceValues:
    """Codes of the values of some slices, in order of arrival, in bounded memory.

    The first `most` values of a slice get codes 0, 1, ...; all later ones share the code `most`. An
    example without a value has code -1.

    Parameters
    ----------
    n_slices : int
    most : int
        Values of a slice that are told apart.

    Examples
    --------
    >>> values = SliceValues(1, most=2)
    >>> values.codes([("DE",), None, ("FR",), ("IT",), ("DE",), ("ES",)]).ravel().tolist()
    [0, -1, 1, 2, 0, 2]
    >>> values.named(0)
    ['DE', 'FR', None]
    """

    def __init__(self, n_slices: int, most: int) -> None:
        self.most = most
        self._codes: list[dict[str, int]] = [{} for _ in range(n_slices)]

    def codes(self, sent: Sequence[SliceValue | None] | None, count: int = 0) -> Ints:
        """Return the codes of the values of some examples, shape (m, n_slices).

        Parameters
        ----------
        sent : sequence of m (tuple of (str or None), or None)
            Without it, `count` examples have no values.
        """
        size = count if sent is None else len(sent)
        if not self._codes:
            return np.empty((size, 0), dtype=np.int64)
        found = np.full((size, len(self._codes)), -1, dtype=np.int64)
        for row, values in enumerate(sent or ()):
            for j, value in enumerate(values or ()):
                if value is not None:
                    found[row, j] = self._code(j, value)
        return found

    def named(self, j: int) -> list[str | None]:
        """Return the values of the j-th slice by code; the last, None, is that of all others."""
        return [*self._codes[j], *[None] * (self.most + 1 - len(self._codes[j]))]

    def state(self) -> list[list[str]]:
        """Return the values of each slice in the order of their codes, as JSON has them."""
        return [list(codes) for codes in self._codes]

    @classmethod
    def from_state(cls, state: Any, n_slices: int, most: int) -> Self:
        """Return the codes that `state` describes.

        Raises
        ------
        ValueError
            If it does not fit.
        """
        values = cls(n_slices, most)
        fits = isinstance(state, list) and len(state) == n_slices
        for codes, names in zip(values._codes, state if fits else (), strict=False):
            fits = fits and isinstance(names, list) and len(set(map(str, names))) <= most
            if fits and all(isinstance(name, str) for name in names):
                codes.update((name, code) for code, name in enumerate(names))
        if not fits or values.state() != state:
            raise ValueError("slices do not fit")
        return values

    def _code(self, j: int, value: str) -> int:
        codes = self._codes[j]
        code = codes.get(value)
        if code is None:
            if len(codes) == self.most:
                return self.most
            code = codes[value] = len(codes)
        return code


class SliceNames:
    """Spells slices as "country=DE", with the names of the settings and the values that were sent.

    Parameters
    ----------
    names : sequence of str
        The slices of the feed.
    values : SliceValues

    Examples
    --------
    >>> values = SliceValues(1, most=1)
    >>> codes = values.codes([("DE",), ("FR",)])
    >>> spelled = SliceNames(["country"], values)
    >>> spelled.of("0=0"), spelled.of("0=1")
    ('country=DE', 'country, other values')
    """

    def __init__(self, names: Sequence[str], values: SliceValues) -> None:
        self._names, self._values = names, values

    def of(self, coded: str) -> str:
        """Return the name of a slice, given as the monitors give it."""
        number, code = map(int, coded.split("="))
        value = self._values.named(number)[code]
        name = self._names[number]
        return f"{name}, other values" if value is None else f"{name}={value}"

    def of_alarm(self, alarm: Alarm) -> Alarm:
        """Return an alarm with its slice spelled out, if it is of one."""
        if alarm.scope != "slice" or alarm.name is None:
            return alarm
        return replace(alarm, name=self.of(alarm.name))

    def of_test(self, test: dict[str, Any]) -> dict[str, Any]:
        """Return a test of a report likewise."""
        return test | {"name": self.of(test["name"])} if test["scope"] == "slice" else test
