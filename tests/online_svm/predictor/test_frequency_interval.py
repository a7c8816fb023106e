"""The headline's interval: its bins, its counts, and that it holds the probability."""

import math

import numpy as np
import pytest
from exact_streams import stream
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from online_svm.config import PredictorConfig
from online_svm.predictor.frequency_interval import FrequencyIntervals, bin_edges
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.stream.labels import ClassView
from online_svm.stream.prediction import PredictionBlock


def clopper_pearson(level: float, k: int, n: int) -> tuple[float, float]:
    tail = (1 - level) / 2
    low = stats.beta.ppf(tail, k, n - k + 1) if k else 0.0
    return low, stats.beta.ppf(1 - tail, k + 1, n - k) if k < n else 1.0


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_known=st.integers(2, 4),
    unseen=st.booleans(),
    limit=st.none() | st.integers(1, 20),
)
def test_each_answer_is_the_interval_of_the_counts_before_it(
    seed: int, n_known: int, unseen: bool, limit: int | None
) -> None:
    rng = np.random.default_rng(seed)
    n_scores, n_classes = 1 if n_known == 2 else n_known, n_known + unseen
    training = rng.normal(size=(27, n_scores)).round(1)
    scores = rng.normal(size=(50, n_scores)).round(1)
    columns = rng.integers(0, n_classes, 50)
    columns[25:] -= rng.integers(0, 2, 25) * (columns[25:] + 1)  # some without a label
    point = rng.dirichlet(np.ones(n_classes), 25)
    view = ClassView("abcdef"[:n_known], n_classes == n_known)
    held = FrequencyIntervals(0.9, view, training, scores[:25], columns[:25], limit)
    lower, upper = held.answer(scores[25:], columns[25:], point)
    edges = bin_edges(training)
    bins = np.stack([np.searchsorted(edges[g], scores[:, g]) for g in range(n_scores)], axis=1)
    for i in range(25):
        joined = np.flatnonzero(columns[: 25 + i] >= 0)
        joined = joined if limit is None else joined[-limit:]
        for k in range(n_classes):
            alike = np.ones(len(joined), dtype=np.bool_)
            if k < n_known:
                g = 0 if n_scores == 1 else k
                alike = bins[joined, g] == bins[25 + i, g]
            hits = int((columns[joined][alike] == k).sum())
            if n_known == 2 and k == 0:  # the first class is what the second is not
                hits = int((columns[joined][alike] != 1).sum())
            low, high = clopper_pearson(0.9, hits, int(alike.sum()))
            assert lower[i, k] == pytest.approx(min(low, point[i, k]), abs=1e-9)
            assert upper[i, k] == pytest.approx(max(high, point[i, k]), abs=1e-9)


def test_there_are_as_many_bins_as_the_cube_root_of_the_training_scores_says() -> None:
    assert bin_edges(np.random.default_rng(0).normal(size=(1000, 3))).shape == (3, 9)
    assert bin_edges(np.empty((0, 1))).shape == (1, 0)
    assert bin_edges(np.zeros((1000, 2))).shape == (2, 0)  # ties are not divided
    mixed = bin_edges(np.stack([np.zeros(27), np.arange(27.0)], axis=1))
    assert mixed.tolist() == [[math.inf, math.inf], [8.5, 17.5]]


def answered(config: PredictorConfig, X: np.ndarray, codes: np.ndarray) -> list[PredictionBlock]:
    said = OnlinePredictor(config).step_many(X, [f"c{code}" for code in codes])
    return [block for block in said if isinstance(block, PredictionBlock)]


@pytest.mark.parametrize("shares", [(0.8, 0.2), (0.4, 0.3, 0.3)])
@pytest.mark.parametrize(
    "changes", [{}, {"window": 60}, {"split": "crossfit"}, {"committee": "default"}]
)
def test_the_interval_of_an_answer_holds_its_probability_and_names_its_level(
    shares: tuple[float, ...], changes: dict[str, object]
) -> None:
    X, codes = stream(np.random.default_rng(0), 240, shares)
    classes = tuple(f"c{k}" for k in range(len(shares)))
    config = PredictorConfig.model_validate(
        {"classes": classes, "refit_every": 60, "interval_level": 0.8} | changes
    )
    for block in answered(config, X, codes):
        if block.status == "ok":
            assert block.interval_level == 0.8
            assert (block.lower <= block.point).all()
            assert (block.point <= block.upper).all()
            assert (block.lower >= 0.0).all()
            assert (block.upper <= 1.0).all()


def test_without_a_level_the_interval_is_the_hull_of_the_venn_predictor() -> None:
    X, codes = stream(np.random.default_rng(0), 120, (0.5, 0.5))
    config = PredictorConfig(
        classes=("c0", "c1"), refit_every=60, interval_level=None, committee="single"
    )
    last = answered(config, X, codes)[-1]
    assert last.interval_level is None
    np.testing.assert_array_equal(last.lower, last.venn_lower)
    np.testing.assert_array_equal(last.upper, last.venn_upper)


def test_no_label_that_calibrates_moves_a_bin() -> None:
    rng = np.random.default_rng(0)
    training, scores = rng.normal(size=(64, 1)), rng.normal(size=(30, 1))
    one, other = (
        FrequencyIntervals(
            0.9, ClassView("ab", True), training, scores, rng.integers(0, 2, 30), None
        )
        for _ in range(2)
    )
    np.testing.assert_array_equal(one._edges, other._edges)
