"""The recent ensemble: nearest neighbours and recent stacks, mixed into the primary prediction.

A model is as old as its last freeze, and its stack was fitted on training examples. After an abrupt
change the newest labelled examples are the first evidence. Their nearest neighbours vote, and a
stack of the members and these votes is fitted to the member outputs for recent examples, each
computed before the example was learned. In a stationary stream the primary prediction keeps the
weight.

With delayed labels an example is learned with its answer-time outputs, because later neighbours
would leak information. But the model improves while labels are on their way, and the weights are as
old as the labels. So the primary prediction is scored by the mean of its answer-time and present
probability and starts with most of the weight, the weights move slowly, and recent stacks get
weight only after `FIT_EVERY` of their answers were labelled.

The recent ensemble spans models and sees every label. It does not change the Venn intervals.
"""

from typing import NamedTuple

import numpy as np

from online_svm.compiled.kernel import kernel
from online_svm.predictor.calibrators import FIT_EVERY, fit_stops
from online_svm.predictor.ensemble import DELAYED_UPDATE, PRIMARY_UPDATE, Ensemble
from online_svm.predictor.expert import Sources
from online_svm.predictor.neighbours import KEPT_EXAMPLES, N_VOTES, write_votes
from online_svm.predictor.pending_examples import AnswerTimeOutputs
from online_svm.refit.committee.stack import fit_more, fit_two, require_weights
from online_svm.refit.scaling import Scaling
from online_svm.storage.state import nest, require, under
from online_svm.storage.state_schema import StateSchema, floats, ints, one
from online_svm.stream.cells import widened
from online_svm.types import Arrays, Bools, Floats, Ints

BUFFER_ROWS = 2 * KEPT_EXAMPLES
MAX_FEATURES = 100_000
"""Largest number of features of a stored example, equal to the limit of a feed."""

STACK_SIZES = (250, 1000)
"""Numbers of newest examples to which the recent stacks are fitted."""

GRADIENT_TOLERANCE = 1e-2
"""Gradient tolerance of a fit, summed over the examples. The next fit starts from its solution."""

_N_HEARD = StateSchema(one("heard", below=FIT_EVERY + 1))


class MemberOutputs(NamedTuple):
    """Inputs of m rows for the recent ensemble."""

    X: Floats  # shape (m, n_features); features as they came
    rows: Floats  # shape (m, d); scaled features
    odds: Floats  # shape (m, M, S); log-odds of the M members for S decisions

    def part(self, rows: slice) -> "MemberOutputs":
        """Return the inputs of some rows."""
        return MemberOutputs(*(part[rows] for part in self))


class RecentEnsemble:
    """Neighbours and recent stacks of a feed; they span models.

    `n_members`, `n_known`: members of the committee, and known classes.
    `is_delayed`: whether labels are delayed.
    """

    def __init__(self, n_members: int, n_known: int, *, is_delayed: bool = False) -> None:
        self._n_known = n_known
        self._decisions = 1 if n_known == 2 else n_known
        self._inputs = n_members + N_VOTES
        self._is_delayed, self._n_heard = is_delayed, 0
        update = DELAYED_UPDATE if is_delayed else PRIMARY_UPDATE
        self._ensemble = Ensemble(1 + len(STACK_SIZES), update)
        self._size = self._joined = self._since = 0
        self._X: Floats = np.empty((BUFFER_ROWS, 0))
        self._points: Floats = np.empty((0, BUFFER_ROWS))
        self._columns: Ints = np.empty(BUFFER_ROWS, dtype=np.int64)
        self._odds: Floats = np.empty((BUFFER_ROWS, self._inputs, self._decisions))
        self._weights: list[Floats] = []

    def follow(self, before: "RecentEnsemble", scaling: Scaling) -> None:
        """Carry over the ensemble from the previous model if it knew as many classes."""
        if before._n_known == self._n_known:
            self.__dict__.update(before.__dict__)
            self._scale(scaling)

    def __len__(self) -> int:
        return min(self._size, KEPT_EXAMPLES)

    def examples(self) -> tuple[Floats, Ints]:
        """Return the newest labelled examples and their class columns, as views."""
        kept = slice(self._size - len(self), self._size)
        return self._X[kept], self._columns[kept]

    def answer(
        self,
        given: MemberOutputs,
        point: Floats,
        columns: Ints,
        earlier: AnswerTimeOutputs | None = None,
    ) -> tuple[Floats, dict[str, Floats] | None]:
        """Mix the ensemble into the primary prediction in order; learn labels after their answers.

        `point`, shape (m, n_classes): primary prediction.
        `columns`, shape (m,): class columns of the labels; -1 for a row without a label.
        `earlier`: answer-time outputs, with delayed labels; None if labels come at once or no row
            is learned.
        Returns `point`, shape (m, n_classes).
        Returns `outputs`: with delayed labels: the member outputs to store with each row, for
            `AnswerTimeOutputs`.
        """
        of_known = np.where(columns < self._n_known, columns, -1)
        parts = np.repeat(point[None], 1 + len(STACK_SIZES), axis=0)  # until the first fit
        odds = np.empty((len(point), self._inputs, self._decisions))
        had_weight = np.zeros(len(point), dtype=bool)
        shapes = {"odds": odds.shape[1:], "parts": (len(parts), point.shape[1])}
        sources = None if earlier is None else Sources(earlier, len(point), shapes)
        begin = 0
        for stop in fit_stops(of_known, self._since):
            rows = slice(begin, stop)
            asks = np.ones(stop - begin, dtype=bool) if earlier is None else ~earlier.learns[rows]
            self._answer(given.part(rows), of_known[rows], asks, parts[:, rows], odds[rows])
            if sources is not None:
                learned = begin + np.flatnonzero(~asks)
                had_weight[learned] = _use_answer_time_outputs(sources, learned, parts, odds)
            self._keep(given.X[rows], of_known[rows], odds[rows])
            if self._since == FIT_EVERY:
                self._fit()
            begin = stop
        if not self._is_delayed:
            return self._ensemble.answer(parts, columns), None
        mixed = self._ensemble.answer(parts, np.where(np.isnan(odds[:, 0, 0]), -1, columns))
        had_weight &= columns >= 0
        heard = self._n_heard + np.cumsum(had_weight)
        self._n_heard = min(FIT_EVERY, int(heard[-1])) if len(heard) else self._n_heard
        is_early = heard - had_weight < FIT_EVERY
        mixed[is_early] = point[is_early]
        return mixed, {"odds": odds, "parts": parts.swapaxes(0, 1)}

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
        for weights, outputs in zip(self._weights, parts[1:], strict=False):
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

    def _scale(self, scaling: Scaling) -> None:
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

    def state(self) -> Arrays:
        """Return the examples, their member outputs and the weights."""
        kept = slice(max(0, self._size - KEPT_EXAMPLES), self._size)
        arrays = nest("mixture", self._ensemble.state()) | {
            "X": self._X[kept].copy(), "columns": self._columns[kept].copy(),
            "odds": self._odds[kept].copy(), "since": np.array([self._since]),
        }  # fmt: skip
        for size, weights in zip(STACK_SIZES, self._weights, strict=False):
            arrays |= nest(str(size), {"weights": weights.copy()})
        return arrays | ({"heard": np.array([self._n_heard])} if self._is_delayed else {})

    def restore(self, state: Arrays, scaling: Scaling) -> None:
        """Continue from a state; `scaling` is the model's."""
        owner = type(self)
        held = StateSchema(
            floats("X", "n f", optional=True), ints("columns", "n", below=self._n_known),
            floats("odds", f"n {self._inputs} {self._decisions}", optional=self._is_delayed),
            one("since", below=FIT_EVERY),
        ).values(owner, None, state)  # fmt: skip
        size, odds = len(held["columns"]), held["odds"]
        require(size <= KEPT_EXAMPLES, "columns")
        require(held["X"].shape[1] <= MAX_FEATURES, "X")  # bounds the memory that is allocated
        has_outputs = np.isfinite(odds).all(axis=(1, 2))
        require(bool((has_outputs | np.isnan(odds).all(axis=(1, 2))).all()), "odds")
        self._size = self._joined = size
        self._since = held["since"]
        self._X = np.empty((BUFFER_ROWS, held["X"].shape[1]))
        for name in ("X", "columns", "odds"):
            getattr(self, f"_{name}")[:size] = held[name]
        if size:
            self._scale(scaling)
        schema = StateSchema(floats("weights", f"{self._inputs + 1}"))
        stored = [under(str(number), state) for number in STACK_SIZES]
        self._weights = [schema.values(owner, None, one)["weights"] for one in stored if one]
        for weights in self._weights:
            require_weights(weights)
        require(len(self._weights) in (0, len(STACK_SIZES)), "weights")
        self._ensemble.restore(under("mixture", state))
        if self._is_delayed:
            self._n_heard = _N_HEARD.values(owner, None, state)["heard"]


def _use_answer_time_outputs(sources: Sources, learned: Ints, parts: Floats, odds: Floats) -> Bools:
    """Replace the outputs of learned rows; return whether the stacks had weight in their answers.

    The primary prediction becomes the mean of the two. A row without a source gets NaN odds, and
    the primary prediction in all its parts.
    """
    has_source = sources.rows[learned] >= 0
    known, absent = learned[has_source], learned[~has_source]
    odds[absent], parts[1:, absent] = np.nan, parts[0, absent]
    if len(known):
        odds[known] = sources.of("odds", odds, known)
        then = sources.of("parts", parts.swapaxes(0, 1), known).swapaxes(0, 1)
        parts[0, known] = 0.5 * (parts[0, known] + then[0])
        parts[1:, known] = then[1:]
        has_source[has_source] = (then[0] != then[1]).any(axis=1)
    return has_source


@kernel
def _stacked(odds: Floats, weights: Floats, outputs: Floats) -> None:
    """Write the probabilities of weighted log-odds: a sigmoid for two classes, else a softmax.

    Shapes: `odds` (m, inputs, S); `weights` (inputs + 1,), the last is the intercept; the output
    (m, n_classes). The columns of unknown classes are not written.
    """
