"""Values of another kind than the model learned for their feature; they count as missing.

They are told, not read: a model that learned 0 and 1 cannot know what true means.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from online_svm.refit.feature_encoder import FeatureEncoder
from online_svm.storage.state import require
from online_svm.storage.state_schema import StateSchema, StoredArrays, ints
from online_svm.stream.cells import BOOLEAN, KINDS, NOTHING, NUMBER, TEXT, TIME
from online_svm.types import Floats, Ints

MAX_REPORTED_CHANGES = 64
"""Largest number of changed kinds that are told of a feed."""

_LEARNED = {
    "number": "numbers", "boolean": "true and false", "category": "categories", "time": "times",
}  # fmt: skip
_CAME = {NUMBER: "numbers", TEXT: "texts", TIME: "times", BOOLEAN: "true and false"}


class ChangedKind(NamedTuple):
    """A feature whose values came in another kind.

    Examples
    --------
    >>> ChangedKind("flag", "numbers", "true and false", 240).words
    "feature 'flag' was learned as numbers and came as true and false: these values (240 so far) \
count as missing; send the kind that was learned"
    """

    feature: str
    learned: str
    came: str
    values: int  # number of such values

    @property
    def about(self) -> dict[str, str | int]:
        """The fields, and the sentence in `words`, ready for JSON."""
        return {**self._asdict(), "words": self.words}

    @property
    def words(self) -> str:
        """One sentence for people."""
        return (
            f"feature {self.feature!r} was learned as {self.learned} and came as {self.came}: "
            f"these values ({self.values:,} so far) count as missing; send the kind that was "
            "learned"
        )


class ChangedKinds(StoredArrays):
    """Counts of values by feature, learned kind, and sort of the value."""

    _stored = StateSchema(ints("_rows", "n 4", stored_as="counts"))

    def __init__(self) -> None:
        self._counts: dict[tuple[int, int, int], int] = {}
        # Dropped by `drop_read`, and not told yet; not part of the state.
        self._outdated: dict[tuple[int, int, int], int] = {}

    def add(self, encoder: FeatureEncoder, rows: Floats, n_reserved: int = 0) -> None:
        """Count the values of rows of cells; the first `n_reserved` columns are no features."""
        for key, count in encoder.unread(rows).items():
            if key[0] >= n_reserved:
                self._counts[key] = self._counts.get(key, 0) + count

    def drop_read(self, encoder: FeatureEncoder | None) -> None:
        """Drop the counts of features whose values the encoder of a new model reads."""
        kept = self._counts if encoder is not None else {}
        if kept and encoder is not None:
            kept = {key: count for key, count in kept.items() if encoder.leaves_unread(*key)}
        self._outdated |= {k: n for k, n in self._counts.items() if k not in kept}
        self._counts = kept

    def drain(self, names: Sequence[str] | None) -> tuple[ChangedKind, ...]:
        """Return the present changes and those that ended since the last call, as `named`."""
        counts, self._outdated = self._outdated | self._counts, {}
        return _named(counts, names)

    def named(self, names: Sequence[str] | None) -> tuple[ChangedKind, ...]:
        """Return the changes with the names of the features, in the order of the features."""
        return _named(self._counts, names)

    @property
    def _rows(self) -> Ints:
        rows = [[*key, count] for key, count in sorted(self._counts.items())]
        return np.array(rows, dtype=np.int64).reshape(-1, 4)

    @_rows.setter
    def _rows(self, rows: Ints) -> None:
        self._counts = {(f, kind, sort): count for f, kind, sort, count in rows.tolist()}
        kinds, sorts = rows[:, 1], rows[:, 2]
        require((kinds < len(_LEARNED)).all() and (sorts < NOTHING).all(), "counts")
        require(np.array_equal(self._rows, rows), "counts")


def _named(
    counts: Mapping[tuple[int, int, int], int], names: Sequence[str] | None
) -> tuple[ChangedKind, ...]:
    if names is None:
        return ()
    return tuple(
        ChangedKind(names[feature], _LEARNED[KINDS[kind]], _CAME[sort], count)
        for (feature, kind, sort), count in sorted(counts.items())[:MAX_REPORTED_CHANGES]
    )
