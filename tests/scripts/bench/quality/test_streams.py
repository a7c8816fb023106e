"""The streams of the quality benchmark."""

import numpy as np
import pytest

from scripts.bench.quality import synthetic
from scripts.bench.quality.run import cells_of
from scripts.bench.quality.streams import DEVELOPMENT, HELD_OUT, STREAMS, stream
from workers.errors import BadConfiguration
from workers.push.datasets import DataNotFound


def test_a_stream_is_shuffled_by_the_seed():
    first, second = stream("bananas", seed=0), stream("bananas", seed=1)
    assert first[0].shape == (5300, 2)
    assert (first[0] != second[0]).any()
    assert sorted(map(tuple, first[0])) == sorted(map(tuple, second[0]))


def test_a_stream_in_time_order_is_the_file(data_set):
    data = data_set("elec2")
    X, codes = stream("elec2", seed=5)
    np.testing.assert_array_equal(X, data.X[:10_000])
    np.testing.assert_array_equal(codes, data.y[:10_000] == "1")
    late, _ = stream("elec2-late", seed=0)
    np.testing.assert_array_equal(late, data.X[30_000:40_000])


def test_the_examples_of_a_drawn_stream_are_those_of_its_seed():
    first, again, other = (stream("sea", seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first[0], again[0])
    np.testing.assert_array_equal(first[1], again[1])
    assert (first[0] != other[0]).any()


def test_abrupt_drift_changes_the_rule_at_every_eight_hundredth_example():
    X, codes = stream("sea", seed=0)
    sums = X[:, 0] + X[:, 1]
    for part, threshold in enumerate((8.0, 9.0, 7.0, 9.5, 8.0)):
        held = slice(800 * part, 800 * (part + 1))
        assert np.mean((sums[held] > threshold) == codes[held]) == pytest.approx(0.9, abs=0.03)


@pytest.mark.parametrize("name", synthetic.STREAMS)
def test_a_drawn_stream_has_the_classes_it_says(name):
    X, codes = stream(name, seed=0)
    assert len(X) == 5000
    assert np.isfinite(X).all()
    assert sorted(set(codes.tolist())) == list(range(STREAMS[name].n_classes))


def test_every_stream_has_the_classes_it_says(data_set):
    data_set("car")
    for name, kind in STREAMS.items():
        if name not in synthetic.STREAMS:
            X, codes = stream(name, seed=0)
            assert len(X) == len(codes) <= kind.limit
            assert sorted(set(codes.tolist())) == list(range(kind.n_classes))


def test_the_lists_are_apart_and_as_large_as_they_say():
    assert not set(DEVELOPMENT) & set(HELD_OUT)
    classes = [kind.n_classes == 2 for kind in STREAMS.values()]
    assert (classes.count(True), classes.count(False)) == (19, 9)


def test_a_stream_in_time_order_has_one_shuffle_and_others_as_many_as_asked():
    cells = cells_of(("bananas", "elec2", "sea"), ("headline", "river ARF"), shuffles=4)
    assert len(cells) == (4 + 1 + 4) * 2
    assert len(set(cells)) == len(cells)


def test_a_missing_file_or_data_set_is_named(monkeypatch, tmp_path):
    with pytest.raises(DataNotFound, match=r"elec\.csv"):
        stream("elec2", seed=0, data_dir=tmp_path)
    from river import datasets

    monkeypatch.delattr(datasets, "Phishing")
    with pytest.raises(BadConfiguration, match="no data set Phishing"):
        stream("phishing", seed=0)
