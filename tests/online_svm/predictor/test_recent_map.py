"""A map of the recent scores, against a loop that fits it at each fiftieth label."""

import numpy as np
import pytest

from online_svm import PlattScaling
from online_svm.calibration.joint.maps import TemperatureScaling
from online_svm.predictor.headline import VennHeadline
from online_svm.predictor.mixture import Mixture
from online_svm.predictor.pair_headline import SHARE, SIZES, RecentHeadline
from online_svm.predictor.recent_map import EVERY, RecentMap
from online_svm.types import Arrays, Floats, Ints
from online_svm.venn.protocol import VennAnswers

SIZE = 120


def fit(scores: Floats, columns: Ints) -> TemperatureScaling:
    return TemperatureScaling().fit(scores, columns)


def recent_map() -> RecentMap:
    return RecentMap(SIZE, fit, TemperatureScaling.from_state)


def restored(state: Arrays) -> RecentMap:
    return RecentMap.from_state(state, SIZE, fit, TemperatureScaling.from_state, 3)


def sample(n: int, n_classes: int = 3) -> tuple[Floats, Ints, Floats]:
    rng = np.random.default_rng(n_classes)
    columns = rng.integers(0, n_classes, n)
    scores = rng.normal(size=(n, n_classes))
    scores[np.arange(n), columns] += 1.0
    columns[rng.random(n) < 0.2] = -1
    return scores, columns, np.full((n, n_classes), 1.0 / n_classes)


def test_each_fiftieth_label_fits_the_map_to_the_last_scores() -> None:
    scores, columns, otherwise = sample(400)
    found = recent_map().answer(scores, columns, otherwise)
    fitted, learned = None, []
    for i in range(400):
        expected = otherwise[i] if fitted is None else fitted.predict(scores[i : i + 1])[0]
        np.testing.assert_array_equal(found[i], expected)
        if columns[i] >= 0:
            learned.append(i)
            if len(learned) % EVERY == 0:
                fitted = fit(scores[learned[-SIZE:]], columns[learned[-SIZE:]])
    assert len(learned) > 2 * SIZE


@pytest.mark.parametrize("size", [1, 7, 50, 133])
def test_the_answers_do_not_depend_on_the_batches(size: int) -> None:
    scores, columns, otherwise = sample(400)
    whole, parts = recent_map(), recent_map()
    found = [
        parts.answer(scores[i : i + size], columns[i : i + size], otherwise[i : i + size])
        for i in range(0, 400, size)
    ]
    np.testing.assert_array_equal(np.concatenate(found), whole.answer(scores, columns, otherwise))
    for name, values in whole.state().items():
        np.testing.assert_array_equal(parts.state()[name], values)


@pytest.mark.parametrize("n", [0, 30, 170])
def test_a_restored_map_goes_on(n: int) -> None:
    scores, columns, otherwise = sample(400)
    whole = recent_map()
    whole.answer(scores[:n], columns[:n], otherwise[:n])
    again = restored(whole.state())
    asked = (scores[n:], columns[n:], otherwise[n:])
    np.testing.assert_array_equal(again.answer(*asked), whole.answer(*asked))


def test_a_map_that_was_never_asked_is_restored() -> None:
    again, asked = restored(recent_map().state()), sample(90)
    np.testing.assert_array_equal(again.answer(*asked), recent_map().answer(*asked))


def test_other_classes_mean_a_new_beginning() -> None:
    recent, fresh = recent_map(), recent_map()
    recent.answer(*sample(200, 3))
    np.testing.assert_array_equal(recent.answer(*sample(90, 4)), fresh.answer(*sample(90, 4)))


def test_a_damaged_state_is_refused() -> None:
    recent = recent_map()
    recent.answer(*sample(200))
    state = recent.state()
    for damaged in (
        state | {"columns": state["columns"] + 1},
        state | {"scores": state["scores"][:-1]},
        state | {"scores": state["scores"] * np.nan},
        state | {"since": np.array([EVERY])},
    ):
        with pytest.raises(ValueError, match=r"RecentMap: '(columns|scores|since)' has"):
            restored(damaged)


def test_a_state_whose_map_is_of_other_classes_is_refused() -> None:
    recent = recent_map()
    recent.answer(*sample(200))
    of_two = TemperatureScaling().fit([[-1.0], [1.0]], [0, 1]).state()
    damaged = recent.state() | {f"map.{name}": array for name, array in of_two.items()}
    with pytest.raises(ValueError, match="columns of 2 classes"):
        restored(damaged)


def test_a_headline_of_two_classes_is_mixed_with_sigmoids_of_the_recent_scores() -> None:
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


def test_rows_that_wait_for_the_next_fit_are_fewer_than_it_learns_and_all_labelled() -> None:
    recent, (scores, columns, otherwise) = recent_map(), sample(400)
    none = np.full(400, -1)
    for i in range(400):
        recent.answer(scores[i : i + 1], none[i : i + 1], otherwise[i : i + 1])
        recent.answer(scores[i : i + 1], columns[i : i + 1], otherwise[i : i + 1])
        assert len(recent._later) < EVERY
        assert all((learned >= 0).all() for _, learned in recent._later)
    assert recent.state()["since"][0] == np.count_nonzero(columns >= 0) % EVERY
