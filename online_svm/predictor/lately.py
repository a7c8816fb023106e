"""What was said lately: nearest neighbours and recent stacks, mixed into the headline.

A model is as old as its last freeze, and its stack was fitted on training examples alone. Where
everything changes at once, the last labelled examples know it first. Their neighbours answer by
votes; a stack of the members and of these neighbours is fitted to what they said of the last
examples before they learned them. Where nothing changes, the weights stay with the headline.

Where labels come late, an example is learned by what was said of it when it was answered, which is
kept until its label comes: the neighbours that came between would know more. But a model becomes
better while labels are on their way, and the weights are as old as the labels. So the headline is
credited halfway between what it said then and what it says now, and has most of the weight at
first; the weights are slow; and the stacks are not heard before labels came for what they said.

These are of several models and see every label: the Venn pair beside them is untouched by them.
"""

from typing import NamedTuple, Self

import numpy as np

from online_svm.compiled.elementary import exp_nonpositive
from online_svm.compiled.intrinsics import fma
from online_svm.compiled.jit import jit
from online_svm.compiled.logistic import logistic
from online_svm.predictor.earlier import Earlier, put_earlier
from online_svm.predictor.mixture import Mixture
from online_svm.predictor.neighbours import KEPT, KINDS, write_votes
from online_svm.predictor.recent_map import EVERY, fit_stops
from online_svm.refit.committee.stack import fit_more, fit_two, require_weights
from online_svm.refit.scaling import Scaling
from online_svm.storage.arrays import nest, require, under
from online_svm.storage.fields import Fields, floats, ints, one
from online_svm.stream.cells import widened
from online_svm.types import Arrays, Bools, Floats, Ints

ROOM = 2 * KEPT
WIDEST = 100_000
"""Features of a stored example: as many as a feed may have."""

SIZES = (250, 1000)
"""Examples that the recent stacks are fitted to."""

TOL = 1e-2
"""Of the gradient, a sum over the examples, where a fit ends: the next begins there."""

SHARE = 0.005
"""Part of its weights that the mixture spreads evenly after each label."""

LATE_SHARE, FIRST, RATE = 0.002, 0.7, 0.03
"""Where labels come late, of the mixture: its share, the headline's part of that and of the first
weights, and the power of what labels say.

They were chosen for horizons of 250 and 2,000: see docs/measured.md.
"""

_HEARD = Fields(one("heard", below=EVERY + 1))


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

    def part(self, rows: slice) -> "Given":
        """Return what is known of some rows."""
        return Given(*(part[rows] for part in self))


class Lately:
    """Neighbours and recent stacks of a feed; it outlives the models.

    Parameters
    ----------
    n_members, n_known : int
        M, and the classes that are known.
    is_late : bool
        Whether labels come late.
    """

    def __init__(self, n_members: int, n_known: int, *, is_late: bool = False) -> None:
        self._n_known = n_known
        self._decisions = 1 if n_known == 2 else n_known
        self._inputs = n_members + KINDS
        self._is_late, self._heard = is_late, 0
        self._mixture = self._mixture_of(None)
        self._size = self._joined = self._since = 0
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

    def answer(
        self, given: Given, point: Floats, columns: Ints, earlier: Earlier | None = None
    ) -> tuple[Floats, dict[str, Floats] | None]:
        """Mix rows in turn with the headline's; each labelled one is learned after its answer.

        Parameters
        ----------
        given : Given
        point : ndarray of shape (m, n_classes)
            Of the headline.
        columns : ndarray of shape (m,)
            Class columns of the labels; -1 where there is none.
        earlier : Earlier or None
            None where labels come with their examples, or none is learned.

        Returns
        -------
        point : ndarray of shape (m, n_classes)
        said : dict of str to ndarray, or None
            Where labels come late, what is to be kept with each row, for `Earlier`.
        """
        of_known = np.where(columns < self._n_known, columns, -1)
        parts = np.repeat(point[None], 1 + len(SIZES), axis=0)  # until there is a fit
        odds = np.empty((len(point), self._inputs, self._decisions))
        spoke = np.zeros(len(point), dtype=bool)
        begin = 0
        for stop in fit_stops(of_known, self._since):
            rows = slice(begin, stop)
            asks = np.ones(stop - begin, dtype=bool) if earlier is None else ~earlier.learns[rows]
            self._answer(given.part(rows), of_known[rows], asks, parts[:, rows], odds[rows])
            if earlier is not None:
                put_earlier(earlier, range(begin, stop), parts, odds, spoke)
            self._keep(given.X[rows], of_known[rows], odds[rows])
            if self._since == EVERY:
                self._fit()
            begin = stop
        if not self._is_late:
            return self._mixture.answer(parts, columns), None
        mixed = self._mixture.answer(parts, np.where(np.isnan(odds[:, 0, 0]), -1, columns))
        spoke &= columns >= 0
        heard = self._heard + np.cumsum(spoke)
        self._heard = min(EVERY, int(heard[-1])) if len(heard) else self._heard
        is_early = heard - spoke < EVERY
        mixed[is_early] = point[is_early]
        return mixed, {"odds": odds, "parts": parts.swapaxes(0, 1)}

    def _answer(
        self, given: Given, columns: Ints, asks: Bools, parts: Floats, odds: Floats
    ) -> None:
        """Write the inputs of the stacks and what they say, of rows none but the last before a fit.

        Of rows that do not ask only the labels are learned.
        """
        self._make_room(given)
        odds[:, :-KINDS] = given.odds
        self._joined = write_votes(
            (self._points, self._columns), self._size, given.rows, columns, asks, odds[:, -KINDS:]
        )
        for weights, said in zip(self._weights, parts[1:], strict=False):
            _stacked(odds, weights, said)

    def _keep(self, X: Floats, columns: Ints, odds: Floats) -> None:
        """Keep what was said of labelled rows, which are neighbours already."""
        new, labelled = slice(self._size, self._joined), columns >= 0
        self._X[new] = widened(X[labelled], self._X.shape[1])
        self._odds[new] = odds[labelled]
        self._since += self._joined - self._size
        self._size = self._joined

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
        is_said = ~np.isnan(self._odds[: self._size, 0, 0])  # of some nothing: see `put_earlier`
        if np.count_nonzero(is_said[-SIZES[0] :]) < EVERY:
            return
        if not self._weights:
            equal = np.append(np.full(self._inputs, 1.0 / self._inputs), 0.0)
            self._weights = [equal.copy() for _ in SIZES]
        for size, weights in zip(SIZES, self._weights, strict=True):
            last = slice(max(0, self._size - size), self._size)
            odds, columns = self._odds[last], self._columns[last]
            if not is_said[last].all():
                odds, columns = odds[is_said[last]], columns[is_said[last]]
            if self._decisions == 1:
                fit_two(odds[:, :, 0], columns == 1, weights, TOL)
            else:
                fit_more(odds, columns, weights[:-1], TOL)

    def _mixture_of(self, state: Arrays | None) -> Mixture:
        """Return the mixture that a state describes, or one that begins."""
        share = LATE_SHARE if self._is_late else SHARE
        first, rate = (FIRST, RATE) if self._is_late else (None, 1.0)
        if state is None:
            return Mixture(1 + len(SIZES), share, first=first, rate=rate)
        return Mixture.from_state(state, 1 + len(SIZES), share, first=first, rate=rate)

    def state(self) -> Arrays:
        """Return the examples, what was said of them, and the weights."""
        kept = slice(max(0, self._size - KEPT), self._size)
        arrays = nest("mixture", self._mixture.state()) | {
            "X": self._X[kept].copy(), "columns": self._columns[kept].copy(),
            "odds": self._odds[kept].copy(), "since": np.array([self._since]),
        }  # fmt: skip
        for size, weights in zip(SIZES, self._weights, strict=False):
            arrays |= nest(str(size), {"weights": weights.copy()})
        return arrays | ({"heard": np.array([self._heard])} if self._is_late else {})

    @classmethod
    def from_state(
        cls,
        state: Arrays,
        n_members: int,
        n_known: int,
        scaling: Scaling,
        *,
        is_late: bool = False,
    ) -> Self:
        """Return what `state` describes.

        Raises
        ------
        InvalidSnapshot, LookupError, ValueError
            If an array is absent or has another type, length or range.
        """
        lately = cls(n_members, n_known, is_late=is_late)
        shape = f"n {lately._inputs} {lately._decisions}"
        held = Fields(
            floats("X", "n f", optional=True), ints("columns", "n", below=n_known),
            floats("odds", shape, optional=is_late), one("since", below=EVERY),
        ).values(cls, None, state)  # fmt: skip
        size = len(held["columns"])
        require(size <= KEPT, "columns")
        require(held["X"].shape[1] <= WIDEST, "X")  # by it memory is allocated
        odds = held["odds"]
        is_said = np.isfinite(odds).all(axis=(1, 2))
        require(bool((is_said | np.isnan(odds).all(axis=(1, 2))).all()), "odds")
        lately._size = lately._joined = size
        lately._since = held["since"]
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
        lately._mixture = lately._mixture_of(under("mixture", state))
        if is_late:
            lately._heard = _HEARD.values(cls, None, state)["heard"]
        return lately


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
