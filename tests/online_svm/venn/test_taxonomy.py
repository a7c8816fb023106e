"""Taxonomies that are fixed given the proper training set."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from online_svm.errors import InvalidInput
from online_svm.venn.registry import TAXONOMIES, VennScheme
from online_svm.venn.taxonomy import Taxonomy, class_scores, margins, svm_classes


def scores_of(seed: int, n: int, n_scores: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, n_scores))


@pytest.mark.parametrize("n_scores", [1, 3])
@pytest.mark.parametrize("strength", [class_scores, margins])
def test_quantiles_divide_each_class_of_the_training_set_evenly(strength, n_scores) -> None:
    T = scores_of(0, 3000, n_scores)
    n_classes = max(n_scores, 2)
    categories = Taxonomy(n_classes, 4, strength, T).categories(T)
    np.testing.assert_array_equal(categories // 4, svm_classes(T))
    sizes = np.bincount(categories, minlength=4 * n_classes).reshape(n_classes, 4)
    assert np.ptp(sizes, axis=1).max() <= 1


def test_a_stronger_score_never_has_a_lower_category_within_its_class() -> None:
    T, X = scores_of(1, 200, 3), scores_of(2, 500, 3)
    categories = Taxonomy(3, 5, margins, T).categories(X)
    for k in range(3):
        here = svm_classes(X) == k
        assert (np.diff(categories[here][np.argsort(margins(X[here]))]) >= 0).all()


def test_tied_training_scores_share_one_quantile() -> None:
    T = np.array([[1.0]] * 50 + [[2.0]] * 3)
    categories = Taxonomy(2, 4, class_scores, T).categories(np.array([[0.3], [1.0], [9.0]]))
    assert categories.tolist() == [4, 4, 5]


def test_a_class_that_the_training_set_never_shows_is_one_category() -> None:
    T = -np.ones((20, 1))
    categories = Taxonomy(2, 4, class_scores, T).categories(np.array([[0.1], [7.0]]))
    assert categories.tolist() == [4, 4]


def test_the_margin_is_the_lead_of_the_best_class() -> None:
    X = scores_of(3, 100, 4)
    for row, margin in zip(X, margins(X), strict=True):
        first, second = sorted(row)[::-1][:2]
        assert margin == first - second


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
    met = [parts.answer(s, c) for s, c in _cut(scores[20:], codes[20:], cut)]
    for name in ("point", "lower", "upper", "category", "size"):
        joined = np.concatenate([getattr(answers, name) for answers in met])
        np.testing.assert_array_equal(joined, getattr(expected, name))
    again = scheme.from_state(whole.state(), scores)
    np.testing.assert_array_equal(
        again.answer(scores, codes).point, whole.answer(scores, codes).point
    )


def _cut(scores, codes, cut):
    return [(scores[:cut], codes[:cut]), (scores[cut:], codes[cut:])]


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


def test_an_unknown_taxonomy_is_named_with_the_known_ones() -> None:
    with pytest.raises(InvalidInput, match="'classes' is unknown; use one of class, class-quanti"):
        VennScheme("classes", 3, 2, 2, None)


def test_no_bin_is_refused() -> None:
    with pytest.raises(InvalidInput, match="taxonomy_bins: 0"):
        VennScheme("margin", 0, 2, 2, None)
