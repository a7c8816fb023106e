"""Every taxonomy in the predictor and in the classifier."""

from itertools import pairwise
from typing import get_args

import numpy as np
import pytest
from sklearn.svm import SVC

from online_svm.config import PredictorConfig, TaxonomyName
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.stream.input_batch import Example
from online_svm.stream.prediction import PredictionBlock
from online_svm.venn.classifier import InductiveVennClassifier
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


@pytest.mark.parametrize("taxonomy", TAXONOMIES)
def test_the_guarantee_is_exact_for_two_declared_classes(taxonomy) -> None:
    X, labels = stream(2)
    config = PredictorConfig(classes=("c0", "c1"), taxonomy=taxonomy)
    last = answers(OnlinePredictor(config), X, labels)[-1]
    assert (last.guarantee, last.reason) == ("exact", None)


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


@pytest.mark.parametrize("taxonomy", TAXONOMIES)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_classifier_answers_alike_learning_at_once_or_one_by_one(taxonomy, n_classes) -> None:
    X, labels = stream(n_classes)
    y = np.array(labels)
    settings = {"taxonomy": taxonomy, "taxonomy_bins": 2, "estimator": SVC(gamma=0.5)}
    batch = InductiveVennClassifier(**settings).fit(X[:100], y[:100])
    online = InductiveVennClassifier(**settings, refit_every=50).partial_fit(X[:100], y[:100])
    np.testing.assert_array_equal(batch.predict_interval(X), online.predict_interval(X))
    np.testing.assert_array_equal(batch.predict_proba(X), online.predict_proba(X))
    low, high = np.moveaxis(batch.predict_interval(X), 2, 0)
    assert ((low <= batch.predict_proba(X)) & (batch.predict_proba(X) <= high)).all()


@pytest.mark.parametrize("taxonomy", ["class-quantile", "class-rank", "margin"])
def test_one_bin_is_the_class_taxonomy(taxonomy) -> None:
    X, labels = stream(3)
    y = np.array(labels)
    plain = InductiveVennClassifier(SVC(gamma=0.5)).fit(X, y)
    one = InductiveVennClassifier(SVC(gamma=0.5), taxonomy=taxonomy, taxonomy_bins=1).fit(X, y)
    np.testing.assert_array_equal(plain.predict_multiproba(X), one.predict_multiproba(X))


def test_the_predictors_answer_is_that_of_the_classifier_on_the_same_split() -> None:
    X, labels = stream(2)
    y = np.array(labels)
    config = PredictorConfig.paper(("c0", "c1"), gamma=0.5, maps=(), taxonomy="venn-abers")
    predictor = OnlinePredictor(config)
    predictor.step_many(X[:-1], labels[:-1])
    last = predictor.step(Example(X[-1]))
    classifier = InductiveVennClassifier(
        SVC(gamma=0.5, tol=1e-6), taxonomy="venn-abers", split="oldest"
    )
    expected = classifier.fit(X[:-1], y[:-1]).predict_interval(X[-1:])[0]
    np.testing.assert_allclose(last.venn, expected, atol=1e-12)


def test_before_the_first_refit_the_classifier_claims_nothing() -> None:
    classifier = InductiveVennClassifier(refit_every=100)
    classifier.partial_fit([[0.0], [1.0], [2.0]], [0, 1, 0])
    np.testing.assert_array_equal(classifier.predict_interval([[0.0]]), [[[0.0, 1.0], [0.0, 1.0]]])
