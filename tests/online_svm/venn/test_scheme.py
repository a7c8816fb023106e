"""The shortcut for a predictor of one answer, against the predictor."""

import numpy as np
import pytest

from online_svm.svm.online_svc import OnlineSVC
from online_svm.venn.classifier import InductiveVennClassifier
from online_svm.venn.scheme import TAXONOMIES, LatestSet, VennScheme


def random_scores(rng, n, n_classes):
    """Scores with many ties, zeros of either sign among them."""
    wholes = rng.integers(-2, 3, size=(n, 1 if n_classes == 2 else n_classes))
    return wholes.astype(np.float64) * float(rng.choice([-0.5, 1.0]))


@pytest.mark.parametrize("n_classes", [2, 3, 4])
@pytest.mark.parametrize(
    ("taxonomy", "n", "share_of_nan"),
    [*((taxonomy, n, 0.0) for taxonomy in TAXONOMIES for n in (0, 1, 40)), ("class", 40, 0.3)],
)
def test_the_last_answer_has_the_bits_of_the_predictor(taxonomy, n, share_of_nan, n_classes):
    rng = np.random.default_rng(n + n_classes)
    scheme = VennScheme(taxonomy, 3, n_classes, n_classes, None)
    for _ in range(50):
        training, scores, new = (random_scores(rng, size, n_classes) for size in (30, n, 1))
        for some in (scores, new):
            some[rng.random(some.shape) < share_of_nan] = np.nan
        codes = rng.integers(0, n_classes, n)
        expected = scheme.begin(training, scores, codes).answer(new, np.array([-1]))
        bounds = np.full((n_classes, 2), np.nan)
        LatestSet(scheme, training, scores, codes).answer_last(new, bounds)
        np.testing.assert_array_equal(bounds, np.stack([expected.lower[0], expected.upper[0]], 1))


def test_once_the_predictor_is_made_its_growing_calibration_set_answers():
    scheme = VennScheme("class", 1, 2, 2, None)
    latest = LatestSet(scheme, np.empty((0, 1)), np.array([[1.0]]), np.array([0]))
    latest.venn.answer(np.array([[1.0]]), np.array([1]))
    bounds = np.empty((2, 2))
    latest.answer_last(np.array([[3.0]]), bounds)
    np.testing.assert_array_equal(bounds, [[1 / 3, 2 / 3], [1 / 3, 2 / 3]])


@pytest.mark.parametrize("taxonomy", TAXONOMIES)
@pytest.mark.parametrize("window", [None, 30])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_progressive_intervals_match_predict_before_each_partial_fit(taxonomy, window, n_classes):
    rng = np.random.default_rng(2)
    y = rng.integers(0, n_classes, 70)
    X = rng.normal(size=(70, 2)) + np.eye(n_classes, 2)[y]
    options = {"taxonomy": taxonomy, "window": window, "taxonomy_bins": 2}
    at_once = InductiveVennClassifier(OnlineSVC(gamma=0.5), **options).progressive_interval(X, y)
    venn = InductiveVennClassifier(OnlineSVC(gamma=0.5), **options)
    expected = [np.tile([0.0, 1.0], (n_classes, 1))]
    for i in range(len(X)):
        if i:
            expected.append(venn.predict_interval(X[i : i + 1])[0])
        venn.partial_fit(X[i : i + 1], y[i : i + 1], classes=np.arange(n_classes))
    np.testing.assert_array_equal(at_once, np.stack(expected))
