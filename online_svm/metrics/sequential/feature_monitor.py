"""Ranks of the features at answer time: what moved, or went missing, before any label comes.

Each feature has two ranked quantities: whether it is a gap, and its value. The first 200 values
fix 64 cells, at their quantiles. The rank of a row is (rows below + U own) / (all rows), counting
itself, with U uniform. While rows are exchangeable, ranks are independent and uniform (Vovk,
Gammerman & Shafer 2022, "Algorithmic Learning in a Random World", chapter 8). The bets on a rank u,
with z = 2 u - 1, are 1 + l z and 1 - l z with l = .35 and .9, 4 u^3, 4 (1 - u)^3, and
1 +- .6 (2 |z| - 1). Their e-detector (Shiryaev and Roberts; see `wealth.py`) opens a notice.

A notice ends when later ranks are evidence of 200 to 1 that the feature is as it was, or after
2,000 rows: then what is new is the usual. These bets are blind to a change of the dependence
between features alone; the density test of `exchangeability.py` finds it, with labels.
"""

from typing import NamedTuple

import numpy as np

from online_svm.compiled.kernel import kernel
from online_svm.metrics.sequential.exchangeability import MAX_FEATURES
from online_svm.storage.state import require
from online_svm.storage.state_schema import StateSchema, StoredArrays, floats, ints
from online_svm.stream.notice import FeatureDirection, FeatureNotice
from online_svm.types import Floats, Ints

FIRST_ROWS, N_CELLS, N_BETS = 200, 64, 8
ROWS, OPEN, OPENED, SINCE, N_COUNTS = range(5)
"""Counts of a quantity: rows; gentlest bet of the open notice's direction, or -1; rows when it
opened; examples learned when the change began."""

_GAPS: dict[int, FeatureDirection] = {0: "missing", 1: "present", 6: "missing", 7: "present"}
_VALUES: dict[int, FeatureDirection] = {0: "risen", 1: "fallen", 6: "wider", 7: "narrower"}


class Features(NamedTuple):
    """State of d features, and of two quantities of each."""

    rows: Ints  # shape (1,)
    first: Floats  # shape (d, FIRST_ROWS)
    edges: Floats  # shape (d, N_CELLS - 1)
    trees: Ints  # sum trees of the cells, shape (2 d, 2 N_CELLS)
    counts: Ints  # shape (2 d, N_COUNTS)
    sums: Floats  # of the bets, shape (2 d, N_BETS)
    closing: Floats  # evidence that an open notice is over, shape (2 d,)
    means: Floats  # recent mean rank, shape (2 d,)


@kernel
def watch(
    X: Floats, n: Ints, begin: int, seed: int, limit: float, held: Features
) -> tuple[int, bool]:
    """Rank rows from `begin` on, until a notice opens or closes.

    `X` has shape (m, d); values that are not finite are gaps. `n`, shape (m,), are the examples
    learned before each row. Returns the row after the last one used, and whether a notice changed.
    """


class FeatureMonitor(StoredArrays):
    """Watches the features of answered rows; `run_length` is the rows to a false notice, at least.

    Only the first `MAX_FEATURES` features are watched. Rows may have more features than earlier
    ones, never fewer.
    """

    _stored = StateSchema(
        ints("_rows"), floats("_first", f"d {FIRST_ROWS}", optional=True),
        floats("_edges", f"d {N_CELLS - 1}", optional=True), ints("_trees", f"q {2 * N_CELLS}"),
        ints("_counts", f"q {N_COUNTS}", least=-1), floats("_sums", f"q {N_BETS}"),
        floats("_closing", "q"), floats("_means", "q"),
    )  # fmt: skip

    def __init__(self, run_length: float, seed: int = 0) -> None:
        self._limit, self._seed = run_length, seed
        self.restart()

    def restart(self) -> None:
        """Discard all ranks: later rows are compared with each other alone."""
        self._rows = np.zeros(1, dtype=np.int64)
        self._first, self._edges = np.empty((0, FIRST_ROWS)), np.empty((0, N_CELLS - 1))
        self._trees = np.empty((0, 2 * N_CELLS), dtype=np.int64)
        self._counts = np.empty((0, N_COUNTS), dtype=np.int64)
        self._sums, self._closing, self._means = np.empty((0, N_BETS)), np.empty(0), np.empty(0)

    def update(self, X: Floats, n: Ints) -> list[tuple[int, tuple[FeatureNotice, ...]]]:
        """Add answered rows, in order.

        Returns the rows at which a notice opened or closed, with the open ones after it.

        `X` has shape (m, n_features); `n`, shape (m,), are the examples learned before each row.
        """
        X = X[:, :MAX_FEATURES]
        if X.shape[1] == len(self._first):  # nearly always
            rows = np.ascontiguousarray(X, dtype=np.float64)
            return self._watch(rows, np.ascontiguousarray(n))
        found: list[tuple[int, tuple[FeatureNotice, ...]]] = []
        # A batch has columns for features that only its later rows have: each begins with its
        # first value, however rows are cut into batches.
        places = np.where(np.isfinite(X), np.arange(1, X.shape[1] + 1), 0)
        widths = np.maximum.accumulate(places.max(axis=1, initial=len(self._first)))
        for begin in np.flatnonzero(np.diff(widths, prepend=-1)).tolist():
            stop = begin + int(np.searchsorted(widths[begin:], widths[begin], side="right"))
            self._grow(int(widths[begin]) - len(self._first))
            rows = np.ascontiguousarray(X[begin:stop, : widths[begin]], dtype=np.float64)
            changed = self._watch(rows, np.ascontiguousarray(n[begin:stop]))
            found += [(begin + row, notices) for row, notices in changed]
        return found

    def _watch(self, X: Floats, n: Ints) -> list[tuple[int, tuple[FeatureNotice, ...]]]:
        """Add rows of as many features as are known; see `update`."""
        held = Features(
            self._rows, self._first, self._edges, self._trees, self._counts, self._sums,
            self._closing, self._means,
        )  # fmt: skip
        found: list[tuple[int, tuple[FeatureNotice, ...]]] = []
        begin = 0
        while begin < len(X):
            begin, has_changed = watch(X, n, begin, self._seed, self._limit, held)
            if has_changed:
                found.append((begin - 1, self.notices()))
        return found

    def _grow(self, more: int) -> None:
        """Append features that no earlier row had: gaps, as far as is known."""
        if more <= 0:
            return
        self._first = np.concatenate([self._first, np.zeros((more, FIRST_ROWS))])
        self._edges = np.concatenate([self._edges, np.zeros((more, N_CELLS - 1))])
        new = 2 * more
        counts = np.tile(np.array([[0, -1, 0, 0]], dtype=np.int64), (new, 1))
        trees = np.zeros((new, 2 * N_CELLS), dtype=np.int64)
        self._trees, self._counts = (
            np.concatenate(pair) for pair in ((self._trees, trees), (self._counts, counts))
        )
        self._sums = np.concatenate([self._sums, np.zeros((new, N_BETS))])
        self._closing = np.concatenate([self._closing, np.ones(new)])
        self._means = np.concatenate([self._means, np.full(new, 0.5)])

    def notices(self) -> tuple[FeatureNotice, ...]:
        """Return the open notices: of gaps first, then by the beginning of the change."""
        found = []
        for q in np.flatnonzero(self._counts[:, OPEN] >= 0).tolist():
            feature, is_value = divmod(q, 2)
            names = _VALUES if is_value else _GAPS
            direction = names[int(self._counts[q, OPEN])]
            since = int(self._counts[q, SINCE])
            found.append(FeatureNotice(since, feature, direction, float(self._means[q])))
        return tuple(sorted(found, key=_order))

    def _on_restored(self) -> None:
        require(len(self._counts) == 2 * len(self._first), "counts")
        require(bool(np.isin(self._counts[:, OPEN], [-1, *_VALUES]).all()), "counts")


def _order(notice: FeatureNotice) -> tuple[bool, int]:
    return notice.direction not in ("missing", "present"), notice.since
