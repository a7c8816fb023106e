"""`bench monitors`: its streams, and the choice of a sensitivity."""

import numpy as np
import pytest

from scripts.bench.kept import cells_of
from scripts.bench.monitors.run import DETECTORS, FALSE_SHARE, NOTICES, OURS, DetectorCell, measure
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


def test_a_stream_has_the_frequencies_of_its_law():
    stream = stream_of(WORLDS["rate .2 to .6"], seed=1)
    begin = stream.after(CHANGE)
    columns = stream.rows.columns
    assert columns[:begin].mean() == pytest.approx(0.2, abs=0.03)
    assert columns[begin:].mean() == pytest.approx(0.6, abs=0.03)
    quiet = stream_of(WORLDS["rate .2 to .6"], seed=1, quiet=True)
    assert quiet.rows.columns[begin:].mean() == pytest.approx(0.2, abs=0.03)


@pytest.mark.parametrize("name", EXACT)
def test_exact_probabilities_are_right_until_the_change(name):
    stream = stream_of(EXACT[name], seed=3)
    q, y, X = stream.rows.point[:, 1], stream.rows.columns, stream.rows.X
    for bin_ in range(5):
        here = (q >= 0.2 * bin_) & (q < 0.2 * (bin_ + 1))
        before, after = here[:CHANGE], here[CHANGE:]
        assert y[:CHANGE][before].mean() == pytest.approx(q[:CHANGE][before].mean(), abs=0.08)
        true = EXACT[name].truth(q[CHANGE:][after]).mean()
        assert y[CHANGE:][after].mean() == pytest.approx(true, abs=0.08)
    assert X[CHANGE:, 2].mean() == pytest.approx(EXACT[name].shift, abs=0.05)


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


@pytest.mark.slow
def test_the_sensitivity_is_the_greatest_that_the_run_length_allows():
    (found,) = measure(DetectorCell(stream="rate .2 to .6", method="CUSUM (Page)", streams=12))
    assert FALSE_SHARE - 1 / 12 < found["false_share"] <= FALSE_SHARE
    assert found["found_share"] == 1.0
    assert 0 < found["delay"] < 150


def test_on_streams_without_a_change_only_the_default_monitors_are_run():
    values = {"stream": ["i.i.d., class of 1 %"], "method": DETECTORS, "streams": [3]}
    cells = cells_of(DetectorCell, None, **values)
    assert [cell.method for cell in cells if cell.is_run] == [OURS]


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
