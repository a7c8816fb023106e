"""Kinds of feeds whose true state is known, and how a true sentence on each begins.

`p` is announced, `y` came. A learner's probabilities err in log-odds by about 2 / sqrt(n), in a
direction that changes every 250 examples.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np


class KnownFeed(NamedTuple):
    """Answers of a feed, and which of them have a label."""

    point: np.ndarray  # shape (n, K)
    truth: np.ndarray  # shape (n,); columns
    signal: np.ndarray  # shape (n, d); features that tell what is known of the labels
    labelled: np.ndarray | None = None  # shape (n,)
    weights: np.ndarray | None = None  # shape (n,); examples for which each label stands
    costs: dict | None = None


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def learned(chance, rng, error=2.0):
    """Return the probabilities of a learner where the true ones are `chance`."""
    n = len(chance)
    turn = rng.normal(size=(n // 250 + 1, 2))[np.arange(n) // 250]
    size = np.minimum(error / np.sqrt(np.maximum(np.arange(n), 20)), 0.5)
    odds = np.log(chance / (1.0 - chance))
    return sigmoid(odds * (1.0 + size * 0.5 * turn[:, 1]) + size * turn[:, 0]).clip(1e-4, 1 - 1e-4)


def two(p, chance, rng, **more):
    p = np.clip(p, 1e-4, 1.0 - 1e-4)
    happened = (rng.random(len(p)) < chance).astype(np.int64)
    known = np.log(chance / (1.0 - chance))[:, None]
    return KnownFeed(np.stack([1.0 - p, p], axis=1), happened, known, **more)


def features(rng, n=10_000):
    return rng.normal(size=(n, 4))


def right(rng, n=10_000):
    X = features(rng, n)
    chance = sigmoid(2.0 * X[:, 0] - X[:, 1])
    return two(learned(chance, rng), chance, rng)


def season(rng):
    X = features(rng)
    chance = sigmoid(2.0 * X[:, 0] + 0.3 * (np.arange(len(X)) % 2))
    return two(learned(sigmoid(2.0 * X[:, 0] + 0.15), rng), chance, rng)


def sure_and_few(rng):
    chance = sigmoid(4.0 * features(rng, 300)[:, 0])
    return two(learned(chance, rng), chance, rng)


def overconfident_inside(rng):
    """.99 where .90 is true, and .60 where .69 is: right on average."""
    side, is_sure = rng.random(10_000) < 0.5, rng.random(10_000) < 0.5
    said, true = np.where(is_sure, 0.99, 0.6), np.where(is_sure, 0.9, 0.69)
    return two(np.where(side, said, 1.0 - said), np.where(side, true, 1.0 - true), rng)


def last_tenth_noisy(rng):
    feed = right(rng)
    wrong = (np.arange(10_000) >= 9_000) & (rng.random(10_000) < 0.1)
    return feed._replace(truth=np.where(wrong, 1 - feed.truth, feed.truth))


def one_sided_labels(rng):
    X = features(rng)
    chance = sigmoid(1.8 * X[:, 0] - 1.0 + 1.2 * X[:, 1])
    p = learned(chance, rng)
    return two(p, chance, rng, labelled=(p < 0.35) | (np.arange(len(p)) < 200))


def labels_of_some(rng):
    X = features(rng)
    chance = sigmoid(1.8 * X[:, 0] - 1.0 + 1.2 * X[:, 1])
    return two(learned(chance, rng), chance, rng, labelled=rng.random(len(X)) < 0.3)


def labels_stop(rng):
    chance = sigmoid(2.0 * features(rng)[:, 0])
    return two(learned(chance, rng), chance, rng, labelled=np.arange(10_000) < 6_000)


def rare(rng, factor):
    chance = np.clip(0.01 * np.exp(1.2 * features(rng)[:, 0] - 0.72), 0.0, 0.4)
    return two(factor * chance, chance, rng)


def all_ranges_off(rng):
    half = rng.random(10_000) < 0.5
    return two(np.where(half, 0.65, 0.35), np.where(half, 0.9, 0.1), rng)


def recovered(rng):
    X = features(rng, 6_000)
    chance, n = sigmoid(2.0 * X[:, 0] - X[:, 1]), np.arange(6_000)
    turned = (n > 2_000) & (n < 2_600)
    return two(learned(chance, rng), np.where(turned, 1.0 - chance, chance), rng)


def no_signal(rng, share):
    chance = np.full(10_000, share)
    return two(learned(chance, rng), chance, rng)


def weak_signal(rng):
    """A class of 10 %, of which the label alone is of no use."""
    chance = sigmoid(-2.37 + 0.53 * features(rng, 4_000)[:, 0])
    return two(learned(chance, rng, 1.5), chance, rng)


def three_classes(rng, off=0.0):
    """Three classes; of the last one `off` less than announced comes."""
    X = features(rng)
    odds = np.stack([1.5 * X[:, 0], 1.5 * X[:, 1] - 0.5, 1.5 * X[:, 2]], axis=1)
    point = np.exp(odds) / np.exp(odds).sum(axis=1, keepdims=True)
    true = point.copy()
    true[:, 2] *= 1.0 - off
    true[:, 0] += point[:, 2] * off
    truth = (rng.random((len(X), 1)) > true.cumsum(axis=1)).sum(axis=1).clip(0, 2)
    return KnownFeed(point, truth, odds)


def budget(rng, off=0.0):
    """A label of each fifth example, or of each second one where it is less sure."""
    X = features(rng, 20_000)
    chance = sigmoid(2.0 * X[:, 0] - X[:, 1])
    p = learned(chance, rng)
    every = np.where(np.abs(p - 0.5) < 0.3, 2, 5)
    wanted = rng.random(len(p)) < 1.0 / every
    feed = two(p, np.where(p > 0.5, chance - off, chance + off), rng)
    return feed._replace(labelled=wanted, weights=every.astype(np.float64))


COSTS = {"a": {"a": 0.0, "b": 20.0, "review": 5.0}, "b": {"a": 100.0, "b": 0.0, "review": 5.0}}


def costs(rng, share=None):
    chance = rng.beta(0.5, 16.0, 12_000).clip(0.001, 0.3)
    if share is not None:
        chance = np.full(12_000, share)
    return two(chance, chance, rng, costs=COSTS)


EARLY, HOLDS, OFF = "Too early to say", "Holds", "Off: "
BROKEN = "Do not trust them"

KINDS: dict[str, tuple[Callable, tuple[str, ...]]] = {
    "right": (right, (HOLDS,)),
    "season": (season, (HOLDS,)),
    "3,000 labels": (lambda rng: right(rng, 3_000), (HOLDS, EARLY)),
    "120 labels": (lambda rng: right(rng, 120), (EARLY,)),
    "sure, 300 labels": (sure_and_few, (EARLY, "Holds: right within .05")),
    "overconfident inside": (overconfident_inside, (OFF, BROKEN)),
    "last tenth noisy": (last_tenth_noisy, (OFF, BROKEN, "The last 1,")),
    "labels of one side": (one_sided_labels, ("Known of a part alone",)),
    "labels of 30 %": (labels_of_some, (HOLDS, EARLY)),
    "labels stop": (labels_stop, ("Labels have stopped",)),
    "rare, 2.5 times too high": (lambda rng: rare(rng, 2.5), (OFF, BROKEN, "Take care since")),
    "rare, right": (lambda rng: rare(rng, 1.0), (HOLDS, EARLY)),
    "all ranges off": (all_ranges_off, (OFF, BROKEN)),
    "recovered": (recovered, (HOLDS,)),
    "no signal, .5": (lambda rng: no_signal(rng, 0.5), (HOLDS,)),
    "no signal, .8": (lambda rng: no_signal(rng, 0.8), (HOLDS,)),
    "weak signal": (weak_signal, (HOLDS,)),
    "three classes": (three_classes, (HOLDS,)),
    "three classes, one off": (lambda rng: three_classes(rng, 0.3), (OFF, BROKEN)),
    "budget": (budget, (HOLDS, EARLY)),
    "budget, off": (lambda rng: budget(rng, 0.1), (OFF, BROKEN)),
    "costs": (costs, (HOLDS,)),
    "costs, no signal": (lambda rng: costs(rng, 0.2), (HOLDS,)),
}
"""Kinds of feeds, and how the right sentence may begin."""

HELPS = {"right", "season", "recovered", "weak signal", "three classes", "costs"}
"""Kinds whose sentence says that the probabilities help."""

HELPS_NOT = {"no signal, .5", "no signal, .8", "costs, no signal"}


def is_right(kind: str, sentence: str) -> bool:
    """Return whether a sentence on a feed of a kind is true."""
    if not sentence.startswith(KINDS[kind][1]):
        return False
    if sentence.startswith(HOLDS) and kind in HELPS:
        return "; helps" in sentence
    return not (kind in HELPS_NOT and "; helps" in sentence)
