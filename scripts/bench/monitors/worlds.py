"""Streams with a known change, by laws of category and label.

A predictor that counts answers each example: its taxonomy never changes, and its counts are of a
rolling window, refitted as a feed is. So the announced probabilities come from finite calibration
sets and follow a change with a delay, as in a feed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

import numpy as np
from scipy.stats import norm

from online_svm.stream.prediction import ScoredRows
from online_svm.types import Bools, Floats, Ints

ROWS, BURN_IN, CHANGE = 10_000, 2_000, 5_000
"""Examples of a stream; those before monitors begin; those before the change."""

Law = Callable[[float], Floats]
"""From the time since the change, in parts of its 5,000 examples, below 0 before it, to
P(category, label) of shape (n_categories, K)."""

_LADDER, _EVEN = np.array([0.1, 0.3, 0.5, 0.7, 0.9]), np.full(5, 0.2)
_SKEWED, _SWAPPED = np.array([0.4, 0.3, 0.15, 0.1, 0.05]), np.array([0.2, 0.6])
_PARTS = 200  # steps of a law that moves
_WINDOW = 2000  # examples of the predictor that counts


@dataclass(frozen=True, slots=True)
class World:
    """A law, and how often the predictor is refitted; in a null nothing changes."""

    law: Law
    refit_every: int = 250
    is_null: bool = False


def _binary(rate: float) -> Floats:
    """Five categories by a normal score, one standard deviation between the classes."""
    edges = np.array([-np.inf, -1.0, -0.3, 0.3, 1.0, np.inf])
    of_class = [np.diff(norm.cdf(edges, loc=centre)) for centre in (-0.5, 0.5)]
    return np.column_stack([(1 - rate) * of_class[0], rate * of_class[1]])


def _rates(rates: Floats, shares: Floats) -> Floats:
    return np.column_stack([shares * (1 - rates), shares * rates])


def _jump(before: float, after: float) -> Law:
    return lambda t: _binary(before if t < 0 else after)


def _noisy(share: float) -> Floats:
    """Return the law of two equal classes, where such a share of the labels is wrong."""
    cells = _binary(0.5)
    return np.asarray((1.0 - share) * cells + share * cells[:, ::-1])


def _rotation(t: float) -> Floats:
    turned = min(max(t, 0.0), 1.0)
    return _rates((1 - turned) * _LADDER + turned * _LADDER[::-1], _EVEN)


def _seven(_: float) -> Floats:
    rng = np.random.default_rng(7)
    labels = rng.dirichlet(np.full(7, 0.5), size=5)
    return np.asarray(labels * rng.dirichlet(np.full(5, 3.0))[:, None])


@dataclass(frozen=True, slots=True)
class ExactWorld:
    """Exact probabilities of two classes from four normal features, until the change.

    `truth` maps the announced probabilities to the true ones after it; the third feature, which
    tells nothing, moves by `shift`.
    """

    truth: Callable[[Floats], Floats] = lambda q: q
    shift: float = 0.0
    is_null: bool = False


def _odds(factor: float) -> Callable[[Floats], Floats]:
    return lambda q: q * factor / (q * factor + 1.0 - q)


def _wrong(share: float) -> Callable[[Floats], Floats]:
    return lambda q: (1.0 - share) * q + share * (1.0 - q)


NULLS = {
    "i.i.d., class of 20 %": World(_jump(0.2, 0.2), is_null=True),
    "the same, refit every 10,000": World(_jump(0.2, 0.2), 10_000, is_null=True),
    "i.i.d., class of 1 %": World(_jump(0.01, 0.01), is_null=True),
    "i.i.d., 7 classes, 5 categories": World(_seven, is_null=True),
}

CHANGES = {
    "rate .2 to .25": World(_jump(0.2, 0.25)),
    "rate .2 to .3": World(_jump(0.2, 0.3)),
    "rate .2 to .6": World(_jump(0.2, 0.6)),
    "swap of category rates": World(
        lambda t: _rates(_SWAPPED[:: 1 if t < 0 else -1], np.array([0.5, 0.5]))
    ),
    "rare class, .02 to .06": World(_jump(0.02, 0.06)),
    "rare class, .01 to .05": World(_jump(0.01, 0.05)),
    "rate .5 to .8 over 2,000": World(lambda t: _binary(0.5 + 0.3 * min(max(2.5 * t, 0.0), 1.0))),
    "10 % wrong labels": World(lambda t: _noisy(0.0 if t < 0 else 0.1)),
    "gradual rotation": World(_rotation),
    "covariate shift alone": World(lambda t: _rates(_LADDER, _EVEN if t < 0 else _SKEWED)),
}

EXACT = {
    "exact, 10 % wrong labels": ExactWorld(_wrong(0.1)),
    "exact, 5 % wrong labels": ExactWorld(_wrong(0.05)),
    "exact, odds times e": ExactWorld(_odds(np.e)),
    "exact, odds times 1.5": ExactWorld(_odds(1.5)),
    "exact, a feature moves by .7": ExactWorld(shift=0.7),
    "exact, swap": ExactWorld(lambda q: 1.0 - q),
    "exact, announced .05 too high": ExactWorld(lambda q: np.maximum(q - 0.05, 0.0)),
}

WORLDS = NULLS | CHANGES | EXACT


@dataclass(frozen=True, slots=True)
class WatchedStream:
    """Answers and labels; rows before the first model are left out, `n` counts all examples.

    The scores name the class that is commonest in the category before the change. The misses are
    y - p of the second of two classes, of the class that the scores name for more.
    """

    rows: ScoredRows
    misses: Floats

    @classmethod
    def of(cls, rows: ScoredRows) -> Self:
        """Return answers and labels with their misses."""
        chosen = np.ones_like(rows.columns) if rows.point.shape[1] == 2 else rows.own
        return cls(rows, (rows.columns == chosen) - rows.point[np.arange(len(rows)), chosen])

    def after(self, n: int) -> int:
        """Return the first row of example n, counted from 0, or later."""
        return int(np.searchsorted(self.rows.n, n))


@lru_cache(maxsize=600)  # the detectors of a table watch the same streams
def stream_of(world: World | ExactWorld, seed: int, quiet: bool = False) -> WatchedStream:
    """Return a stream of 10,000 examples; if it is quiet, the law stays what it is at first."""
    rng = np.random.default_rng(seed)
    if isinstance(world, ExactWorld):
        return _exact_stream(world, rng, quiet)
    times = (np.arange(ROWS) - CHANGE) / (ROWS - CHANGE)
    steps = np.where(times < 0, -1, (times * _PARTS).astype(np.int64))
    if quiet:
        steps[:] = -1
    laws = {int(step): world.law(step / _PARTS) for step in np.unique(steps)}
    cells = np.concatenate(
        [_draws(rng, law, int(np.count_nonzero(steps == step))) for step, law in laws.items()]
    )
    n_labels = laws[-1].shape[1]
    category, label = cells // n_labels, cells % n_labels
    calibrates = rng.random(ROWS) < 0.2
    point, size = counted(category, label, calibrates, laws[-1].shape, world.refit_every)
    X = np.column_stack([category + 0.5 * rng.normal(size=ROWS), rng.normal(size=ROWS)])
    at = np.flatnonzero(size >= 0)
    point, truth, category = point[at], label[at], category[at]
    names = tuple("abcdefg"[:n_labels])
    shares = laws[-1] / laws[-1].sum(axis=1, keepdims=True)
    scores = shares[category] if n_labels > 2 else shares[category][:, 1:] - 0.5
    rows = ScoredRows(
        at, names, truth, point, point, point, point, scores, category, model=1, X=X[at],
        category_size=size[at],
    )  # fmt: skip
    return WatchedStream.of(rows)


def _exact_stream(world: ExactWorld, rng: np.random.Generator, quiet: bool) -> WatchedStream:
    X = rng.normal(size=(ROWS, 4))
    q = 1.0 / (1.0 + np.exp(1.6 * X[:, 1] - 2.6 * X[:, 0]))
    true, moved = q.copy(), slice(ROWS if quiet else CHANGE, ROWS)
    true[moved], X[moved, 2] = world.truth(q[moved]), X[moved, 2] + world.shift
    point = np.column_stack([1.0 - q, q])
    rows = ScoredRows(
        np.arange(ROWS), ("a", "b"), (rng.random(ROWS) < true).astype(np.int64), point, point,
        point, point, q[:, None] - 0.5, np.minimum((5 * q).astype(np.int64), 4), model=1, X=X,
    )  # fmt: skip
    return WatchedStream.of(rows)


def counted(
    category: Ints, label: Ints, calibrates: Bools, shape: tuple[int, int], refit_every: int
) -> tuple[Floats, Ints]:
    """Return the probabilities announced for each example, and the size of its category.

    The size, of the calibration set, is -1 while there is no model.

    At 10, 20, 40, ... and at each multiple of `refit_every` the calibration set becomes the
    calibrating ones of the last 2,000 examples; in between each example joins it. The probability
    is (N_k[y] + f_y) / (N + 1), with f the smoothed frequency of the label.
    """
    m, n_labels, counts = len(category), shape[1], np.zeros(shape)
    point, size = np.zeros((m, n_labels)), np.full(m, -1)
    early, has_model = 10, False
    for t in range(m):
        if has_model:
            k = category[t]
            shares = (counts.sum(axis=0) + 1.0 / n_labels) / (counts.sum() + 1.0)
            point[t] = (counts[k] + shares) / (counts[k].sum() + 1.0)
            size[t] = counts[k].sum()
            counts[k, label[t]] += 1.0
        n = t + 1
        is_early = n == early and n < refit_every
        if is_early:
            early *= 2
        if is_early or n % refit_every == 0:
            has_model = True
            counts[:] = 0.0
            window = np.flatnonzero(calibrates[max(0, n - _WINDOW) : n]) + max(0, n - _WINDOW)
            np.add.at(counts, (category[window], label[window]), 1.0)
    return point, size


def _draws(rng: np.random.Generator, law: Floats, m: int) -> Ints:
    cumulative = np.cumsum(law.ravel())
    return np.minimum(np.searchsorted(cumulative, rng.random(m)), law.size - 1)
