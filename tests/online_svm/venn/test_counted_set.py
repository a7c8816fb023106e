"""Counts against Python lists, taxonomies fixed by the training set, and each in the predictor."""

from itertools import pairwise
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from online_svm.config import PredictorConfig, TaxonomyName
from online_svm.errors import InvalidInput
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.stream.prediction import PredictionBlock
from online_svm.venn.counted_set import CountedSet, Taxonomy, class_scores, margins
from online_svm.venn.scheme import TAXONOMIES, VennScheme


class Named(Taxonomy):
    """The taxonomy whose score is the category."""

    def categories(self, scores: np.ndarray) -> np.ndarray:
        return scores[:, 0].astype(np.int64)


@given(
    first=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), max_size=20),
    later=st.lists(st.tuples(st.integers(0, 2), st.integers(-1, 3)), max_size=60),
    cuts=st.lists(st.integers(0, 60), max_size=5),
    limit=st.none() | st.integers(1, 25),
)
def test_counts_are_those_of_the_newest_examples_before_each_answer(first, later, cuts, limit):
    held = list(first)
    expected = []
    for category, code in later:
        newest = held if limit is None else held[-limit:]
        expected.append([sum(pair == (category, y) for pair in newest) for y in range(4)])
        if code >= 0:
            held.append((category, code))

    categories, labels = np.array(first, dtype=np.int64).reshape(-1, 2).T.copy()
    kept = CountedSet(Named(3), categories[:, None] * 1.0, labels, 4, limit)
    scores, codes = np.array(later, dtype=np.int64).reshape(-1, 2).T.copy()
    bounds = [0, *sorted(min(cut, len(codes)) for cut in cuts), len(codes)]
    answers = [kept.answer(scores[a:b, None] * 1.0, codes[a:b]) for a, b in pairwise(bounds)]
    met = np.array(expected, dtype=np.int64).reshape(-1, 4)
    lower = np.concatenate([each.lower for each in answers])
    np.testing.assert_array_equal(lower, met / (met.sum(axis=1, keepdims=True) + 1))
    newest = held if limit is None else held[-limit:]
    categories = kept._categories.held.tolist()
    assert list(zip(categories, kept.codes.tolist(), strict=True)) == newest
    assert kept.counts.sum() == len(newest)


@pytest.mark.parametrize("n_scores", [1, 3])
@pytest.mark.parametrize("strength", [class_scores, margins])
def test_quantiles_divide_each_class_of_the_training_set_evenly_by_strength(strength, n_scores):
    T = np.random.default_rng(0).normal(size=(3000, n_scores))
    n_classes = max(n_scores, 2)
    categories = Taxonomy(n_classes, 4, strength, T).categories(T)
    classes = T.argmax(axis=1) if n_scores > 1 else T[:, 0] > 0
    np.testing.assert_array_equal(categories // 4, classes)
    best = np.sort(np.hstack([T, -T]) if n_scores == 1 else T, axis=1)
    strengths = best[:, -1] if strength is class_scores else best[:, -1] - best[:, -2]
    for k in range(n_classes):
        sizes = np.bincount(categories[classes == k] - 4 * k, minlength=4)
        assert np.ptp(sizes) <= 1
        assert (np.diff(categories[classes == k][np.argsort(strengths[classes == k])]) >= 0).all()


@pytest.mark.parametrize(
    ("training", "asked", "categories"),
    [
        pytest.param([1.0] * 50 + [2.0] * 3, [0.3, 1.0, 9.0], [4, 4, 5], id="ties share one"),
        pytest.param([-1.0] * 20, [0.1, 7.0], [4, 4], id="a class never shown is one category"),
    ],
)
def test_training_scores_that_are_too_few_make_fewer_categories(training, asked, categories):
    taxonomy = Taxonomy(2, 4, class_scores, np.array(training)[:, None])
    assert taxonomy.categories(np.array(asked)[:, None]).tolist() == categories


@given(seed=st.integers(0, 100), cut=st.integers(0, 40), n_scores=st.sampled_from([1, 3]))
@pytest.mark.parametrize("taxonomy", TAXONOMIES)
def test_answers_do_not_depend_on_how_the_rows_are_cut(taxonomy, seed, cut, n_scores) -> None:
    rng = np.random.default_rng(seed)
    n_classes = max(n_scores, 2)
    scores, codes = rng.normal(size=(60, n_scores)).round(1), rng.integers(-1, n_classes, 60)
    known = rng.integers(0, n_classes, 20)
    scheme = VennScheme(taxonomy, 3, n_classes, n_classes, 25)
    whole, parts = (scheme.begin(scores, scores[:20], known) for _ in range(2))
    expected = whole.answer(scores[20:], codes[20:])
    halves = (slice(20, 20 + cut), slice(20 + cut, None))
    met = [parts.answer(scores[half], codes[half]) for half in halves]
    for name in ("point", "lower", "upper", "category", "size"):
        joined = np.concatenate([getattr(answers, name) for answers in met])
        np.testing.assert_array_equal(joined, getattr(expected, name))
    again = scheme.begin(scores, whole.scores, whole.codes)
    np.testing.assert_array_equal(
        again.answer(scores, codes).point, whole.answer(scores, codes).point
    )


@pytest.mark.parametrize("taxonomy", TAXONOMIES)
@pytest.mark.parametrize("n_scores", [1, 3])
def test_without_calibration_examples_an_interval_is_the_unit_interval(taxonomy, n_scores) -> None:
    n_classes = max(n_scores, 2)
    scheme = VennScheme(taxonomy, 3, n_classes, n_classes, None)
    held = scheme.begin(np.empty((0, n_scores)), np.empty((0, n_scores)), np.empty(0, np.int64))
    answers = held.answer(np.zeros((1, n_scores)), np.array([-1]))
    assert answers.lower.max() == 0.0
    assert answers.upper.min() == 1.0
    np.testing.assert_allclose(answers.point, 1.0 / n_classes, atol=1e-15)


def test_a_taxonomy_that_is_not_known_or_has_no_bin_is_refused():
    with pytest.raises(InvalidInput, match="'classes' is unknown; use one of class, class-quanti"):
        VennScheme("classes", 3, 2, 2, None)
    with pytest.raises(InvalidInput, match="taxonomy_bins: 0"):
        VennScheme("margin", 0, 2, 2, None)


N = 140


def stream(n_classes: int) -> tuple[np.ndarray, list[str | None]]:
    rng = np.random.default_rng(n_classes)
    codes = rng.integers(0, n_classes, N)
    X = rng.normal(size=(n_classes, 2), scale=1.3)[codes] + rng.normal(size=(N, 2))
    return X, [f"c{code}" for code in codes]


def answers(predictor: OnlinePredictor, X: np.ndarray, labels: list[str | None]) -> list:
    blocks = predictor.step_many(X, labels)
    return [b.row(i) for b in blocks if isinstance(b, PredictionBlock) for i in range(len(b))]


def test_the_library_knows_each_taxonomy_of_a_feed() -> None:
    assert set(get_args(TaxonomyName)) < set(TAXONOMIES)


def test_venn_abers_over_three_classes_has_no_guarantee_and_a_reason() -> None:
    X, labels = stream(3)
    config = PredictorConfig(classes=("c0", "c1", "c2"), taxonomy="venn-abers")
    last = answers(OnlinePredictor(config), X, labels)[-1]
    assert last.guarantee == "none"
    assert last.reason is not None
    assert "points, not a multiprobability" in last.reason
    assert sum(last.probabilities) == pytest.approx(1.0, abs=1e-12)
    bounds = zip(last.venn, last.probabilities, strict=True)
    assert all(low <= p <= high for (low, high), p in bounds)
