"""Declared tables of fields: what of an object is stored, and how it is checked when it is read.

A field is named after the attribute that holds it, without the underscores around that name: the
attribute `_sums` and the attribute `sums_` are stored as "sums". So a name that was stored stays as
long as its attribute does.

Of an array the type is declared. Its shape is declared by the names of its axes, and axes of one
name have one length; or it is that of the array which the object holds already, as it was made; or
its length is that of another field. Numbers and flags go to the header, but for those that were
stored as an array of one.
"""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from online_svm.errors import InvalidSnapshot
from online_svm.storage.state import Header
from online_svm.types import Arrays

LARGEST = 1 << 62
"""Whole numbers are below it: sums of two fit 64 bits."""


class Field(NamedTuple):
    """One attribute that is stored.

    Attributes
    ----------
    attribute : str
    kind : {"floats", "ints", "words", "shorts", "bytes", "weights", "one", "number", "real",
        "flag"}
        Arrays of float64, int64, int32, int16, uint8, of float64 or int64; a whole number as an
        array of one; in the header a whole number, any number, or true or false.
    least, below : int
        Bounds of whole numbers.
    beside : str
        Attribute of an earlier field, whose length the array has.
    more : int
        That many more values.
    optional : bool
        Whether a number may be None, and a float NaN or infinite.
    axes : str
        Names of the axes of an array, or their lengths, with blanks between them.
    """

    attribute: str
    kind: str
    least: int = 0
    below: int = LARGEST
    beside: str = ""
    more: int = 0
    optional: bool = False
    axes: str = ""

    @property
    def name(self) -> str:
        """Its name in a state."""
        return self.attribute.strip("_")

    @property
    def is_array(self) -> bool:
        """Whether it goes to the arrays of a state, not to the header."""
        return self.kind in _TYPES


_TYPES = {
    "floats": ("<f8",), "ints": ("<i8",), "words": ("<i4",), "shorts": ("<i2",), "bytes": ("|u1",),
    "weights": ("<f8", "<i8"), "one": ("<i8",),
}  # fmt: skip


def floats(
    attribute: str, axes: str = "", *, beside: str = "", more: int = 0, optional: bool = False
) -> Field:
    """Return the field of an array of float64; all finite, unless `optional`."""
    return Field(attribute, "floats", beside=beside, more=more, optional=optional, axes=axes)


def ints(
    attribute: str, axes: str = "", *, beside: str = "", least: int = 0, below: int = LARGEST
) -> Field:
    """Return the field of an array of int64."""
    return Field(attribute, "ints", least, below, beside, axes=axes)


def words(attribute: str, axes: str, *, below: int = LARGEST) -> Field:
    """Return the field of an array of int32, none negative."""
    return Field(attribute, "words", 0, below, axes=axes)


def shorts(attribute: str, axes: str, *, least: int = -LARGEST) -> Field:
    """Return the field of an array of int16."""
    return Field(attribute, "shorts", least, axes=axes)


def bytes_of(attribute: str, axes: str) -> Field:
    """Return the field of an array of uint8."""
    return Field(attribute, "bytes", axes=axes)


def weights(attribute: str, *, beside: str = "") -> Field:
    """Return the field of an array of counts, int64, or of sums of weights, float64."""
    return Field(attribute, "weights", beside=beside)


def one(attribute: str, *, least: int = 0, below: int = LARGEST) -> Field:
    """Return the field of a whole number, or a flag, that is stored as an array of one."""
    return Field(attribute, "one", least, below)


def number(attribute: str, *, optional: bool = False) -> Field:
    """Return the field of a whole number, at least 0; or None, if `optional`."""
    return Field(attribute, "number", optional=optional)


def whole(attribute: str) -> Field:
    """Return the field of a whole number of either sign."""
    return Field(attribute, "number", least=-LARGEST)


def real(attribute: str) -> Field:
    """Return the field of a finite number."""
    return Field(attribute, "real")


def flag(attribute: str) -> Field:
    """Return the field of what is true or false."""
    return Field(attribute, "flag")


class Fields:
    """The fields of a class.

    Parameters
    ----------
    *fields : Field
        In the order in which they are read.

    Examples
    --------
    >>> class Mean:
    ...     def __init__(self):
    ...         self._sums, self.count = np.zeros(2), 0
    >>> table, mean = Fields(floats("_sums"), number("count")), Mean()
    >>> table.header_of(mean), table.arrays_of(mean)
    ({'count': 0}, {'sums': array([0., 0.])})
    >>> table.fill(mean, {"count": 3}, {"sums": np.ones(2)})
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

    def fill(self, into: object, header: Header | None, arrays: Arrays) -> None:
        """Set the fields of an object that is as it was made; nothing is set if one does not fit.

        Raises
        ------
        InvalidSnapshot
            If one is absent, or has another type, shape or range.
        """
        for attribute, value in self.values(type(into), header, arrays, into).items():
            setattr(into, attribute, value)

    def values(
        self, owner: type | str, header: Header | None, arrays: Arrays, made: object = None
    ) -> dict[str, Any]:
        """Return the values by attribute, checked; the arrays are copies.

        Parameters
        ----------
        owner : type or str
            Named in errors.
        header, arrays
            Of a state.
        made : object, optional
            An object whose arrays have the shapes that are expected.

        Raises
        ------
        InvalidSnapshot
            As in `fill`.
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
    """Return the shape that the axes of a field have; what is first seen of one is its length."""
    axes = field.axes.split()
    seen = (0,) * len(axes) if stored is None or stored.ndim != len(axes) else stored.shape
    return tuple(
        int(name) if name.isdigit() else lengths.setdefault(name, length)
        for name, length in zip(axes, seen, strict=True)
    )


def _array(field: Field, stored: NDArray[Any] | None, shape: tuple[int, ...] | None) -> Any:
    """Return a copy of an array that fits; without a shape it has one axis."""
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
