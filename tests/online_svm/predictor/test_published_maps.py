"""The published maps by name: what the predictor says is what each map says, fitted directly."""

import numpy as np
import pytest
from predictor_answers import rows, stream

from online_svm import (
    EvidentialBinning,
    EvidentialIsotonic,
    EvidentialLogistic,
    PlattScaling,
    VennAbers,
)
from online_svm.calibration.one_against_all import OneAgainstAll
from online_svm.config import PredictorConfig
from online_svm.errors import InvalidInput
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.stream.input_batch import Example

MAPS = {
    "venn-abers": VennAbers,
    "evidential-binning": EvidentialBinning,
    "evidential-isotonic": EvidentialIsotonic,
    "evidential-logistic": EvidentialLogistic,
}


def config_of(*maps, **changes):
    settings = {"maps": maps, "window": 80}
    return PredictorConfig.model_validate(settings | {"refit_every": 40} | changes)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", MAPS)
def test_a_published_map_is_the_map_fitted_on_the_calibration_scores(name, n_classes):
    X, labels = stream(160, n_classes)
    declared = tuple(f"c{k}" for k in range(n_classes))
    predictor = OnlinePredictor(config_of(name, classes=declared, refit_lag=0))
    predictor.step_many(X[:120], labels[:120])  # a refit has just taken effect
    active = predictor.active
    assert active is not None
    scores, codes = active.calibration.scores.copy(), active.calibration.codes.copy()
    answers = [predictor.step(Example(x)) for x in X[120:]]
    asked = np.array([answer.scores for answer in answers])
    points = np.array([answer.maps[name] for answer in answers])
    bounds = np.array([answer.map_intervals[name] for answer in answers])
    first = n_classes - scores.shape[1]  # of two classes there is one map: of the second
    shares = np.empty((len(asked), scores.shape[1]))
    for column in range(scores.shape[1]):
        fitted = MAPS[name]().fit(scores[:, column], codes == first + column)
        shares[:, column] = fitted.predict(asked[:, column])
        interval = fitted.predict_interval(asked[:, column])
        np.testing.assert_array_equal(bounds[:, first + column], interval)
    if n_classes == 2:
        np.testing.assert_array_equal(points, np.column_stack((1.0 - shares, shares)))
        np.testing.assert_array_equal(bounds[:, 0], 1.0 - bounds[:, 1, ::-1])
    else:
        expected = shares / shares.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(points, expected, rtol=1e-14)


def test_a_map_without_intervals_is_not_asked_for_any():
    fitted = OneAgainstAll(PlattScaling).fit([[-1.0], [1.0]], [0, 1])
    with pytest.raises(InvalidInput, match="PlattScaling: gives points"):
        fitted.predict_interval([[0.0]])


def test_without_a_map_that_gives_them_there_are_no_map_intervals_and_an_unseen_label_has_any():
    X, labels = stream(90)
    answers = rows(OnlinePredictor(config_of("platt", "isotonic", "binning")).step_many(X, labels))
    assert {answer.status for answer in answers} == {"warming", "ok"}
    assert all(answer.map_intervals is None for answer in answers)
    answers = rows(OnlinePredictor(config_of("venn-abers", "platt")).step_many(X, labels))
    assert (answers[0].status, answers[0].map_intervals) == ("warming", {})
    assert answers[-1].classes == ("c0", "c1", None)
    assert list(answers[-1].map_intervals) == ["venn-abers"]
    assert answers[-1].map_intervals["venn-abers"][2] == (0.0, 1.0)
    assert answers[-1].maps["venn-abers"][2] == 0.0
