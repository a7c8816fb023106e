"""Recent stacks: members and nearest neighbours, weighted by what fits the newest examples.

A model is as old as its last freeze, and its stack was fitted on training examples. After an abrupt
change the newest labelled examples are the first evidence. Their nearest neighbours vote, and two
stacks of the members and these votes are fitted to the member outputs for recent examples, each
computed before the example was learned.

With delayed labels an example is learned with its answer-time outputs, because later neighbours
would leak information.

The stacks span models and see every label. They do not change the Venn intervals.
"""

from typing import NamedTuple

import numpy as np

from online_svm.compiled.kernel import kernel
from online_svm.predictor.calibrators import FIT_EVERY, fit_stops
from online_svm.predictor.neighbours import KEPT_EXAMPLES, N_VOTES, write_votes
from online_svm.predictor.pending_examples import AnswerTimeOutputs
from online_svm.refit.committee.stack import fit_more, fit_two, require_weights
from online_svm.refit.scaling import Scaling
from online_svm.storage.state import require
from online_svm.storage.state_schema import StateSchema, StoredArrays, floats, ints, one
from online_svm.stream.cells import widened
from online_svm.types import Bools, Floats, Ints

BUFFER_ROWS = 2 * KEPT_EXAMPLES
MAX_FEATURES = 100_000
"""Largest number of features of a stored example, equal to the limit of a feed."""

STACK_SIZES = (250, 1000)
"""Numbers of newest examples to which the recent stacks are fitted."""

STACKS = tuple(f"recent-stack-{size}" for size in STACK_SIZES)
"""Their names among the experts."""

GRADIENT_TOLERANCE = 1e-2
"""Gradient tolerance of a fit, summed over the examples. The next fit starts from its solution."""


class MemberOutputs(NamedTuple):
    """Inputs of m rows for the recent stacks."""

    X: Floats  # shape (m, n_features); features as they came
    rows: Floats  # shape (m, d); scaled features
    odds: Floats  # shape (m, M, S); log-odds of the M members for S decisions

    def part(self, rows: slice) -> "MemberOutputs":
        """Return the inputs of some rows."""
        return MemberOutputs(*(part[rows] for part in self))


class KeptExamples(NamedTuple):
    """The newest labelled examples, as they are stored."""

    X: Floats
    columns: Ints
    odds: Floats


class RecentStacks(StoredArrays):
    """Neighbours and recent stacks of a feed; they span models.

    `n_members`, `n_known`: members of the committee, and known classes.
    `is_delayed`: whether labels are delayed.
    """

    _stored = StateSchema(
        one("_since", below=FIT_EVERY), floats("_kept.X", "n f", optional=True),
        ints("_kept.columns", "n", below="._n_known"),
        floats("_kept.odds", "n ._inputs ._decisions", optional=True),
        floats("_stacks", "k i", stored_as="weights"),
    )  # fmt: skip

    def __init__(self, n_members: int, n_known: int, *, is_delayed: bool = False) -> None:
        self._n_known = n_known
        self._decisions = 1 if n_known == 2 else n_known
        self._inputs = n_members + N_VOTES
        self._is_delayed = is_delayed
        self._size = self._joined = self._since = 0
        self._X: Floats = np.empty((BUFFER_ROWS, 0))
        self._points: Floats = np.empty((0, BUFFER_ROWS))
        self._columns: Ints = np.empty(BUFFER_ROWS, dtype=np.int64)
        self._odds: Floats = np.empty((BUFFER_ROWS, self._inputs, self._decisions))
        self._weights: list[Floats] = []

    def follow(self, before: "RecentStacks", scaling: Scaling) -> None:
        """Carry over the stacks from the previous model if it knew as many classes."""
        if before._n_known == self._n_known:
            self.__dict__.update(before.__dict__)
            self.scale(scaling)

    def __len__(self) -> int:
        return min(self._size, KEPT_EXAMPLES)

    def examples(self) -> tuple[Floats, Ints]:
        """Return the newest labelled examples and their class columns, as views."""
        kept = slice(self._size - len(self), self._size)
        return self._X[kept], self._columns[kept]

    def answer(
        self,
        given: MemberOutputs,
        rest: Floats,
        columns: Ints,
        at_answer: AnswerTimeOutputs | None = None,
    ) -> tuple[Floats, dict[str, Floats]]:
        """Answer rows in order; learn labels after their answers.

        `rest`, shape (m, n_classes): probabilities whose columns of unknown classes are kept.
        `columns`, shape (m,): class columns of the labels; -1 for a row without a label.
        `earlier`: answer-time outputs, with delayed labels; None if labels come at once or no row
            is learned.
        Returns `parts`, shape (n_stacks, m, n_classes): the stacks' probabilities; NaN before the
            first fit and, with delayed labels, in rows that are learned.
        Returns `outputs`: with delayed labels: the member outputs to store with each row, for
            `AnswerTimeOutputs`.
        """
        of_known = np.where(columns < self._n_known, columns, -1)
        parts = np.full((len(STACK_SIZES), *rest.shape), np.nan)
        odds = np.empty((len(rest), self._inputs, self._decisions))
        if at_answer is not None:
            sources = at_answer.sources({"odds": odds.shape[1:]})
            stored = np.full(odds.shape, np.nan)
            at_answer.fill("odds", stored, sources)
        begin = 0
        for stop in fit_stops(of_known, self._since):
            rows = slice(begin, stop)
            asks = (
                np.ones(stop - begin, dtype=bool) if at_answer is None else ~at_answer.learns[rows]
            )
            if self._weights:
                parts[:, rows] = rest[rows]
            self._answer(given.part(rows), of_known[rows], asks, parts[:, rows], odds[rows])
            if at_answer is not None:
                learned = begin + np.flatnonzero(~asks)
                parts[:, learned], odds[learned] = np.nan, stored[learned]
                copies = learned[at_answer.rows[learned] >= 0]
                odds[copies] = odds[at_answer.rows[copies]]
            self._keep(given.X[rows], of_known[rows], odds[rows])
            if self._since == FIT_EVERY:
                self._fit()
            begin = stop
        return parts, {"odds": odds} if self._is_delayed else {}

    def _answer(
        self, given: MemberOutputs, columns: Ints, asks: Bools, parts: Floats, odds: Floats
    ) -> None:
        """Write the inputs and outputs of the stacks, for rows without a fit between them.

        Rows whose `asks` is False get no votes; only their labels are learned.
        """
        self._make_room(given)
        odds[:, :-N_VOTES] = given.odds
        self._joined = write_votes(
            (self._points, self._columns), self._size, given.rows, columns, asks, odds
        )
        for weights, outputs in zip(self._weights, parts, strict=False):
            _stacked(odds, weights, outputs)

    def _keep(self, X: Floats, columns: Ints, odds: Floats) -> None:
        """Store the member outputs of labelled rows, which are neighbours already."""
        new, labelled = slice(self._size, self._joined), columns >= 0
        self._X[new] = widened(X[labelled], self._X.shape[1])
        self._odds[new] = odds[labelled]
        self._since += self._joined - self._size
        self._size = self._joined

    def _make_room(self, given: MemberOutputs) -> None:
        """Drop old examples before the arrays overflow; widen the arrays for new features."""
        if self._size > BUFFER_ROWS - FIT_EVERY:
            kept = slice(self._size - KEPT_EXAMPLES, self._size)
            for held in (self._X, self._columns, self._odds, self._points.T):
                held[:KEPT_EXAMPLES] = held[kept].copy()
            self._size = KEPT_EXAMPLES
        if given.X.shape[1] > self._X.shape[1]:
            self._X = widened(self._X, given.X.shape[1])
        if not self._size and len(self._points) != given.rows.shape[1]:
            self._points = np.empty((given.rows.shape[1], BUFFER_ROWS))

    def scale(self, scaling: Scaling) -> None:
        """Scale the stored examples again, for another model."""
        held = scaling.transform(self._X[: self._size])
        self._points = np.empty((held.shape[1], BUFFER_ROWS))
        self._points[:, : self._size] = held.T

    def _fit(self) -> None:
        """Fit the stacks to the outputs for the newest examples, from their present weights."""
        self._since = 0
        has_outputs = ~np.isnan(self._odds[: self._size, 0, 0])  # NaN: no answer-time outputs
        if np.count_nonzero(has_outputs[-STACK_SIZES[0] :]) < FIT_EVERY:
            return
        if not self._weights:
            equal = np.append(np.full(self._inputs, 1.0 / self._inputs), 0.0)
            self._weights = [equal.copy() for _ in STACK_SIZES]
        for size, weights in zip(STACK_SIZES, self._weights, strict=True):
            last = slice(max(0, self._size - size), self._size)
            odds, columns = self._odds[last], self._columns[last]
            if not has_outputs[last].all():
                odds, columns = odds[has_outputs[last]], columns[has_outputs[last]]
            if self._decisions == 1:
                fit_two(odds[:, :, 0], columns == 1, weights, GRADIENT_TOLERANCE)
            else:
                fit_more(odds, columns, weights[:-1], GRADIENT_TOLERANCE)

    @property
    def _kept(self) -> KeptExamples:
        kept = slice(self._size - len(self), self._size)
        return KeptExamples(self._X[kept], self._columns[kept], self._odds[kept])

    @_kept.setter
    def _kept(self, kept: KeptExamples) -> None:
        size = self._size = self._joined = len(kept.columns)
        require(size <= KEPT_EXAMPLES, "columns")
        require(kept.X.shape[1] <= MAX_FEATURES, "X")  # bounds the memory that is allocated
        lacks = ~np.isfinite(kept.odds)
        fits = (lacks == np.isnan(kept.odds)).all() and (self._is_delayed or not lacks.any())
        require(fits and (lacks.any(axis=(1, 2)) == lacks.all(axis=(1, 2))).all(), "odds")
        self._X = np.empty((BUFFER_ROWS, kept.X.shape[1]))
        self._X[:size], self._columns[:size], self._odds[:size] = kept

    @property
    def _stacks(self) -> Floats:
        return np.array(self._weights).reshape(-1, self._inputs + 1)

    @_stacks.setter
    def _stacks(self, stacks: Floats) -> None:
        require(len(stacks) in (0, len(STACK_SIZES)), "weights")
        require(stacks.shape[1] == self._inputs + 1, "weights")
        require_weights(stacks)
        self._weights = [weights.copy() for weights in stacks]


@kernel
def _stacked(odds: Floats, weights: Floats, outputs: Floats) -> None:
    """Write the probabilities of weighted log-odds: a sigmoid for two classes, else a softmax.

    Shapes: `odds` (m, inputs, S); `weights` (inputs + 1,), the last is the intercept; the output
    (m, n_classes). The columns of unknown classes are not written.
    """
