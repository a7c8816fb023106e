"""The shortcut for a predictor of one answer, against the predictor."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from online_svm.svm.online_svc import OnlineSVC
from online_svm.venn.classifier import InductiveVennClassifier
from online_svm.venn.latest import LatestSet
from online_svm.venn.registry import TAXONOMIES, VennScheme

NONE = np.array([-1])


def random_scores(rng: np.random.Generator, n: int, n_classes: int) -> NDArray[np.float64]:
    """Scores with many ties, zeros of either sign among them."""
    wholes = rng.integers(-2, 3, size=(n, 1 if n_classes == 2 else n_classes))
    return wholes.astype(np.float64) * float(rng.choice([-0.5, 1.0]))


@pytest.mark.parametrize("taxonomy", TAXONOMIES)
@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("n", [0, 1, 40])
def test_the_last_answer_has_the_bits_of_the_predictor(
    taxonomy: str, n_classes: int, n: int
) -> None:
    rng = np.random.default_rng(n + n_classes)
    scheme = VennScheme(taxonomy, 3, n_classes, n_classes, None)
    for _ in range(20):
        training, scores = (random_scores(rng, size, n_classes) for size in (30, n))
        codes, new = rng.integers(0, n_classes, n), random_scores(rng, 1, n_classes)
        expected = scheme.begin(training, scores, codes).answer(new, NONE)
        bounds = np.full((n_classes, 2), np.nan)
        LatestSet(scheme, training, scores, codes).answer_last(new, bounds)
        np.testing.assert_array_equal(bounds[:, 0], expected.lower[0])
        np.testing.assert_array_equal(bounds[:, 1], expected.upper[0])


@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_a_score_that_is_no_number_is_the_largest_as_numpy_has_it(n_classes: int) -> None:
    rng = np.random.default_rng(0)
    scheme = VennScheme("class", 1, n_classes, n_classes, None)
    for _ in range(50):
        scores = random_scores(rng, 31, n_classes)
        scores[rng.random(scores.shape) < 0.3] = np.nan
        codes, new = rng.integers(0, n_classes, 30), scores[30:]
        expected = scheme.begin(scores[:0], scores[:30], codes).answer(new, NONE)
        bounds = np.empty((n_classes, 2))
        LatestSet(scheme, scores[:0], scores[:30], codes).answer_last(new, bounds)
        np.testing.assert_array_equal(bounds, np.stack([expected.lower[0], expected.upper[0]], 1))


def test_once_the_predictor_is_made_its_growing_calibration_set_answers() -> None:
    scheme = VennScheme("class", 1, 2, 2, None)
    latest = LatestSet(scheme, np.empty((0, 1)), np.array([[1.0]]), np.array([0]))
    latest.venn.answer(np.array([[1.0]]), np.array([1]))
    bounds = np.empty((2, 2))
    latest.answer_last(np.array([[3.0]]), bounds)
    np.testing.assert_array_equal(bounds, [[1 / 3, 2 / 3], [1 / 3, 2 / 3]])


@pytest.mark.parametrize("taxonomy", TAXONOMIES)
@pytest.mark.parametrize("window", [None, 30])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_progressive_intervals_are_what_predict_says_before_each_row_is_learned(
    taxonomy: str, window: int | None, n_classes: int
) -> None:
    rng = np.random.default_rng(2)
    y = rng.integers(0, n_classes, 70)
    X = rng.normal(size=(70, 2)) + np.eye(n_classes, 2)[y]
    options: dict[str, Any] = {"taxonomy": taxonomy, "window": window, "taxonomy_bins": 2}
    at_once = InductiveVennClassifier(OnlineSVC(gamma=0.5), **options).progressive_interval(X, y)
    venn = InductiveVennClassifier(OnlineSVC(gamma=0.5), **options)
    classes, expected = np.arange(n_classes), []
    for i in range(len(X)):
        row = slice(i, i + 1)
        expected.append(
            venn.predict_interval(X[row])[0] if i else np.tile([0.0, 1.0], (len(classes), 1))
        )
        venn.partial_fit(X[row], y[row], classes=classes)
    np.testing.assert_array_equal(at_once, np.stack(expected))
