"""Every taxonomy in the predictor."""

from itertools import pairwise
from typing import get_args

import numpy as np
import pytest

from online_svm.config import PredictorConfig, TaxonomyName
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.stream.prediction import PredictionBlock
from online_svm.venn.registry import TAXONOMIES

N = 140


def stream(n_classes: int) -> tuple[np.ndarray, list[str | None]]:
    rng = np.random.default_rng(n_classes)
    codes = rng.integers(0, n_classes, N)
    X = rng.normal(size=(n_classes, 2), scale=1.3)[codes] + rng.normal(size=(N, 2))
    return X, [f"c{code}" for code in codes]


def answers(predictor: OnlinePredictor, X: np.ndarray, labels: list[str | None]) -> list:
    blocks = predictor.step_many(X, labels)
    return [b.row(i) for b in blocks if isinstance(b, PredictionBlock) for i in range(len(b))]


def test_the_configuration_and_the_library_know_the_same_taxonomies() -> None:
    assert get_args(TaxonomyName) == TAXONOMIES


@pytest.mark.parametrize("taxonomy", TAXONOMIES)
@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_restored_predictor_continues_byte_for_byte(taxonomy, n_classes, declared) -> None:
    X, labels = stream(n_classes)
    classes = tuple(f"c{k}" for k in range(n_classes)) if declared else None
    config = PredictorConfig(classes=classes, taxonomy=taxonomy, window=60, refit_every=25, maps=())
    whole = OnlinePredictor(config)
    expected = answers(whole, X, labels)
    if declared and n_classes == 2:
        assert (expected[-1].guarantee, expected[-1].reason) == ("exact", None)
    parts: list = []
    for cut in [11, 26, 44, 46, 77, 121]:
        first, second = OnlinePredictor(config), OnlinePredictor(config)
        first.step_many(X[:cut], labels[:cut])
        second.restore(first.snapshot())
        assert answers(second, X[cut:], labels[cut:]) == expected[cut:]
        assert second.snapshot() == whole.snapshot()
    singly = OnlinePredictor(config)
    for begin, end in pairwise([0, 1, 2, 9, 10, 33, 34, 90, 139, N]):
        parts += answers(singly, X[begin:end], labels[begin:end])
    assert parts == expected
    assert singly.snapshot() == whole.snapshot()


def test_venn_abers_over_three_classes_promises_nothing_and_says_why() -> None:
    X, labels = stream(3)
    config = PredictorConfig(classes=("c0", "c1", "c2"), taxonomy="venn-abers")
    last = answers(OnlinePredictor(config), X, labels)[-1]
    assert last.guarantee == "none"
    assert last.reason is not None
    assert "points, not a multiprobability" in last.reason
    assert sum(last.probabilities) == pytest.approx(1.0, abs=1e-12)
    bounds = zip(last.venn, last.probabilities, strict=True)
    assert all(low <= p <= high for (low, high), p in bounds)
