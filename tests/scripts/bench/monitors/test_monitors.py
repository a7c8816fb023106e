"""`bench monitors`: its streams, and the choice of a sensitivity."""

import numpy as np
import pytest

from scripts.bench.monitors.run import DETECTORS, NOTICES
from scripts.bench.monitors.worlds import CHANGE, CHANGES, EXACT, NULLS, WORLDS, counted, stream_of


def test_a_law_is_a_distribution_at_all_times_and_moves_only_after_the_change():
    for world in (NULLS | CHANGES).values():
        for t in (-1.0, -0.01, 0.0, 0.5, 0.99):
            law = world.law(t)
            assert law.min() >= 0
            assert law.sum() == pytest.approx(1.0)
        assert np.array_equal(world.law(-1.0), world.law(-0.01))
        moves = any(not np.array_equal(world.law(-1.0), world.law(t)) for t in (0.1, 0.99))
        assert moves != world.is_null
    shift = WORLDS["covariate shift alone"].law
    rates = [law[:, 1] / law.sum(axis=1) for law in (shift(-1.0), shift(0.5))]
    assert np.allclose(*rates), "the rates of the categories stay"


def test_a_feature_that_moves_is_noticed_once():
    stream = stream_of(EXACT["exact, a feature moves by .7"], seed=3)
    first, _ = DETECTORS[NOTICES]
    found = first(stream, 2000, 100_000)
    assert CHANGE < found < CHANGE + 300
    assert first(stream, found + 1, 100_000) != found + 1


def test_probabilities_are_those_of_the_counts():
    rng = np.random.default_rng(2)
    category, label = rng.integers(0, 3, 600), rng.integers(0, 2, 600)
    calibrates = rng.random(600) < 0.5
    point, size = counted(category, label, calibrates, (3, 2), 250)
    assert (size >= 0).tolist() == [False] * 10 + [True] * 590
    t = 555  # since the refit at 500 each example has joined
    joined = [i for i in range(t) if i >= 500 or calibrates[i]]
    same = [label[i] for i in joined if category[i] == category[t]]
    assert size[t] == len(same)
    rate = (sum(label[joined]) + 0.5) / (len(joined) + 1)
    assert point[t, 1] == pytest.approx((sum(same) + rate) / (len(same) + 1))


def test_each_detector_becomes_more_sensitive_along_its_grid():
    stream = stream_of(WORLDS["rate .2 to .6"], seed=4)
    begin = stream.after(CHANGE) - 500
    for first, tried in DETECTORS.values():
        if len(tried) > 1:
            assert first(stream, begin, tried[-1]) is not None
            some = [tried[i] for i in range(0, len(tried), len(tried) // 4)]
            firsts = [np.inf if row is None else row for row in
                      (first(stream, begin, one) for one in some)]  # fmt: skip
            assert firsts == sorted(firsts, reverse=True)
