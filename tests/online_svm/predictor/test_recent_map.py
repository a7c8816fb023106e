"""A map of the recent scores, against a loop that fits it at each fiftieth label."""

import numpy as np
import pytest

from online_svm import PlattScaling
from online_svm.calibration.joint.maps import TemperatureScaling
from online_svm.predictor.headline import VennHeadline
from online_svm.predictor.mixture import Mixture
from online_svm.predictor.pair_headline import SHARE, SIZES, RecentHeadline
from online_svm.predictor.recent_map import EVERY, RecentMap
from online_svm.venn.protocol import VennAnswers

SIZE = 120


def fit(scores, columns):
    return TemperatureScaling().fit(scores, columns)


def recent_map():
    return RecentMap(SIZE, fit, TemperatureScaling.from_state)


def restored(state):
    return RecentMap.from_state(state, SIZE, fit, TemperatureScaling.from_state, 3)


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
            if len(learned) % EVERY == 0:
                fitted = fit(scores[learned[-SIZE:]], columns[learned[-SIZE:]])
    assert len(learned) > 2 * SIZE


def test_other_classes_mean_a_new_beginning():
    recent, fresh = recent_map(), recent_map()
    recent.answer(*sample(200, 3))
    np.testing.assert_array_equal(recent.answer(*sample(90, 4)), fresh.answer(*sample(90, 4)))


def test_a_damaged_state_is_refused():
    recent = recent_map()
    recent.answer(*sample(200))
    state = recent.state()
    of_two = TemperatureScaling().fit([[-1.0], [1.0]], [0, 1]).state()
    for damage in (
        {"columns": state["columns"] + 1},
        {"scores": state["scores"][:-1]},
        {"scores": state["scores"] * np.nan},
        {"since": np.array([EVERY])},
        {f"map.{name}": array for name, array in of_two.items()},
    ):
        with pytest.raises(ValueError, match=r"RecentMap: '(columns|scores|since)'|of 2 classes"):
            restored(state | damage)


def test_a_headline_of_two_classes_is_mixed_with_sigmoids_of_the_recent_scores():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(700, 1))
    columns = (3.0 * scores[:, 0] + rng.normal(size=700) > 0.0).astype(np.int64)
    venn = VennAnswers.counted(np.tile([3, 3], (700, 1)), np.zeros(700, dtype=np.int64))
    headline = RecentHeadline(VennHeadline())
    found = headline.answer(scores, venn, columns)
    components = [venn.point]
    for size in SIZES:
        said = venn.point.copy()
        for begin in range(EVERY, 700, EVERY):
            held = slice(max(0, begin - size), begin)
            platt = PlattScaling().fit(scores[held, 0], columns[held])
            rows = slice(begin, begin + EVERY)
            positive = platt.predict(scores[rows, 0])
            said[rows] = np.column_stack((1.0 - positive, positive))
        components.append(said)
    expected = Mixture(3, SHARE).answer(components, columns)
    np.testing.assert_array_equal(found.point, expected)
    assert (found.lower <= np.minimum(venn.lower, found.point)).all()
    assert (found.upper >= np.maximum(venn.upper, found.point)).all()
    again = RecentHeadline.from_state(headline.state(), VennHeadline())
    np.testing.assert_array_equal(
        again.answer(scores, venn, columns).point, headline.answer(scores, venn, columns).point
    )


def test_rows_that_wait_for_the_next_fit_are_fewer_than_it_learns_and_all_labelled():
    recent, (scores, columns, otherwise) = recent_map(), sample(400)
    none = np.full(400, -1)
    for i in range(400):
        recent.answer(scores[i : i + 1], none[i : i + 1], otherwise[i : i + 1])
        recent.answer(scores[i : i + 1], columns[i : i + 1], otherwise[i : i + 1])
        assert len(recent._later) < EVERY
        assert all((learned >= 0).all() for _, learned in recent._later)
    assert recent.state()["since"][0] == np.count_nonzero(columns >= 0) % EVERY
