"""FeatureSchema: the features and the label that an example must have."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy

import numpy as np

from online_svm.config import PredictorConfig
from online_svm.errors import InvalidExample
from online_svm.stream.cells import GAP, LARGEST, PASSED_OVER, SMALLEST, cell
from online_svm.stream.labels import sorted_labels
from online_svm.stream.slices import SliceValue, checked_slices
from online_svm.types import Bools, Floats

MAX_LABEL = MAX_NAME = 256
MOST_FEATURES = 10_000
"""Names that a feed takes up undeclared, where nothing else is said."""

MOST_LATE = 1000
"""Names up to which those that come after the first example are taken up.

Each is a column of every row: a feed whose names are ids would hold gaps, and be slow by them.
"""

FURTHER = "\0"
"""Name of the last column of a feed that has taken up all it may: which rows had further names."""

_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
_KINDS = {str: "text", bool: "true or false", list: "an array", dict: "an object"}
"""Values of JSON that are no numbers."""


class FeatureSchema:
    """The features a feed takes: declared, or those of its first accepted example.

    Where an example has names, and these are not declared as numbers all, its row is of cells, one
    for each name known: see `cells`. Names that come later are known from then on (`knowing`), at
    the end of a row; an absent one is a gap. Where there are as many as a feed may have, further
    ones are passed over, which a last column tells (`FURTHER`): so a refit knows whether its T
    lacks any. Declared names have no others beside them: what an example has beyond them is passed
    over.

    A schema does not change: what is learned of the features makes another one.

    Parameters
    ----------
    config : PredictorConfig
        Its `features`, `missing`, `labels`, `classes`, `learner`, `slices` and horizon are used.

    Attributes
    ----------
    names : tuple of str or None
        Feature names, where they are named: sorted, but for those that came later.
    dimension : int or None
        Number of features; None until it is known.
    slices : tuple of str
        Names of the slices.
    known : dict of str to int
        The names that an example may have, with their places in a row.
    first : int
        Names that are declared, or that the first example had; `max_missing` is a share of them.
    may_mix : bool
        Whether rows with names are of cells.
    takes_late_labels : bool
        Whether a label may come after its example.
    is_of_requests : bool
        Whether it describes requests, which have features alone.
    counts_time : bool
        Whether each example has a time.
    takes_answers : bool
        Whether an example may carry an answer that was given.

    Examples
    --------
    >>> schema = FeatureSchema(PredictorConfig(features=("b", "a")))
    >>> schema.row({"a": 1.0, "b": 2})
    array([1., 2.])
    >>> schema.row([1.0, float("nan")])
    Traceback (most recent call last):
    online_svm.errors.InvalidExample: feature 'b' is NaN; send a finite number
    """

    def __init__(self, config: PredictorConfig, is_of_requests: bool = False) -> None:
        declared = config.features
        has_names = isinstance(declared, tuple | dict)
        self.names = tuple(sorted(declared)) if isinstance(declared, tuple | dict) else None
        self.dimension = len(declared) if isinstance(declared, tuple | dict) else None
        if isinstance(declared, int):
            self.dimension = declared
        self.may_mix = declared is None or declared == "infer" or isinstance(declared, dict)
        self._needs_names = declared == "infer"
        self._grows = not has_names and not is_of_requests
        self._max_missing = config.max_missing
        self._know(self.names or ())
        self.first = len(self.known)
        self.is_of_requests = is_of_requests
        self.takes_late_labels = config.takes_late_labels
        self.counts_time = config.counts_time
        self.allows_missing = config.missing == "mean"
        self._takes_probabilities = config.learner == "psvm"
        self.takes_answers = config.given_answers
        self.slices = config.slices
        self._integers = config.labels == "integer"
        self._declared = None if config.classes is None else frozenset(config.classes)

    @property
    def declares_labels(self) -> bool:
        """Whether the labels are declared, so that there will be no others."""
        return self._declared is not None

    @property
    def classes(self) -> tuple[str, ...]:
        """The declared labels, sorted; none where they are discovered."""
        return () if self._declared is None else sorted_labels([*self._declared])

    @property
    def is_mixed(self) -> bool:
        """Whether rows are of cells."""
        return self.may_mix and self.names is not None

    @property
    def is_full(self) -> bool:
        """Whether further names came than a feed takes up."""
        return self.names is not None and self.names[-1:] == (FURTHER,)

    def knowing(self, x: object, most: int = MOST_FEATURES) -> "FeatureSchema":
        """Return the schema that also knows the names of an example; this one if there is no other.

        A longer one than 256 characters or one with NUL is passed over, as if it were absent, and
        so is one beyond the first `most`; or beyond 1,000, where the first example had fewer.

        Examples
        --------
        >>> schema = FeatureSchema(PredictorConfig()).knowing({"b": 1, "a": "red"})
        >>> schema.knowing({"c": 2.5, "A": None}).names
        ('a', 'b', 'A', 'c')
        >>> sorted(schema.knowing({"c": 2.5, "A": None}, most=3).known)
        ['A', 'a', 'b']
        """
        if not self.may_mix or not isinstance(x, Mapping):
            return self
        if self.names is None:
            return self if self.dimension is not None else self._with(x, (), most)
        if not self._grows or self.is_full or x.keys() <= self.known.keys():
            return self
        return self._with(x, self.names, min(most, max(MOST_LATE, len(self.names))))

    def _with(
        self, x: Mapping[object, object], names: tuple[str, ...], most: int
    ) -> "FeatureSchema":
        new = sorted(self._new_names(x))
        if not new:
            return self
        taken = (*names, *new[: max(0, most - len(names))])
        if len(names) + len(new) > most:
            taken = (*taken, FURTHER)
        return self.of_features(taken, len(taken), self.first if names else None)

    def _new_names(self, x: Iterable[object]) -> Iterator[str]:
        return (str(name) for name in x if name not in self.known and _is_name(name))

    def of_example(self, x: object) -> "FeatureSchema":
        """Return the schema of a feed whose first accepted example is x; this one if it knows.

        Examples
        --------
        >>> FeatureSchema(PredictorConfig()).of_example({"z": 1.0, "a": 2.0}).names
        ('a', 'z')
        """
        if self.dimension is not None:
            return self
        if self.may_mix and isinstance(x, Mapping):
            return self.knowing(x)
        names = tuple(sorted(x)) if isinstance(x, Mapping) else None
        return self.of_features(names, len(x))  # type: ignore[arg-type]  # row() accepted it

    def of_features(
        self, names: tuple[str, ...] | None, dimension: int | None, first: int | None = None
    ) -> "FeatureSchema":
        """Return the schema of a feed with other features; without `first` they came together."""
        known = copy(self)
        known.names, known.dimension = names, dimension
        known._know(names or ())
        known.first = len(known.known) if first is None else first
        return known

    def _know(self, names: Sequence[str]) -> None:
        self.known = {name: i for i, name in enumerate(names) if name != FURTHER}

    def row(self, x: object) -> Floats:
        """Return the features as a checked vector of shape (dimension,).

        Raises
        ------
        InvalidExample
            If a feature is unknown, missing, not a number, not finite or out of range.
        """
        names: tuple[str, ...] | None = None
        if self.may_mix and isinstance(x, Mapping) and self.dimension is None:
            known = self.knowing(x)
            if known is self:
                raise InvalidExample(
                    "dimension", "x has no feature whose name can be used; send at least one"
                )
            return known.cells(x)
        if self.is_mixed and isinstance(x, Mapping):
            return self.cells(x)
        if self.is_full and not isinstance(x, Mapping):
            raise InvalidExample("dimension", "this feed takes named features, not arrays")
        if self._needs_names and self.names is None:
            raise InvalidExample("unparsable", 'features is "infer": send named features')
        if isinstance(x, Mapping):
            names = self._expected_names(x)
            vector = self._named_vector(x, names)
        elif isinstance(x, np.ndarray | Sequence) and not isinstance(x, str | bytes):
            vector = self._vector(x)
        else:
            raise InvalidExample("unparsable", f"x is a {type(x).__name__}, not an array or object")
        self.check(vector, names)
        return vector

    def cells(self, x: Mapping[object, object]) -> Floats:
        """Return the values of named features as cells, shape (dimension,); an absent one is a gap.

        Raises
        ------
        InvalidExample
            If there is no value, one is an array or an object, or too many are gaps.
        """
        assert self.names is not None
        if not x:
            raise InvalidExample("dimension", "x is empty; send at least one feature")
        if not all(isinstance(name, str) for name in x):
            raise InvalidExample("unknown_feature", "feature names are text")
        found = np.full(len(self.names), GAP)
        for i in sorted(self.known[name] for name in x if name in self.known):
            try:
                found[i] = cell(x[self.names[i]])
            except InvalidExample as error:
                raise InvalidExample(
                    error.code, f"feature {self.names[i]!r}: {error.reason}"
                ) from None
        return self.finished(found, x)

    def finished(self, cells: Floats, names: Iterable[object]) -> Floats:
        """Return cells of rows with these names, of which the last column says if some are further.

        Raises
        ------
        InvalidExample
            If a row has more gaps than `max_missing` allows.
        """
        if self.is_full and any(self._new_names(names)):
            cells[..., -1] = PASSED_OVER
        if not self.has_enough(cells):
            missing = int(np.isnan(cells[..., : self.first]).sum(axis=-1).max())
            raise InvalidExample(
                "missing_feature",
                f"{missing} of {self.first} features are missing, more than max_missing = "
                f"{self._max_missing:g} of them",
            )
        return cells

    def has_enough(self, cells: Floats) -> bool:
        """Return whether no row of cells has more gaps than `max_missing` allows."""
        if self._max_missing >= 1.0:
            return True
        missing = np.isnan(cells[..., : self.first]).sum(axis=-1)
        return bool((missing <= self._max_missing * self.first).all())

    def label(self, y: object) -> str | None:
        """Return the label as its canonical text, or None where there is none.

        Raises
        ------
        InvalidExample
            If it is not in the declared set, not an integer where integers are asked for, or
            too long.
        """
        if y is None:
            return None
        text = y if isinstance(y, str) else _text_of(y)
        if self._integers:
            text = _canonical_integer(text)
        if not 1 <= len(text) <= MAX_LABEL:
            raise InvalidExample("label", f"a label has 1 to {MAX_LABEL} characters")
        if self._declared is not None and text not in self._declared:
            known = ", ".join(sorted(self._declared)[:10])
            raise InvalidExample("label", f"label {text[:40]!r} is not declared; declared: {known}")
        return text

    def probability(self, p: object) -> float | None:
        """Return an annotator's probability, or None where there is none.

        Raises
        ------
        InvalidExample
            If the learner takes none, or it is not a number in [0, 1].

        Examples
        --------
        >>> FeatureSchema(PredictorConfig(learner="psvm", classes=("a", "b"))).probability(1)
        1.0
        """
        if p is None:
            return None
        if not self._takes_probabilities:
            raise InvalidExample(
                "unsupported", "p is sent, but the learner takes labels only; use learner psvm"
            )
        if isinstance(p, bool) or not isinstance(p, int | float | np.integer | np.floating):
            raise InvalidExample("unparsable", "p is not a number")
        if not -LARGEST <= p <= LARGEST:
            raise InvalidExample("not_finite", "p is not finite; send a number from 0 to 1")
        if not 0 <= p <= 1:
            raise InvalidExample("out_of_range", f"p is {float(p)!r}; send a number from 0 to 1")
        return float(p) + 0.0  # -0 is 0

    def slice_values(self, sent: object) -> SliceValue | None:
        """Return the values of the slices, or None where none are given.

        Raises
        ------
        InvalidExample
            As `checked_slices`.
        """
        return checked_slices(sent, self.slices)

    def check(self, vector: Floats, names: Sequence[str] | None = None) -> None:
        """Raise InvalidExample for the first value of `vector` that cannot be computed with.

        `names` name the features where the schema does not yet.
        """
        bad = invalid_values(vector, self.allows_missing)
        if np.count_nonzero(bad):
            first = int(np.argmax(bad))
            shown = self.shown(first) if names is None else repr(names[first])
            raise value_error(float(vector[first]), shown)

    def _vector(self, x: Floats | Sequence[object]) -> Floats:
        if isinstance(x, np.ndarray):
            x = _array_vector(x)
        if self.dimension is not None and len(x) != self.dimension:
            raise _dimension_error(len(x), self.dimension)
        if len(x) == 0:
            raise InvalidExample("dimension", "x is empty; send at least one feature")
        if isinstance(x, np.ndarray):
            return x
        return np.array([self._number(value, i) for i, value in enumerate(x)])

    def _named_vector(self, x: Mapping[object, object], names: tuple[str, ...]) -> Floats:
        if sum(name in x for name in names) != len(x):
            known = frozenset(names)
            unknown = next(name for name in x if name not in known)
            raise InvalidExample("unknown_feature", f"feature {str(unknown)[:40]!r} is unknown")
        if not names:
            raise InvalidExample("dimension", "x is empty; send at least one feature")
        return np.array([self._number(x.get(name), i, name) for i, name in enumerate(names)])

    def _expected_names(self, x: Mapping[object, object]) -> tuple[str, ...]:
        if self.names is not None:
            return self.names
        if self.dimension is not None:
            raise InvalidExample(
                "unparsable", f"this feed takes arrays of {self.dimension} numbers, not names"
            )
        if not all(isinstance(name, str) for name in x):
            raise InvalidExample("unknown_feature", "feature names are text")
        return tuple(sorted(str(name) for name in x))

    def _number(self, value: object, index: int, name: str | None = None) -> float:
        if value is None:
            if self.allows_missing:
                return float("nan")
            label = repr(name) if name is not None else self.shown(index)
            raise InvalidExample(
                "missing_feature",
                f'feature {label} is missing; send a number, or set missing to "mean"',
            )
        if isinstance(value, bool | np.bool_) or not isinstance(
            value, int | float | np.integer | np.floating
        ):
            label = repr(name) if name is not None else self.shown(index)
            if type(value) not in _KINDS:
                raise InvalidExample("unparsable", f"feature {label} is not a number")
            raise InvalidExample(
                "unsupported",
                f"feature {label} is {_KINDS[type(value)]}, which is not supported yet; send a "
                "number",
            )
        try:
            return float(value)
        except OverflowError:
            return float("inf")

    def shown(self, index: int) -> str:
        """Return a feature as messages show it: its name, or its index where there is none."""
        if self.names is None or index >= len(self.names):
            return str(index)
        return repr(self.names[index])


def invalid_values(values: Floats, allows_missing: bool) -> Bools:
    """Return which values cannot be computed with, for an array of any shape.

    A NaN passes where missing values are allowed.

    Examples
    --------
    >>> invalid_values(np.array([0.0, 1e101, 1e-310, np.nan]), allows_missing=True)
    array([False,  True,  True, False])
    """
    size = np.abs(values)
    fine = (size <= LARGEST) & ((size >= SMALLEST) | (size == 0.0))
    if allows_missing:
        fine |= np.isnan(values)
    invalid: Bools = ~fine
    return invalid


def _is_name(name: object) -> bool:
    """Return whether a feature may have this name."""
    return isinstance(name, str) and 1 <= len(name) <= MAX_NAME and "\0" not in name


def _array_vector(x: Floats) -> Floats:
    if x.ndim != 1 or x.dtype.kind not in "fiu":
        raise InvalidExample("unparsable", "x must be one row of numbers")
    return x.astype(np.float64)


def _text_of(y: object) -> str:
    if isinstance(y, bool | np.bool_) or not isinstance(y, int | np.integer):
        raise InvalidExample("label", f"a label is text or an integer, not {type(y).__name__}")
    return str(int(y))


def _canonical_integer(text: str) -> str:
    if not _INTEGER.fullmatch(text.strip(" ")):
        raise InvalidExample("label", f"label {text[:40]!r} is not an integer of 18 digits or less")
    return str(int(text))


def _dimension_error(found: int, expected: int) -> InvalidExample:
    return InvalidExample("dimension", f"x has {found} features, this feed takes {expected}")


def value_error(value: float, name: str) -> InvalidExample:
    """Return why a number cannot be a feature; `name` as `FeatureSchema.shown` gives it.

    Examples
    --------
    >>> value_error(float("inf"), "0").reason
    'feature 0 is infinite; send a finite number'
    """
    if np.isnan(value):
        return InvalidExample("not_finite", f"feature {name} is NaN; send a finite number")
    if np.isinf(value):
        return InvalidExample("not_finite", f"feature {name} is infinite; send a finite number")
    return InvalidExample(
        "out_of_range", f"feature {name} is {value!r}; send 0 or a size from 1e-307 to 1e100"
    )
