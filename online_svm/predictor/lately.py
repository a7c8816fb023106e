"""What was said lately: nearest neighbours and recent stacks, mixed into the headline.

A model is as old as its last freeze, and its stack was fitted on training examples alone. Where
everything changes at once, the last labelled examples know it first. Their neighbours answer by
votes; a stack of the members and of these neighbours is fitted to what they said of the last
examples before they learned them. Where nothing changes, the weights stay with the headline.

These are of several models and see every label: the Venn pair beside them is untouched by them.
"""

from typing import NamedTuple, Self

import numpy as np

from online_svm.compiled.elementary import exp_nonpositive
from online_svm.compiled.intrinsics import fma
from online_svm.compiled.jit import jit
from online_svm.compiled.kernels import squared_distances
from online_svm.compiled.logistic import logistic, logit
from online_svm.predictor.mixture import Mixture
from online_svm.predictor.recent_map import EVERY, fit_stops
from online_svm.refit.committee.stack import fit_more, fit_two, require_weights
from online_svm.refit.scaling import Scaling
from online_svm.storage.arrays import nest, require, under
from online_svm.storage.fields import Fields, floats, ints, one
from online_svm.stream.cells import widened
from online_svm.types import Arrays, Floats, Ints

COUNTS, MEMORIES = np.array([5, 10, 10]), np.array([100, 250, 1000])
"""So many neighbours, of so many labelled examples: the last ones."""

KINDS = len(COUNTS)
KEPT = int(MEMORIES[-1])
ROOM = 2 * KEPT
WIDEST = 100_000
"""Features of a stored example: as many as a feed may have."""

SIZES = (250, 1000)
"""Examples that the recent stacks are fitted to."""

TOL = 1e-2
"""Of the gradient, a sum over the examples, where a fit ends: the next begins there."""

SHARE = 0.005
"""Part of its weights that the mixture spreads evenly after each label."""


class Given(NamedTuple):
    """What is known of m rows besides the headline.

    Attributes
    ----------
    X : ndarray of shape (m, n_features)
        As they came.
    rows : ndarray of shape (m, d)
        Scaled.
    odds : ndarray of shape (m, M, S)
        Log-odds of the members.
    """

    X: Floats
    rows: Floats
    odds: Floats


class Lately:
    """Neighbours and recent stacks of a feed; it outlives the models.

    Parameters
    ----------
    n_members, n_known : int
        M, and the classes that are known.
    """

    def __init__(self, n_members: int, n_known: int) -> None:
        self._n_known = n_known
        self._decisions = 1 if n_known == 2 else n_known
        self._inputs = n_members + KINDS
        self._mixture = Mixture(1 + len(SIZES), SHARE)
        self._size = self._since = 0
        self._X: Floats = np.empty((ROOM, 0))
        self._points: Floats = np.empty((0, ROOM))
        self._columns: Ints = np.empty(ROOM, dtype=np.int64)
        self._odds: Floats = np.empty((ROOM, self._inputs, self._decisions))
        self._weights: list[Floats] = []

    def follow(self, before: "Lately", scaling: Scaling) -> None:
        """Go on with what was learned under the model before, if its classes were as many."""
        if before._n_known == self._n_known:
            self.__dict__.update(before.__dict__)
            self._scale(scaling)

    def answer(self, given: Given, point: Floats, columns: Ints) -> Floats:
        """Mix rows in turn with the headline's; each labelled one is learned after its answer.

        Parameters
        ----------
        given : Given
        point : ndarray of shape (m, n_classes)
            Of the headline.
        columns : ndarray of shape (m,)
            Class columns of the labels; -1 where there is none.

        Returns
        -------
        ndarray of shape (m, n_classes)
        """
        of_known = np.where(columns < self._n_known, columns, -1)
        said = np.empty((len(SIZES), *point.shape))
        begin = 0
        for stop in fit_stops(of_known, self._since):
            rows = slice(begin, stop)
            said[:, rows] = point[rows]  # until there is a fit
            self._answer(Given(*(part[rows] for part in given)), of_known[rows], said[:, rows])
            if self._since == EVERY:
                self._fit()
            begin = stop
        return self._mixture.answer([point, *said], columns)

    def _answer(self, given: Given, columns: Ints, said: Floats) -> None:
        """Write what the stacks say of rows, none of which is due for a fit but the last.

        As long as there is none, `said` stays as it is: the headline.
        """
        labelled = columns >= 0
        self._make_room(given)
        m, first = len(columns), self._size
        odds = np.empty((m, self._inputs, self._decisions))
        odds[:, :-KINDS] = given.odds
        self._size = _neighbours(
            self._points, self._columns, first, given.rows, columns, odds[:, -KINDS:]
        )
        for weights, values in zip(self._weights, said, strict=False):
            _stacked(odds, weights, values)
        new = slice(first, self._size)
        self._X[new] = widened(given.X[labelled], self._X.shape[1])
        self._odds[new] = odds[labelled]
        self._since += self._size - first

    def _make_room(self, given: Given) -> None:
        """Keep the last examples alone where others might not fit; widen what is held."""
        if self._size > ROOM - EVERY:
            kept = slice(self._size - KEPT, self._size)
            for held in (self._X, self._columns, self._odds, self._points.T):
                held[:KEPT] = held[kept].copy()
            self._size = KEPT
        if given.X.shape[1] > self._X.shape[1]:
            self._X = widened(self._X, given.X.shape[1])
        if not self._size and len(self._points) != given.rows.shape[1]:
            self._points = np.empty((given.rows.shape[1], ROOM))

    def _scale(self, scaling: Scaling) -> None:
        """Scale the examples that are held by another scaling."""
        held = scaling.transform(self._X[: self._size])
        self._points = np.empty((held.shape[1], ROOM))
        self._points[:, : self._size] = held.T

    def _fit(self) -> None:
        """Fit the stacks to what was said of the last examples, from where they are."""
        self._since = 0
        if not self._weights:
            equal = np.append(np.full(self._inputs, 1.0 / self._inputs), 0.0)
            self._weights = [equal.copy() for _ in SIZES]
        for size, weights in zip(SIZES, self._weights, strict=True):
            last = slice(max(0, self._size - size), self._size)
            odds, columns = self._odds[last], self._columns[last]
            if self._decisions == 1:
                fit_two(odds[:, :, 0], columns == 1, weights, TOL)
            else:
                fit_more(odds, columns, weights[:-1], TOL)

    def state(self) -> Arrays:
        """Return the examples, what was said of them, and the weights."""
        kept = slice(max(0, self._size - KEPT), self._size)
        arrays = nest("mixture", self._mixture.state()) | {
            "X": self._X[kept].copy(), "columns": self._columns[kept].copy(),
            "odds": self._odds[kept].copy(), "since": np.array([self._since]),
        }  # fmt: skip
        for size, weights in zip(SIZES, self._weights, strict=False):
            arrays |= nest(str(size), {"weights": weights.copy()})
        return arrays

    @classmethod
    def from_state(cls, state: Arrays, n_members: int, n_known: int, scaling: Scaling) -> Self:
        """Return what `state` describes.

        Raises
        ------
        InvalidSnapshot, LookupError, ValueError
            If an array is absent or has another type, length or range.
        """
        lately = cls(n_members, n_known)
        shape = f"n {lately._inputs} {lately._decisions}"
        held = Fields(
            floats("X", "n f", optional=True), ints("columns", "n", below=n_known),
            floats("odds", shape), one("since", below=EVERY),
        ).values(cls, None, state)  # fmt: skip
        size = len(held["columns"])
        require(size <= KEPT, "columns")
        require(held["X"].shape[1] <= WIDEST, "X")  # by it memory is allocated
        lately._size, lately._since = size, held["since"]
        lately._X = np.empty((ROOM, held["X"].shape[1]))
        for name in ("X", "columns", "odds"):
            getattr(lately, f"_{name}")[:size] = held[name]
        if size:
            lately._scale(scaling)
        for number in SIZES:
            fitted = under(str(number), state)
            if fitted:
                weights = Fields(floats("weights", f"{lately._inputs + 1}"))
                lately._weights.append(weights.values(cls, None, fitted)["weights"])
                require_weights(lately._weights[-1])
        require(len(lately._weights) in (0, len(SIZES)), "weights")
        parts = under("mixture", state)
        lately._mixture = Mixture.from_state(parts, 1 + len(SIZES), SHARE)
        return lately


@jit
def _neighbours(
    points: Floats, labels: Ints, size: int, rows: Floats, columns: Ints, odds: Floats
) -> int:
    """Write the log-odds of the votes of each row's neighbours; a labelled row then joins them.

    Parameters
    ----------
    points : ndarray of shape (d, room)
        Labelled examples, the oldest first; `size` of them.
    labels : ndarray of shape (room,)
    rows : ndarray of shape (m, d)
    columns : ndarray of shape (m,)
    odds : ndarray of shape (m, KINDS, S)

    Returns
    -------
    int
        The new number of examples.
    """
    decisions = odds.shape[2]
    classes = max(decisions, 2)
    most = COUNTS.max()
    distances, nearest, of = np.empty(KEPT), np.empty(most), np.empty(most, dtype=np.int64)
    for i in range(len(rows)):
        first = max(0, size - KEPT)
        squared_distances(points, rows[i], first, size, distances[: size - first])
        found, place = 0, size - 1
        for kind in range(KINDS):
            # 1. The nearest, sorted, of the examples up to this memory; of equal ones the newest.
            while place >= max(first, size - MEMORIES[kind]):
                distance = distances[place - first]
                if found < most or distance < nearest[found - 1]:
                    at = min(found, most - 1)
                    while at > 0 and distance < nearest[at - 1]:
                        nearest[at], of[at] = nearest[at - 1], of[at - 1]
                        at -= 1
                    nearest[at], of[at] = distance, labels[place]
                    found = min(found + 1, most)
                place -= 1
            # 2. Their votes.
            count = min(found, COUNTS[kind])
            for s in range(decisions):
                votes = 1.0 / classes
                for k in range(count):
                    votes += of[k] == (1 if decisions == 1 else s)
                odds[i, kind, s] = logit(votes / (count + 1.0))
        # 3. A labelled row joins the examples.
        if columns[i] >= 0:
            points[:, size] = rows[i]
            labels[size] = columns[i]
            size += 1
    return size


@jit
def _stacked(odds: Floats, weights: Floats, said: Floats) -> None:
    """Write the probabilities of weighted log-odds: of two classes, or of a softmax."""
    inputs, decisions = odds.shape[1:]
    logits = np.empty(decisions)
    for i in range(len(odds)):
        highest = -np.inf
        for s in range(decisions):
            total = float(weights[inputs])
            for m in range(inputs):
                total = fma(weights[m], odds[i, m, s], total)
            logits[s] = total
            highest = max(highest, total)
        # What the headline gives to labels that are not known yet stays.
        share = 1.0
        for s in range(max(decisions, 2), said.shape[1]):
            share -= said[i, s]
        if decisions == 1:
            p = logistic(logits[0])
            said[i, 0], said[i, 1] = share * (1.0 - p), share * p
            continue
        whole = 0.0
        for s in range(decisions):
            logits[s] = exp_nonpositive(logits[s] - highest)
            whole += logits[s]
        for s in range(decisions):
            said[i, s] = share * (logits[s] / whole)
