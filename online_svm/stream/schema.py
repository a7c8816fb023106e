"""Check the features and the label of an example, and convert them to a row."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy

import numpy as np

from online_svm.config import PredictorConfig
from online_svm.errors import SHOWN, InvalidExample
from online_svm.stream.cells import GAP, MAX_FEATURE_SIZE, MIN_FEATURE_SIZE, PASSED_OVER, cell
from online_svm.stream.labels import sorted_labels, stream_text
from online_svm.stream.scores import ScoreColumns
from online_svm.types import Bools, Floats

MAX_LABEL = MAX_NAME = 256
MAX_DISCOVERED_NAMES = 10_000  # default limit on the names that a feed adopts without a declaration

MAX_LATE_NAMES = 1000
"""A feed that has so many names adopts no more after its first example.

Each name is a column of every row: a feed whose names are ids would fill up with gaps and slow
down.
"""

SURPLUS_COLUMN = "\0"
"""Name of the last column once names exceed the limit; it marks rows with ignored names."""

_NO_NUMBERS: dict[type, str] = {
    str: "text_for_number", bool: "boolean_for_number", list: "array_for_number",
    dict: "object_for_number",
}  # fmt: skip
"""Rejection case of each JSON type except numbers and null."""


class FeatureSchema:
    """The features a feed accepts: declared, or taken from its first accepted example.

    If features have names, and are not declared as a list of names, a row has one cell (see
    `cells`) for each known name; an absent name is a gap. Names that appear later are appended to
    the row (`knowing`). Names beyond the limit are ignored, and a last column (`SURPLUS_COLUMN`)
    marks their rows, so that a refit knows whether T has ignored names. With declared kinds all
    other names are ignored.

    A schema is immutable: newly discovered features give a new schema.

    Parameters
    ----------
    config : PredictorConfig
        Uses `features`, `missing`, `labels`, `classes`, `learner`, `slices` and the horizon.
    is_of_requests : bool
        Whether the rows are scored alone: then no name is added.

    Attributes
    ----------
    names : tuple of str or None
        Feature names: the first ones sorted, then the later ones; None if features have no names.
    dimension : int or None
        Number of features; None until it is known.
    known : dict of str to int
        The column of each known name.
    may_mix : bool
        Whether rows with names are rows of cells.
    scores : ScoreColumns or None
        The first columns of a row, if examples carry scores.

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
        self.scores = ScoreColumns.of(config)
        if self.scores is not None:
            self.names = (*self.scores.names, *(self.names or ()))
            self.dimension = len(self.names)
        self._know(self.names or ())
        self.takes_delayed_labels = config.takes_delayed_labels
        self.counts_time = config.counts_time
        self.allows_missing = config.missing == "mean"
        self._takes_probabilities = config.learner == "psvm"
        self.slices = config.slices
        self._integers = config.labels == "integer"
        self._declared = None if config.classes is None else frozenset(config.classes)

    @property
    def _n_reserved(self) -> int:
        """Number of first columns that hold a score; they are no features."""
        return 0 if self.scores is None else len(self.scores.names)

    def scored(self, x: object, score: object = None, version: object = None) -> object:
        """Return features together with the score of the example, as `row` takes them.

        Raises InvalidExample if score or version cannot be used, or the setting `scores` is off.
        """
        if self.scores is not None:
            return self.scores.cells(x, score, version)
        if score is not None or version is not None:
            raise InvalidExample("score_without_scores")
        return x

    @property
    def declares_labels(self) -> bool:
        """Whether the labels are declared, which rules out any others."""
        return self._declared is not None

    @property
    def classes(self) -> tuple[str, ...]:
        """The declared labels, sorted; empty if labels are discovered."""
        return () if self._declared is None else sorted_labels([*self._declared])

    @property
    def is_mixed(self) -> bool:
        """Whether rows are rows of cells."""
        return self.may_mix and self.names is not None

    @property
    def is_full(self) -> bool:
        """Whether names beyond the limit have appeared."""
        return self.names is not None and self.names[-1:] == (SURPLUS_COLUMN,)

    def knowing(self, x: object, max_names: int = MAX_DISCOVERED_NAMES) -> "FeatureSchema":
        """Return the schema extended by the names of an example; itself if no name is new.

        A name with NUL or more than 256 characters is ignored. So are names beyond the first
        `max_names` and, after the first example, names beyond `MAX_LATE_NAMES`.
        """
        if not self.may_mix or not isinstance(x, Mapping):
            return self
        if self.names is None:
            return self if self.dimension is not None else self._with(x, (), max_names)
        if not self._grows or self.is_full or x.keys() <= self.known.keys():
            return self
        if len(self.names) > self._n_reserved:
            max_names = min(max_names, max(MAX_LATE_NAMES, len(self.names)))
        return self._with(x, self.names, max_names)

    def _with(
        self, x: Mapping[object, object], names: tuple[str, ...], max_names: int
    ) -> "FeatureSchema":
        new = sorted(self._new_names(x))
        if not new:
            return self
        taken = (*names, *new[: max(0, max_names - len(names))])
        if len(names) + len(new) > max_names:
            taken = (*taken, SURPLUS_COLUMN)
        return self.of_features(taken, len(taken))

    def _new_names(self, x: Iterable[object]) -> Iterator[str]:
        return (str(name) for name in x if name not in self.known and _is_name(name))

    def of_example(self, x: object) -> "FeatureSchema":
        """Return the schema with the features of x, if the features are not known yet."""
        if self.dimension is not None:
            return self
        if self.may_mix and isinstance(x, Mapping):
            return self.knowing(x)
        names = tuple(sorted(x)) if isinstance(x, Mapping) else None
        return self.of_features(names, len(x))  # type: ignore[arg-type]  # row() accepted it

    def of_features(self, names: tuple[str, ...] | None, dimension: int | None) -> "FeatureSchema":
        """Return the schema with these features."""
        known = copy(self)
        known.names, known.dimension = names, dimension
        known._know(names or ())
        return known

    def _know(self, names: Sequence[str]) -> None:
        self.known = {name: i for i, name in enumerate(names) if name != SURPLUS_COLUMN}

    def row(self, x: object) -> Floats:
        """Return the features as a checked vector of shape (dimension,).

        Raises InvalidExample if a feature is unknown, missing, not a number, not finite or out of
        range.
        """
        names: tuple[str, ...] | None = None
        if self.may_mix and isinstance(x, Mapping) and self.dimension is None:
            known = self.knowing(x)
            if known is self:
                raise InvalidExample("names_none")
            return known.cells(x)
        if self.is_mixed and isinstance(x, Mapping):
            return self.cells(x)
        if self.is_full and not isinstance(x, Mapping):
            raise InvalidExample("array_for_names")
        if self._needs_names and self.names is None:
            raise InvalidExample("x_without_names")
        if isinstance(x, Mapping):
            names = self._expected_names(x)
            vector = self._named_vector(x, names)
        elif isinstance(x, np.ndarray | Sequence) and not isinstance(x, str | bytes):
            vector = self._vector(x)
        else:
            raise InvalidExample("x_of_type", type=type(x).__name__)
        self.check(vector, names)
        return vector

    def cells(self, x: Mapping[object, object]) -> Floats:
        """Return the values of named features as cells, shape (dimension,); absent ones are gaps.

        Raises InvalidExample if there is no feature, or a value is an array or an object.
        """
        assert self.names is not None
        if not x:
            raise InvalidExample("features_none")
        if not all(isinstance(name, str) for name in x):
            raise InvalidExample("name_no_text")
        found = np.full(len(self.names), GAP)
        for i in sorted(self.known[name] for name in x if name in self.known):
            try:
                found[i] = cell(x[self.names[i]])
            except InvalidExample as error:
                raise error.of_feature(self.names[i]) from None
        return self.finished(found, x)

    def finished(self, cells: Floats, names: Iterable[object]) -> Floats:
        """Return cells after writing the surplus column of rows with these names."""
        if self.is_full and any(self._new_names(names)):
            cells[..., -1] = PASSED_OVER
        return cells

    def label(self, y: object) -> str | None:
        """Return the label as its canonical text, or None for an unlabelled example.

        Raises InvalidExample if the label is not declared, too long or empty, or not an integer
        although the setting `labels` requires integers.
        """
        if y is None:
            return None
        text = stream_text(y, self._integers)
        if not 1 <= len(text) <= MAX_LABEL:
            raise InvalidExample("label_length", most=MAX_LABEL)
        if self._declared is not None and text not in self._declared:
            declared = sorted(self._declared)[:10]
            raise InvalidExample("label_undeclared", label=text[:SHOWN], declared=declared)
        return text

    def probability(self, p: object) -> float | None:
        """Return an annotator's probability, or None if there is none.

        Raises InvalidExample if the learner accepts none, or it is not a number in [0, 1].
        """
        if p is None:
            return None
        if not self._takes_probabilities:
            raise InvalidExample("p_of_other_learner")
        if isinstance(p, bool) or not isinstance(p, int | float | np.integer | np.floating):
            raise InvalidExample("p_no_number")
        if not -MAX_FEATURE_SIZE <= p <= MAX_FEATURE_SIZE:
            raise InvalidExample("p_not_finite")
        if not 0 <= p <= 1:
            raise InvalidExample("p_out_of_range", p=float(p))
        return float(p) + 0.0  # -0 is 0

    def check(self, vector: Floats, names: Sequence[str] | None = None) -> None:
        """Raise InvalidExample for the first value of `vector` that the kernels cannot use.

        `names` are the feature names if the schema does not know them yet.
        """
        bad = invalid_values(vector, self.allows_missing)
        if np.count_nonzero(bad):
            first = int(np.argmax(bad))
            feature = self.feature(first) if names is None else names[first]
            raise value_error(float(vector[first]), feature)

    def _vector(self, x: Floats | Sequence[object]) -> Floats:
        if isinstance(x, np.ndarray):
            if x.ndim != 1 or x.dtype.kind not in "fiu":
                raise InvalidExample("x_no_row")
            x = x.astype(np.float64)
        if self.dimension is not None and len(x) != self.dimension:
            raise InvalidExample("features_other", found=len(x), features=self.dimension)
        if len(x) == 0:
            raise InvalidExample("features_none")
        if isinstance(x, np.ndarray):
            return x
        return np.array([self._number(value, i) for i, value in enumerate(x)])

    def _named_vector(self, x: Mapping[object, object], names: tuple[str, ...]) -> Floats:
        if sum(name in x for name in names) != len(x):
            known = frozenset(names)
            unknown = next(name for name in x if name not in known)
            raise InvalidExample("feature_unknown", feature=str(unknown)[:SHOWN])
        if not names:
            raise InvalidExample("features_none")
        return np.array([self._number(x.get(name), i, name) for i, name in enumerate(names)])

    def _expected_names(self, x: Mapping[object, object]) -> tuple[str, ...]:
        if self.names is not None:
            return self.names
        if self.dimension is not None:
            raise InvalidExample("x_with_names", features=self.dimension)
        if not all(isinstance(name, str) for name in x):
            raise InvalidExample("name_no_text")
        return tuple(sorted(str(name) for name in x))

    def _number(self, value: object, index: int, name: str | None = None) -> float:
        if type(value) is float:  # most are; the checks below take most of the time of a row
            return value
        if value is None:
            if self.allows_missing:
                return float("nan")
            feature = self.feature(index) if name is None else name
            raise InvalidExample("feature_missing", feature=feature)
        if isinstance(value, bool | np.bool_) or not isinstance(
            value, int | float | np.integer | np.floating
        ):
            case = _NO_NUMBERS.get(type(value), "feature_no_number")
            raise InvalidExample(case, feature=self.feature(index) if name is None else name)
        try:
            return float(value)
        except OverflowError:
            return float("inf")

    def feature(self, index: int) -> str | int:
        """Return the name of a feature, or its index if it has no name."""
        if self.names is None or index >= len(self.names):
            return index
        return self.names[index]


def invalid_values(values: Floats, allows_missing: bool) -> Bools:
    """Return a mask of the values that the kernels cannot use, for an array of any shape.

    NaN is valid if missing values are allowed.

    Examples
    --------
    >>> invalid_values(np.array([0.0, 1e101, 1e-310, np.nan]), allows_missing=True)
    array([False,  True,  True, False])
    """
    size = np.abs(values)
    fine = (size <= MAX_FEATURE_SIZE) & ((size >= MIN_FEATURE_SIZE) | (size == 0.0))
    if allows_missing:
        fine |= np.isnan(values)
    invalid: Bools = ~fine
    return invalid


def _is_name(name: object) -> bool:
    return isinstance(name, str) and 1 <= len(name) <= MAX_NAME and "\0" not in name


def value_error(value: float, feature: str | int) -> InvalidExample:
    """Return the error for an invalid number of a feature, given by name or index."""
    if np.isnan(value):
        return InvalidExample("feature_nan", feature=feature)
    if np.isinf(value):
        return InvalidExample("feature_infinite", feature=feature)
    return InvalidExample("feature_out_of_range", feature=feature, value=value)
