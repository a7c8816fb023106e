"""Published calibrators against direct fits; the one of recent scores against a literal loop."""

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
from online_svm.calibration.joint import TemperatureScaling
from online_svm.calibration.one_against_all import OneAgainstAll
from online_svm.compiled.elementary import logistics
from online_svm.errors import InvalidInput
from online_svm.predictor.calibrators import FIT_EVERY, RecentCalibrator
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.predictor.pair_prediction import RECENT_EXAMPLES, PairPrediction
from online_svm.predictor.protocol import ProtocolConfig
from online_svm.stream.input_batch import Example
from online_svm.venn.counted_set import VennAnswers

MAPS = {
    "venn-abers": VennAbers,
    "evidential-binning": EvidentialBinning,
    "evidential-isotonic": EvidentialIsotonic,
    "evidential-logistic": EvidentialLogistic,
}


def config_of(*maps, **changes):
    settings = {"maps": maps, "window": 80}
    return ProtocolConfig.model_validate(settings | {"refit_every": 40} | changes)


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


SIZE = 120


def fit(scores, columns):
    return TemperatureScaling().fit(scores, columns)


def recent_map():
    return RecentCalibrator(SIZE, fit, TemperatureScaling.from_state)


def restored(state):
    recent = recent_map()
    recent.expect(3)
    recent.restore(state)
    return recent


def sample(n, n_classes=3):
    rng = np.random.default_rng(n_classes)
    columns = rng.integers(0, n_classes, n)
    scores = rng.normal(size=(n, n_classes))
    scores[np.arange(n), columns] += 1.0
    columns[rng.random(n) < 0.2] = -1
    return scores, columns, np.full((n, n_classes), 1.0 / n_classes)


@pytest.mark.parametrize("size", [1, 7, 50, 133, 400])
def test_each_fiftieth_label_fits_the_map_to_the_last_scores_whatever_the_cuts(size):
    scores, columns, otherwise = sample(400)
    recent, found = recent_map(), []
    recent.expect(3)
    for i in range(0, 400, size):
        recent = restored(recent.state())
        asked = (values[i : i + size] for values in (scores, columns, otherwise))
        found += [*recent.answer(*asked)]
    fitted, learned = None, []
    for i in range(400):
        expected = otherwise[i] if fitted is None else fitted.predict(scores[i : i + 1])[0]
        np.testing.assert_array_equal(found[i], expected)
        if columns[i] >= 0:
            learned.append(i)
            if len(learned) % FIT_EVERY == 0:
                fitted = fit(scores[learned[-SIZE:]], columns[learned[-SIZE:]])
    assert len(learned) > 2 * SIZE


def test_other_classes_mean_a_new_beginning():
    recent, fresh = recent_map(), recent_map()
    recent.answer(*sample(200, 3))
    np.testing.assert_array_equal(recent.answer(*sample(90, 4)), fresh.answer(*sample(90, 4)))


def test_the_experts_of_two_classes_are_the_pair_and_a_sigmoid_of_recent_scores():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(700, 1))
    columns = (3.0 * scores[:, 0] + rng.normal(size=700) > 0.0).astype(np.int64)
    low, high = np.tile([0.375, 0.5], (700, 1)), np.tile([0.5, 0.625], (700, 1))
    counts = np.full(700, 7)
    venn = VennAnswers(0.5 * (low + high), low, high, np.zeros(700, dtype=np.int64), counts)
    primary = PairPrediction()
    found = primary.answer(scores, venn, columns)
    stacked = logistics(scores[:, 0])
    clipped = np.clip(stacked, venn.lower[:, 1], venn.upper[:, 1])
    pair = [np.column_stack((1.0 - p, p)) for p in (stacked, clipped, venn.point[:, 1])]
    recent = pair[0].copy()
    for begin in range(FIT_EVERY, 700, FIT_EVERY):
        held = slice(max(0, begin - RECENT_EXAMPLES), begin)
        platt = PlattScaling().fit(scores[held, 0], columns[held])
        rows = slice(begin, begin + FIT_EVERY)
        positive = platt.predict(scores[rows, 0])
        recent[rows] = np.column_stack((1.0 - positive, positive))
    assert len(PairPrediction.outputs) == len(found)
    np.testing.assert_array_equal(found, [*pair, recent])
    again = PairPrediction()
    again.restore(primary.state())
    np.testing.assert_array_equal(
        again.answer(scores, venn, columns), primary.answer(scores, venn, columns)
    )


def test_rows_that_wait_for_the_next_fit_are_fewer_than_it_learns_and_all_labelled():
    recent, (scores, columns, otherwise) = recent_map(), sample(400)
    none = np.full(400, -1)
    for i in range(400):
        recent.answer(scores[i : i + 1], none[i : i + 1], otherwise[i : i + 1])
        recent.answer(scores[i : i + 1], columns[i : i + 1], otherwise[i : i + 1])
        assert len(recent._later) < FIT_EVERY
        assert all((learned >= 0).all() for _, learned in recent._later)
    assert recent.state()["since"][0] == np.count_nonzero(columns >= 0) % FIT_EVERY
