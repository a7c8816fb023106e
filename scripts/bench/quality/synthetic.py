"""Streams drawn by the generators of river; a seed is one draw."""

from collections.abc import Callable
from itertools import islice
from typing import Any

from river.datasets import synth

Pairs = list[tuple[dict[Any, Any], Any]]

CHANGE_EVERY = 800
"""Examples between two abrupt changes; also a short run has two of them."""


def sea(n: int, seed: int) -> Pairs:
    """Return two classes apart at a sum of two of three features that changes abruptly.

    Examples
    --------
    >>> len(sea(3, 0)), sea(3, 0) == sea(3, 0), sea(3, 0) == sea(3, 1)
    (3, True, False)
    """
    return _changing(lambda part: synth.SEA(part % 4, 0.1, _seed(seed, part)), n)


def mixed_drift(n: int, seed: int) -> Pairs:
    """Return two classes that change places abruptly: two indicators, two numbers."""
    return _changing(lambda part: synth.Mixed(part % 2, _seed(seed, part)), n)


def hyperplane(n: int, seed: int) -> Pairs:
    """Return the two sides of a hyperplane in ten features, five of whose weights drift."""
    return _taken(synth.Hyperplane(seed, 10, 5, mag_change=0.001), n)


def agrawal(n: int, seed: int) -> Pairs:
    """Return loans by a rule of axis-parallel cuts (Agrawal et al. 1993, second function)."""
    return _taken(synth.Agrawal(1, seed, perturbation=0.05), n)


def random_rbf(n: int, seed: int) -> Pairs:
    """Return two classes of fifty normal clusters in ten features."""
    return _taken(synth.RandomRBF(seed, seed), n)


def rbf_drift(n: int, seed: int) -> Pairs:
    """Return five classes of fifty clusters in ten features, all of which move."""
    return _taken(synth.RandomRBFDrift(seed, seed, n_classes=5, change_speed=0.0005), n)


def waveform(n: int, seed: int) -> Pairs:
    """Return three classes of noisy waves, 21 features (Breiman et al. 1984)."""
    return _taken(synth.Waveform(seed), n)


def led_drift(n: int, seed: int) -> Pairs:
    """Return the ten digits of a display with faults; what three segments show changes abruptly."""

    def part_of(part: int) -> Any:
        return synth.LEDDrift(
            _seed(seed, part), 0.1, irrelevant_features=True, n_drift_features=part % 4
        )

    return _changing(part_of, n)


def _changing(part_of: Callable[[int], Any], n: int) -> Pairs:
    """Return `n` examples, each `CHANGE_EVERY` of them by the next generator."""
    pairs: Pairs = []
    while len(pairs) < n:
        size = min(CHANGE_EVERY, n - len(pairs))
        pairs += _taken(part_of(len(pairs) // CHANGE_EVERY), size)
    return pairs


def _taken(generator: Any, n: int) -> Pairs:
    return list(islice(iter(generator), n))


def _seed(seed: int, part: int) -> int:
    return 1000 * seed + part


STREAMS: dict[str, Callable[[int, int], Pairs]] = {
    "sea": sea,
    "hyperplane": hyperplane,
    "agrawal": agrawal,
    "random-rbf": random_rbf,
    "rbf-drift": rbf_drift,
    "waveform": waveform,
    "mixed-drift": mixed_drift,
    "led-drift": led_drift,
}
