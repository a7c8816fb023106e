"""Declare the stored fields of a class, and check them when a state is read.

The name of a field is its attribute without leading and trailing underscores: `_sums` and `sums_`
are both stored as "sums". Renaming an attribute therefore breaks stored states.

An array declares its type. Its shape comes from one of three sources: the names of its axes (axes
with the same name have the same length), the array of the new object, or the length of another
field. Numbers and flags are stored in the header, or as an array of one element.
"""

import math
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from online_svm.errors import InvalidSnapshot
from online_svm.storage.state import Header
from online_svm.types import Arrays

T = TypeVar("T")

INTEGER_BOUND = 1 << 62  # exclusive bound of stored integers: the sum of two fits in 64 bits


class Field(NamedTuple):
    """One stored attribute."""

    attribute: str
    axes: str = ""  # names or lengths of the axes of an array, separated by blanks
    kind: str = ""  # a key of `_TYPES`, or "number", "real" or "flag" in the header
    least: int = 0  # lower bound of integers
    below: int = INTEGER_BOUND  # exclusive upper bound of integers
    beside: str = ""  # attribute of an earlier field whose length this field has, plus `more`
    more: int = 0
    optional: bool = False  # allows None for a number, and NaN or infinity for floats

    @property
    def name(self) -> str:
        """Name of the field in a state."""
        return self.attribute.strip("_")

    @property
    def is_array(self) -> bool:
        """Whether the field is stored as an array, and not in the header."""
        return self.kind in _TYPES


# Data types of each kind of array.
_TYPES = {
    "floats": ("<f8",), "ints": ("<i8",), "words": ("<i4",), "shorts": ("<i2",), "bytes": ("|u1",),
    "weights": ("<f8", "<i8"), "one": ("<i8",),
}  # fmt: skip


floats = partial(Field, kind="floats")
ints = partial(Field, kind="ints")
words = partial(Field, kind="words")
shorts = partial(Field, kind="shorts", least=-INTEGER_BOUND)
bytes_of = partial(Field, kind="bytes")
weights = partial(Field, kind="weights")  # integer counts, or sums of weights
one = partial(Field, kind="one")  # an integer or a flag, stored as an array of one element
number = partial(Field, kind="number")  # a non-negative integer
whole = partial(Field, kind="number", least=-INTEGER_BOUND)  # an integer of either sign
real = partial(Field, kind="real")  # a finite number
flag = partial(Field, kind="flag")


class StateSchema:
    """The stored fields of a class, in the order in which they are read.

    Examples
    --------
    >>> class Mean:
    ...     def __init__(self):
    ...         self._sums, self.count = np.zeros(2), 0
    >>> table, mean = StateSchema(floats("_sums"), number("count")), Mean()
    >>> table.header_of(mean), table.arrays_of(mean)
    ({'count': 0}, {'sums': array([0., 0.])})
    >>> mean = table.fill(mean, {"count": 3}, {"sums": np.ones(2)})
    >>> mean.count, mean._sums
    (3, array([1., 1.]))
    >>> table.fill(mean, {"count": 3}, {"sums": np.ones(5)})
    Traceback (most recent call last):
    online_svm.errors.InvalidSnapshot: the state of Mean: 'sums' has shape (5,), expected (2,)
    """

    def __init__(self, *fields: Field) -> None:
        self._fields = fields

    def __iter__(self) -> Iterator[Field]:
        return iter(self._fields)

    def header_of(self, held: object) -> Header:
        """Return the numbers and flags of an object by name."""
        return {f.name: getattr(held, f.attribute) for f in self._fields if not f.is_array}

    def arrays_of(self, held: object) -> Arrays:
        """Return copies of the arrays of an object by name."""
        return {f.name: _stored(held, f) for f in self._fields if f.is_array}

    def fill(self, into: T, header: Header | None, arrays: Arrays) -> T:
        """Set the fields of a new object, and return it; if one does not fit, none is set.

        Raises InvalidSnapshot if a field is absent, or has another type, shape or range.
        """
        for attribute, value in self.values(type(into), header, arrays, into).items():
            setattr(into, attribute, value)
        return into

    def values(
        self, owner: type | str, header: Header | None, arrays: Arrays, made: object = None
    ) -> dict[str, Any]:
        """Return the checked values by attribute, with copies of the arrays.

        `owner`: the class named in errors.
        `header`, `arrays`: the two parts of a state.
        `made`: a new object whose arrays give the expected shapes.

        Raises InvalidSnapshot as `fill`.
        """
        try:
            return dict(self._read(header or {}, arrays, made))
        except (KeyError, ValueError) as error:
            name = owner if isinstance(owner, str) else owner.__name__
            raise InvalidSnapshot(f"the state of {name}: {error}") from error

    def _read(self, header: Header, arrays: Arrays, made: object) -> Iterator[tuple[str, Any]]:
        found: dict[str, Any] = {}
        lengths: dict[str, int] = {}
        for field in self._fields:
            held = getattr(made, field.attribute, None)
            if not field.is_array:
                value = _number(field, header[field.name])
            elif field.kind == "one":
                kind = int if held is None else type(held)
                value = kind(_array(field, arrays.get(field.name), (1,))[0])
            else:
                shape = None if held is None else held.shape
                if field.axes:
                    shape = _shape(field, arrays.get(field.name), lengths)
                elif field.beside:
                    shape = (max(len(found[field.beside]) + field.more, 0),)
                value = _array(field, arrays.get(field.name), shape)
            found[field.attribute] = value
            yield field.attribute, value


def _stored(held: object, field: Field) -> NDArray[Any]:
    value = getattr(held, field.attribute)
    return np.array([value], dtype=np.int64) if field.kind == "one" else np.array(value)


def _shape(field: Field, stored: NDArray[Any] | None, lengths: dict[str, int]) -> tuple[int, ...]:
    """Return the shape by axis names; the first array with a name sets its length."""
    axes = field.axes.split()
    own = (0,) * len(axes) if stored is None or stored.ndim != len(axes) else stored.shape
    return tuple(
        int(name) if name.isdigit() else lengths.setdefault(name, length)
        for name, length in zip(axes, own, strict=True)
    )


def _array(field: Field, stored: NDArray[Any] | None, shape: tuple[int, ...] | None) -> Any:
    """Return a checked copy of an array; without a shape it must have one axis."""
    if stored is None or stored.dtype.str not in _TYPES[field.kind]:
        raise ValueError(f"{field.name!r} is absent, or no array of {field.kind}")
    if stored.ndim != 1 if shape is None else stored.shape != shape:
        raise ValueError(f"{field.name!r} has shape {stored.shape}, expected {shape or '(n,)'}")
    if stored.dtype.kind == "f":
        fits = field.optional or bool(np.isfinite(stored).all())
    else:
        fits = not stored.size or (stored.min() >= field.least and stored.max() < field.below)
    if not fits:
        raise ValueError(f"{field.name!r} has a value out of range")
    return stored.copy()


def _number(field: Field, stored: object) -> object:
    if stored is None and field.optional:
        return None
    if field.kind == "flag":
        fits = isinstance(stored, bool)
    elif field.kind == "real":
        fits = isinstance(stored, int | float) and math.isfinite(stored)
    else:
        fits = type(stored) is int and field.least <= stored < field.below
    if not fits:
        raise ValueError(f"{field.name!r} is {stored!r}")
    return stored
