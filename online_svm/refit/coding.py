"""Coding: from the cells of named rows to the numbers that the machines see.

It is decided by the proper training set T alone, frozen with each refit, and saved with it.

========  =====================================================================================
kind      columns
========  =====================================================================================
number    its value, scaled as ever
boolean   as a category of two
category  one a category, 0 or 1, divided by `WIDTH`: two rows that differ in it are at a distance
          of 1, as two values of a number typically are (half of normal ones are at one above .95),
          however rare the categories are
time      sine and cosine of the hour of the day, the day of the week and the day of the year; and
          the days since 1970, scaled as a number
text      none: it is set aside
========  =====================================================================================

Boosted trees take all columns of a category as one feature (`committee.ranks`).

One more column, 0 or 1, says that the value is a gap, where T has such rows. Of more than
`max_categories` categories the rarest share one column; one that T does not have is none of them:
0 in every column. Columns of 0 and 1 are centred and not scaled by their spread, so that the
distances stay.

A new coding makes the machines begin anew, so it is not taken for every category that comes or
goes: only with the scaling (`WindowScaling`), and where T has what the present one lacks - a name,
another kind, or a category or gaps of one row in a hundred.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from online_svm.compiled.jit import inner, jit
from online_svm.refit.time_columns import WAVES, fill_times, milliseconds_of, write_time
from online_svm.storage.arrays import require
from online_svm.storage.fields import Fields, floats, ints
from online_svm.stream.cells import (
    FALSE,
    FALSE_TEXTS,
    LARGEST,
    NOTHING,
    PASSED_OVER,
    TRUE,
    TRUE_TEXTS,
    sorts,
)
from online_svm.stream.kinds import FIXED_FROM, KINDS, found_kind
from online_svm.stream.prediction import FeatureReport
from online_svm.types import Arrays, Bools, Floats, Ints

_NUMBER, _BOOLEAN, _CATEGORY, _TIME, _TEXT = range(len(KINDS))

MOST_COLUMNS = 8192
"""Columns that the categories of all features may take; each then has fewer than it might."""

WIDTH = math.sqrt(2.0)
"""By it the columns of 0 and 1, of sines and cosines are divided where others are scaled.

Over ten shuffles of Adult (3,000 rows), the same with a fifth of its cells removed, Car and Pima
with gaps the log loss is .0020, .0020, .0007 and .0010 less than with a width of 1. On German
credit it is .0002 more (standard error .0005).
"""

_SHARE = 100
"""A name is known if one row in so many of T has a value of it.

A category or gaps that the coding lacks make a new one from then on too."""

_TRUTHS = np.concatenate([[1.0, TRUE], TRUE_TEXTS, [0.0, FALSE], FALSE_TEXTS])
_TRUTH_PLACES = np.array([0] * (2 + len(TRUE_TEXTS)) + [1] * (2 + len(FALSE_TEXTS)))
FIELDS = Fields(
    ints("sources", "c"), ints("kinds", "c", below=len(KINDS)), ints("fixed", "c", below=2),
    ints("starts"), ints("firsts"), ints("gaps", "c", least=-1), floats("cells", "t"),
    ints("places", "t"), floats("missing", "c"), ints("further", "1", below=2),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Coding:
    """What is known of the columns of named rows.

    Attributes
    ----------
    sources : ndarray of shape (c,)
        Places of the known columns in a row of cells, in the order of their names.
    kinds : ndarray of shape (c,)
        Codes of their kinds.
    fixed : ndarray of shape (c,)
        1 where the kind stays.
    starts : ndarray of shape (c + 1,)
        First coded column of each; last, their number.
    firsts : ndarray of shape (c + 1,)
        First of the categories of each in `cells`; last, their number.
    gaps : ndarray of shape (c,)
        Which of its coded columns says that the value is a gap; -1 where none does.
    cells : ndarray of shape (t,)
        The categories, ascending for each column.
    places : ndarray of shape (t,)
        Which of the coded columns of its column a category has.
    missing : ndarray of shape (c,)
        Share of the rows of T in which each column is a gap.
    further : ndarray of shape (1,)
        1 where a row of T had a name that was passed over, since the feed had all it may have.

    Examples
    --------
    >>> from online_svm.stream.cells import cell
    >>> T = np.array([[1.0, cell("a")], [2.0, cell("b")], [3.0, cell("a")], [4.0, cell("b")]])
    >>> coding = Coding.fit(T)
    >>> coding.code(np.array([[5.0, cell("a")], [cell("?"), cell("c")]]))
    array([[ 5.,  0.,  1.],
           [nan,  0.,  0.]])
    """

    sources: Ints
    kinds: Ints
    fixed: Ints
    starts: Ints
    firsts: Ints
    gaps: Ints
    cells: Floats
    places: Ints
    missing: Floats
    further: Ints

    @classmethod
    def fit(
        cls,
        T: Floats,
        max_categories: int = 64,
        declared: Sequence[str] = (),
        before: "Coding | None" = None,
        order: Ints | None = None,
    ) -> Self:
        """Return the coding of the training rows.

        Parameters
        ----------
        T : ndarray of shape (n, n_features)
            Cells.
        max_categories : int
            Coded columns of a category, at most.
        declared : sequence of str
            Kinds of the first features, where they are declared.
        before : Coding, optional
            The one before it, whose fixed kinds stay.
        order : ndarray of shape (n_features,), optional
            Places of the features in the order of their names, in which they are coded. A feature
            has its place in a row from the first example that named it, which may calibrate.
        """
        what = sorts(T)
        stays = {} if before is None else dict(
            zip(before.sources.tolist(), np.where(before.fixed, before.kinds, -1), strict=True)
        )  # fmt: skip
        has_value = (what != NOTHING).sum(axis=0)
        known: list[tuple[int, int]] = []
        few = _few(T)
        for f in range(T.shape[1]) if order is None else order.tolist():
            is_declared = f < len(declared)
            if f >= T.shape[1] or has_value[f] < (1 if is_declared else few):
                continue
            if is_declared:
                known.append((f, KINDS.index(declared[f])))
            elif stays.get(f, -1) >= 0:
                known.append((f, int(stays[f])))
            else:
                known.append((f, found_kind(T[:, f], what[:, f])))
        return cls._of_kinds(T, known, has_value, max_categories)

    @classmethod
    def _of_kinds(
        cls,
        T: Floats,
        known: Sequence[tuple[int, int]],
        has_value: Ints,
        max_categories: int,
    ) -> Self:
        """Return the coding of columns of these kinds, as place and code."""
        n_categories = sum(kind == _CATEGORY for _, kind in known)
        most = min(max_categories, max(2, MOST_COLUMNS // max(1, n_categories)))
        starts, firsts, gaps = [0], [0], list[int]()
        cells, places, missing = list[Floats](), list[Ints](), list[float]()
        for f, kind in known:
            held, at, width = _columns(T[:, f], kind, most)
            count = int(np.count_nonzero(_are_gaps(T[:, f], kind)))
            is_gap = kind != _TEXT and count > 0
            missing.append(count / len(T))
            gaps.append(width if is_gap else -1)
            cells.append(held)
            places.append(at)
            firsts.append(firsts[-1] + len(held))
            starts.append(starts[-1] + width + is_gap)
        sources = np.array([f for f, _ in known], dtype=np.int64)
        return cls(
            sources,
            np.array([kind for _, kind in known], dtype=np.int64),
            (has_value[sources] >= FIXED_FROM).astype(np.int64),
            np.array(starts, dtype=np.int64),
            np.array(firsts, dtype=np.int64),
            np.array(gaps, dtype=np.int64),
            np.concatenate([np.empty(0), *cells]),
            np.concatenate([np.empty(0, dtype=np.int64), *places]),
            np.array(missing),
            np.array([np.count_nonzero(T[:, -1:] == PASSED_OVER) > 0], dtype=np.int64),
        )

    @property
    def width(self) -> int:
        """Coded columns; one, which is always 0, where there would be none."""
        return max(1, int(self.starts[-1]))

    @property
    def has_times(self) -> bool:
        """Whether a column is a time."""
        return bool((self.kinds == _TIME).any())

    @property
    def lacks_names(self) -> bool:
        """Whether T has names that were passed over."""
        return bool(self.further[0])

    @property
    def are_scaled(self) -> Bools:
        """Which coded columns are numbers, and so scaled; shape (width,)."""
        scaled = np.zeros(self.width, dtype=np.bool_)
        scaled[self.starts[:-1][self.kinds == _NUMBER]] = True
        scaled[self.starts[:-1][self.kinds == _TIME] + WAVES] = True
        return scaled

    @property
    def categories(self) -> Ints | None:
        """Number of the category or boolean that each coded column is of, shape (width,).

        It is -1 for those of numbers and times; None where all are. Gaps of a category are its own.

        Examples
        --------
        >>> from online_svm.stream.cells import cell
        >>> T = np.array([[1.0, cell("a")], [2.0, cell("b")], [3.0, np.nan], [4.0, cell("b")]])
        >>> Coding.fit(T).categories.tolist()
        [-1, 0, 0, 0]
        """
        of = np.isin(self.kinds, (_BOOLEAN, _CATEGORY)) & (np.diff(self.starts) > 0)
        if not of.any():
            return None
        return np.repeat(np.where(of, np.cumsum(of) - 1, -1), np.diff(self.starts))

    def told(self) -> dict[int, FeatureReport]:
        """Return what is known of each column, by its place in a row of cells.

        Examples
        --------
        >>> Coding.fit(np.array([[1.0, np.nan], [np.nan, np.nan]])).told()
        {0: FeatureReport(kind='number', missing=0.5)}
        """
        columns = (self.sources.tolist(), self.kinds.tolist(), self.missing.tolist())
        return {f: FeatureReport(KINDS[k], share) for f, k, share in zip(*columns, strict=True)}

    def code(self, rows: Floats) -> Floats:
        """Return the coded columns of rows of cells, shape (n, width); NaN where a number is none.

        Rows may have more columns than are known, or fewer.
        """
        if self._is_plain(rows):
            return rows
        coded = np.zeros((len(rows), self.width))
        self._run(rows, coded, np.empty(0, dtype=np.int64))
        return coded

    def imputed(self, rows: Floats) -> Ints:
        """Return how many known columns are gaps in each row of cells, shape (n,)."""
        counts = np.zeros(len(rows), dtype=np.int64)
        if not self._is_plain(rows):
            self._run(rows, np.empty((0, 0)), counts)
        return counts

    def uncoded(
        self, coded: Sequence[float], is_same: Bools, n_features: int
    ) -> tuple[list[float | None], list[bool | None]]:
        """Return what is known of a row by feature, from its coded columns.

        That is the value of a number; else whether all columns are the same as those of another
        row, which `is_same` says of each. None where neither is known.
        """
        values: list[float | None] = [None] * n_features
        same: list[bool | None] = [None] * n_features
        for c, f in enumerate(self.sources.tolist()):
            if f >= n_features:
                continue
            if self.kinds[c] == _NUMBER:
                values[f] = coded[self.starts[c]]
            elif self.kinds[c] != _TEXT:
                same[f] = bool(is_same[self.starts[c] : self.starts[c + 1]].all())
        return values, same

    def updated(self, fresh: "Coding") -> "Coding":
        """Return this coding with the gaps that `fresh` counted in a later T, and what stays."""
        found = dict(zip(fresh.sources.tolist(), fresh.missing.tolist(), strict=True))
        # A column that has no value any more is one of gaps.
        missing = [found.get(f, 1.0) for f in self.sources.tolist()]
        kinds = (fresh.sources.tolist(), fresh.kinds.tolist(), fresh.fixed.tolist())
        stays = {(f, kind) for f, kind, is_fixed in zip(*kinds, strict=True) if is_fixed}
        own = zip(self.sources.tolist(), self.kinds.tolist(), strict=True)
        fixed = self.fixed | np.array([one in stays for one in own], dtype=np.int64)
        return replace(self, missing=np.array(missing), fixed=fixed, further=fresh.further)

    def lacks(self, fresh: "Coding", T: Floats) -> bool:
        """Return whether T, whose coding is `fresh`, has what this coding lacks."""
        own = dict(zip(self.sources.tolist(), self.kinds.tolist(), strict=True))
        pairs = zip(fresh.sources.tolist(), fresh.kinds.tolist(), strict=True)
        if any(own.get(f) != kind for f, kind in pairs):
            return True
        if self._is_plain(T):
            return False
        few = max(2, _few(T))
        places = {f: c for c, f in enumerate(self.sources.tolist())}
        for c, f in enumerate(fresh.sources.tolist()):
            mine, kind = places[f], int(fresh.kinds[c])
            if fresh.gaps[c] >= 0 and self.gaps[mine] < 0:
                missing = _are_gaps(T[:, f], kind)
                if int(missing.sum()) >= few:
                    return True
            if kind == _CATEGORY:
                found, counts = np.unique(T[~np.isnan(T[:, f]), f], return_counts=True)
                known = self.cells[self.firsts[mine] : self.firsts[mine + 1]]
                if np.isin(found[counts >= few], known, invert=True).any():
                    return True
        return False

    def state(self) -> Arrays:
        """Return the attributes by name."""
        return FIELDS.arrays_of(self)

    @classmethod
    def from_state(cls, state: Arrays) -> Self:
        """Return the coding that `state` describes.

        Raises
        ------
        InvalidSnapshot, ValueError
            If the parts do not fit one another.
        """
        coding = cls(**FIELDS.values(cls, None, state))
        c, t = len(coding.sources), len(coding.cells)
        require(len(coding.starts) == len(coding.firsts) == c + 1, "coding")
        for edges, last in ((coding.starts, None), (coding.firsts, t)):
            require(edges[0] == 0 and bool((np.diff(edges) >= 0).all()), "coding")
            require(last is None or edges[-1] == last, "coding")
        widths, held = np.diff(coding.starts), np.diff(coding.firsts)
        least = np.where(coding.kinds == _NUMBER, 1, np.where(coding.kinds == _TIME, 7, 0))
        require(bool((widths >= least).all() and (coding.gaps < widths).all()), "coding")
        require(bool((coding.places < np.repeat(widths, held)).all()), "coding")
        return coding

    def _is_plain(self, rows: Floats) -> bool:
        """Return whether the code of rows is the rows: all columns are numbers, without gaps."""
        c = len(self.sources)
        return (
            rows.shape[1] == c == self.width
            and bool((self.sources == np.arange(c)).all())
            and not np.count_nonzero(self.kinds)
            and bool(np.abs(rows).max(initial=0.0) <= LARGEST)
        )

    def _run(self, rows: Floats, coded: Floats, counts: Ints) -> None:
        _code(
            np.ascontiguousarray(rows), self.sources, self.kinds, self.starts, self.firsts,
            self.gaps, self.cells, self.places, coded, counts,
        )  # fmt: skip


def _few(T: Floats) -> int:
    return max(1, -(-len(T) // _SHARE))


def _columns(cells: Floats, kind: int, most: int) -> tuple[Floats, Ints, int]:
    """Return the categories of a column, their places, and how many coded columns there are.

    That is without the one of gaps.
    """
    none = np.empty(0), np.empty(0, dtype=np.int64)
    if kind == _NUMBER:
        return *none, 1
    if kind == _TIME:
        return *none, WAVES + 1
    if kind == _TEXT:
        return *none, 0
    if kind == _BOOLEAN:
        order = np.argsort(_TRUTHS)
        return _TRUTHS[order], _TRUTH_PLACES[order], 2
    found, counts = np.unique(cells[~np.isnan(cells)], return_counts=True)
    if len(found) <= most:
        return found, np.arange(len(found)), len(found)
    # The rarest share the last place. Of equally frequent ones the larger cell is the rarer.
    places = np.full(len(found), most - 1, dtype=np.int64)
    often = np.argsort(-counts, kind="stable")[: most - 1]
    places[np.sort(often)] = np.arange(most - 1)
    return found, places, most


def _are_gaps(cells: Floats, kind: int) -> Bools:
    """Return which cells of a column are gaps."""
    if kind in (_CATEGORY, _TEXT):
        return np.isnan(cells)
    if kind == _BOOLEAN:
        return np.isin(cells, _TRUTHS, invert=True)
    if kind == _NUMBER:
        return ~(np.abs(cells) <= LARGEST)
    times = np.empty(len(cells))
    fill_times(np.ascontiguousarray(cells), times)
    return np.isnan(times)


@inner
def _place(cells: Floats, begin: int, stop: int, value: float) -> int:
    """Return where a value stands among ascending cells; -1 if it does not."""
    end = stop
    while begin < stop:
        middle = (begin + stop) // 2
        if cells[middle] < value:
            begin = middle + 1
        else:
            stop = middle
    return begin if begin < end and cells[begin] == value else -1


@jit
def _code(
    rows: Floats,
    sources: Ints,
    kinds: Ints,
    starts: Ints,
    firsts: Ints,
    gaps: Ints,
    cells: Floats,
    places: Ints,
    coded: Floats,
    counts: Ints,
) -> None:
    """Write the coded columns of rows, which are 0 before; or count the gaps of each.

    Only that of `coded` and `counts` is written that has rows.
    """
    for i in range(len(rows)):
        n_gaps = 0
        for c in range(len(sources)):
            f, start = sources[c], starts[c]
            value = rows[i, f] if f < rows.shape[1] else np.nan
            is_gap = False
            if kinds[c] == _NUMBER:
                is_gap = not abs(value) <= LARGEST
                if len(coded):
                    coded[i, start] = np.nan if is_gap else value
            elif kinds[c] == _TIME:
                time = milliseconds_of(value)
                is_gap = time != time
                if len(coded):
                    write_time(time, coded[i, start : start + WAVES + 1])
            elif kinds[c] != _TEXT:
                at = _place(cells, firsts[c], firsts[c + 1], value)
                is_gap = value != value or (kinds[c] == _BOOLEAN and at < 0)
                if at >= 0 and len(coded):
                    coded[i, start + places[at]] = 1.0
            if is_gap:
                n_gaps += 1
                if gaps[c] >= 0 and len(coded):
                    coded[i, start + gaps[c]] = 1.0
        if len(counts):
            counts[i] = n_gaps
