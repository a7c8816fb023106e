"""Declare the stored fields of a class, and check them when a state is read.

The name of a field is its attribute without leading and trailing underscores: `_sums` and `sums_`
are both stored as "sums". Renaming an attribute therefore breaks stored states.

An array declares its type. Its shape comes from one of three sources: the names of its axes (axes
with the same name have the same length, and ".name" is an attribute of the new object), the array
of the new object, or the length of another field. Numbers, flags and texts are stored in the
header; a number or flag may also be an array of one element. "a.b" is the field b of the named
tuple or object a. What is stored in another form than it is held is a property with a setter.

A part is an object with a state of its own, or a dict or list of such objects; it is stored under
its name, or with the fields of the whole if the name is "". A record is a part that is made from
its state.

A class that declares its fields inherits `state` and `restore`: from `StoredArrays` if its state is
named arrays, from `StoredHeader` if it is numbers, flags and texts, from `Stored` if it is both,
and from `StoredRecord` if it is immutable. A new object is made from the configuration, restored in
the order of its fields, and then of its parts, and checks what it holds in `_on_restored`.
"""

import math
from collections.abc import Iterator
from functools import partial
from operator import attrgetter
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from online_svm.errors import InvalidSnapshot
from online_svm.storage.state import Header, State, nest, under
from online_svm.types import Arrays

T = TypeVar("T")

INTEGER_BOUND = 1 << 62  # exclusive bound of stored integers: the sum of two fits in 64 bits


class Field(NamedTuple):
    """One stored attribute."""

    attribute: str
    axes: str = ""  # names or lengths of the axes of an array, separated by blanks
    kind: str = ""  # a key of `_TYPES`, a kind of the header, "part" or "record"
    least: float | None = None  # lower bound; None is 0 for integers, and no bound for floats
    below: int | str = INTEGER_BOUND  # exclusive upper bound of integers, or as ".name" in `axes`
    beside: str = ""  # attribute of an earlier field whose length this field has, plus `more`
    more: int = 0
    # Allows None for a number, a text or a record, and NaN or infinity for floats.
    optional: bool = False
    stored_as: str | None = None  # name in the state, if it is not that of the attribute
    is_given: bool = False  # the constructor takes it, so that restoring does not set it
    # What makes a part anew, or a record from its state: a class, or the name of a method. It makes
    # the value of JSON, too.
    of: Any = None

    @property
    def name(self) -> str:
        """Name of the field in a state."""
        if self.stored_as is not None:
            return self.stored_as
        return self.attribute.rpartition(".")[2].strip("_")

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
numbers = partial(Field, kind="numbers")  # a list of integers
texts = partial(Field, kind="texts")  # a list, or the keys of a dict; all different
json_of = partial(Field, kind="json")  # JSON that `of` or the setter checks
part = partial(Field, kind="part")  # an object with a state of its own, or several; None is absent
record = partial(Field, kind="record")  # the same, made by `of` from its state


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
        self._fields = tuple(field._replace(stored_as=field.name) for field in fields)
        self._parts = tuple(f for f in self._fields if f.kind in ("part", "record"))
        self._own = tuple(f for f in self._fields if f not in self._parts)

    def __iter__(self) -> Iterator[Field]:
        return iter(self._fields)

    def header_of(self, held: object) -> Header:
        """Return the numbers, flags and texts of an object by name."""
        of_header = self._values_of(held, are_arrays=False)
        are_lists = ("numbers", "texts")
        return {f.name: [*one] if f.kind in are_lists else one for f, one in of_header}

    def arrays_of(self, held: object) -> Arrays:
        """Return copies of the arrays of an object by name."""
        return {f.name: _stored(f, one) for f, one in self._values_of(held, are_arrays=True)}

    def state_of(self, held: object) -> State:
        """Return all fields of an object, and of its parts."""
        header, arrays = self.header_of(held), self.arrays_of(held)
        for field in self._parts:
            for name, one in _several(field.name, getattr(held, field.attribute)):
                own, parts = _state_of(one)
                header |= {name: own} if own and name else own
                arrays |= nest(name, parts) if name else parts
        return State(header, arrays)

    def _values_of(self, held: object, *, are_arrays: bool) -> Iterator[tuple[Field, Any]]:
        owners = {"": held}  # a property that stores several fields is read once
        for field in (f for f in self._own if f.is_array == are_arrays):
            owner, _, name = field.attribute.rpartition(".")
            if owner not in owners:
                owners[owner] = attrgetter(owner)(held)
            yield field, getattr(owners[owner], name)

    def fill(self, into: T, header: Header | None, arrays: Arrays) -> T:
        """Set the fields of a new object, and return it; if one does not fit, none is set.

        Raises InvalidSnapshot if a field is absent, or has another type, shape or range.
        """
        values = self.values(type(into), header, arrays, into)
        try:
            _assign(into, values)
            for field in self._parts:
                if field.kind == "part":
                    _restore_part(into, field, State(header or {}, arrays))
                else:
                    setattr(into, field.attribute, _record(field, header or {}, arrays, into))
            if isinstance(into, _Declared):
                into._on_restored()
        except InvalidSnapshot:
            raise
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise InvalidSnapshot(f"the state of {type(into).__name__}: {error}") from error
        return into

    def values(
        self, owner: type | str, header: Header | None, arrays: Arrays, made: object = None
    ) -> dict[str, Any]:
        """Return the checked values by attribute, with copies of the arrays.

        `owner`: the class named in errors.
        `header`, `arrays`: the two parts of a state.
        `made`: a new object whose arrays give the expected shapes; without it, the values have the
            records, too.

        Raises InvalidSnapshot as `fill`.
        """
        try:
            return dict(self._read(header or {}, arrays, made))
        except InvalidSnapshot:
            raise
        except (LookupError, TypeError, ValueError) as error:
            name = owner if isinstance(owner, str) else owner.__name__
            raise InvalidSnapshot(f"the state of {name}: {error}") from error

    def _read(self, header: Header, arrays: Arrays, made: object) -> Iterator[tuple[str, Any]]:
        found: dict[str, Any] = {}
        lengths: dict[str, int] = {}
        for field in self._own:
            if field.is_given and made is not None:
                continue
            # A property may be expensive; only a shape, a list or a dict is looked up.
            inner = "." in field.attribute and field.axes
            held = None if inner else _held(made, field.attribute)
            if field.below.__class__ is str:
                field = field._replace(below=attrgetter(str(field.below)[1:])(made))
            if not field.is_array:
                value = _of_header(field, header[field.name], held, made)
            elif field.kind == "one":
                kind = int if held is None else type(held)
                value = kind(_array(field, arrays.get(field.name), (1,))[0])
            else:
                shape = getattr(held, "shape", None)
                if field.axes:
                    shape = _shape(field, arrays.get(field.name), lengths, made)
                elif field.beside:
                    shape = (max(len(found[field.beside]) + field.more, 0),)
                value = _array(field, arrays.get(field.name), shape)
                value = value.tolist() if isinstance(held, list) else value
            found[field.attribute] = value
            yield field.attribute, value
        for field in self._parts if made is None else ():
            if field.kind == "record":
                yield field.attribute, _record(field, header, arrays)


class _Declared:
    """A class whose stored fields are declared."""

    __slots__ = ()
    _stored: ClassVar[StateSchema]

    def _on_restored(self) -> None:
        """Raise ValueError if values do not fit together; compute what follows from them."""


class StoredArrays(_Declared):
    """A class whose state is named arrays.

    Examples
    --------
    >>> class Mean(StoredArrays):
    ...     _stored = StateSchema(floats("_sums"))
    ...     def __init__(self):
    ...         self._sums = np.zeros(2)
    >>> Mean().restore({"sums": np.ones(2)}).state()
    {'sums': array([1., 1.])}
    """

    __slots__ = ()

    def state(self) -> Arrays:
        """Return the stored fields."""
        return self._stored.state_of(self).arrays

    def restore(self, state: Arrays) -> Self:
        """Continue from a state; return this object. Raises InvalidSnapshot."""
        return self._stored.fill(self, None, state)


class StoredHeader(_Declared):
    """A class whose state is numbers, flags and texts."""

    __slots__ = ()

    def state(self) -> Header:
        """Return the stored fields."""
        return self._stored.header_of(self)

    def restore(self, state: Header) -> Self:
        """Continue from a state; return this object. Raises InvalidSnapshot."""
        return self._stored.fill(self, state, {})


class Stored(_Declared):
    """A class whose state is numbers, flags, texts and named arrays."""

    __slots__ = ()

    def state(self) -> State:
        """Return the stored fields."""
        return self._stored.state_of(self)

    def restore(self, state: State) -> Self:
        """Continue from a state; return this object. Raises InvalidSnapshot."""
        return self._stored.fill(self, *state)


class StoredRecord(_Declared):
    """An immutable class whose state is named arrays, which its constructor takes."""

    __slots__ = ()

    def state(self) -> Arrays:
        """Return the stored fields."""
        return self._stored.state_of(self).arrays

    @classmethod
    def from_state(cls, state: Arrays, *given: Any) -> Self:
        """Return the object described by `state`; `given` are further positional arguments."""
        record = cls(*given, **cls._stored.values(cls, None, state))
        record._on_restored()
        return record


def _held(made: object, attribute: str) -> Any:
    """Return an attribute of a new object, or None."""
    owner, _, name = attribute.rpartition(".")
    return getattr(getattr(made, owner, None) if owner else made, name, None)


def _assign(into: object, values: dict[str, Any]) -> None:
    inner: dict[str, dict[str, Any]] = {}
    for attribute, value in values.items():
        owner, _, name = attribute.rpartition(".")
        if owner:
            inner.setdefault(owner, {})[name] = value
        else:
            setattr(into, name, value)
    for owner, changed in inner.items():
        held = getattr(into, owner)
        if isinstance(held, tuple):
            setattr(into, owner, type(held)(**{**held._asdict(), **changed}))  # type: ignore[attr-defined]
        else:
            for name, value in changed.items():
                setattr(held, name, value)


def _several(name: str, found: Any) -> Iterator[tuple[str, Any]]:
    """Yield the name and the object of each part of an attribute."""
    if isinstance(found, dict | list | tuple):
        for key, one in found.items() if isinstance(found, dict) else enumerate(found):
            yield from _several(f"{name}.{key}" if name else str(key), one)
    elif found is not None:
        yield name, found


def _state_of(one: Any) -> State:
    state = one.state()
    if isinstance(state, State):
        return state
    return State(state, {}) if isinstance(one, StoredHeader) else State({}, state)


def _part_of(name: str, header: Header, arrays: Arrays) -> State:
    """Return what is stored under a name."""
    return State(header.get(name, {}), under(name, arrays)) if name else State(header, arrays)


def _restore_part(into: object, field: Field, state: State) -> None:
    found = getattr(into, field.attribute) if field.of is None else None
    if field.of is not None and any(_part_of(field.name, *state)):
        found = getattr(into, field.of)()
    for name, one in _several(field.name, found):
        own = _part_of(name, *state)
        if isinstance(one, StoredHeader):
            one.restore(own.header)
        else:
            one.restore(own if isinstance(one, Stored) else own.arrays)
    if field.of is not None:
        setattr(into, field.attribute, found)


def _record(field: Field, header: Header, arrays: Arrays, made: object = None) -> Any:
    own = _part_of(field.name, header, arrays)
    if field.optional and not any(own):
        return None
    if isinstance(field.of, str):
        return getattr(made, field.of)(own)
    return field.of.from_state(own.arrays)


def _stored(field: Field, value: Any) -> NDArray[Any]:
    if isinstance(value, np.ndarray):
        return value.copy()
    return np.array([value] if field.kind == "one" else value, dtype=_TYPES[field.kind][0])


def _shape(
    field: Field, stored: NDArray[Any] | None, lengths: dict[str, int], made: object
) -> tuple[int, ...]:
    """Return the shape by axis names; the first array with a name sets its length."""
    axes = field.axes.split()
    own = (0,) * len(axes) if stored is None or stored.ndim != len(axes) else stored.shape
    shape = []
    for name, length in zip(axes, own, strict=True):
        if name.startswith("."):
            shape.append(int(attrgetter(name[1:])(made)))
        else:
            shape.append(int(name) if name.isdigit() else lengths.setdefault(name, length))
    return tuple(shape)


def _array(field: Field, stored: NDArray[Any] | None, shape: tuple[int, ...] | None) -> Any:
    """Return a checked copy of an array; without a shape it must have one axis."""
    if stored is None or stored.dtype.str not in _TYPES[field.kind]:
        raise ValueError(f"{field.name!r} is absent, or no array of {field.kind}")
    if stored.ndim != 1 if shape is None else stored.shape != shape:
        raise ValueError(f"{field.name!r} has shape {stored.shape}, expected {shape or '(n,)'}")
    if stored.dtype.kind == "f":
        fits = field.optional or bool(np.isfinite(stored).all())
        fits &= field.least is None or not bool((stored < field.least).any())
    else:
        fits = not stored.size or _is_within(field, stored.min(), stored.max())
    if not fits:
        raise ValueError(f"{field.name!r} has a value out of range")
    return stored.copy()


def _is_within(field: Field, smallest: int, largest: int) -> bool:
    return bool((field.least or 0) <= smallest and largest < field.below)  # type: ignore[operator]


def _of_header(field: Field, stored: Any, held: object, made: object) -> Any:
    """Return a checked value of the header."""
    if stored is None and field.optional:
        return None
    if field.kind == "json":
        make = getattr(made, field.of) if isinstance(field.of, str) else field.of
        return stored if make is None else make(stored)
    if field.kind == "flag":
        fits = isinstance(stored, bool)
    elif field.kind == "real":
        fits = isinstance(stored, int | float) and math.isfinite(stored)
    elif field.kind == "number":
        fits = type(stored) is int and _is_within(field, stored, stored)
    else:
        fits = isinstance(stored, list)
        kind = int if field.kind == "numbers" else str
        fits = fits and all(type(one) is kind or (one is None and field.optional) for one in stored)
        if fits and kind is int and stored:
            fits = _is_within(field, min(stored), max(stored))
        if fits and kind is str and not field.optional:
            fits = len(set(stored)) == len(stored)
    if not fits:
        raise ValueError(f"{field.name!r} is {str(stored)[:80]}")
    return dict.fromkeys(stored) if isinstance(held, dict) else stored
