import numpy as np
import pytest

from online_svm import IsotonicMap, PlattScaling, ScoreBinning, VennAbers
from online_svm.calibration.argument_checks import check_labels, check_scores
from online_svm.errors import InvalidInput, InvalidSnapshot

MAPS = [PlattScaling, IsotonicMap, ScoreBinning, VennAbers]
every_map = pytest.mark.parametrize("make_map", MAPS)


def noisy_sample(n, seed=0):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=n)
    return scores, rng.random(n) < 1 / (1 + np.exp(-2 * scores))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@every_map
def test_a_score_that_is_not_finite_is_named_with_its_position(make_map, bad):
    with pytest.raises(InvalidInput, match=r"scores: value 1 is"):
        make_map().fit([0.0, bad], [0, 1])
    with pytest.raises(InvalidInput, match=r"scores: value 0 is"):
        make_map().fit([0.0, 1.0], [0, 1]).predict([bad])


@every_map
def test_lengths_that_differ_are_refused(make_map):
    with pytest.raises(InvalidInput, match="labels: expected one label for each of 2 scores"):
        make_map().fit([0.0, 1.0], [0, 1, 1])


@every_map
def test_labels_that_are_not_0_or_1_are_refused(make_map):
    with pytest.raises(InvalidInput, match="labels: must be 0 or 1"):
        make_map().fit([0.0, 1.0], [-1, 1])


@every_map
def test_a_map_that_is_not_fitted_says_so(make_map):
    for use in (lambda: make_map().predict([0.0]), lambda: make_map().state()):
        with pytest.raises(InvalidInput, match="not fitted yet"):
            use()


@every_map
def test_a_map_fitted_on_nothing_answers_one_half(make_map):
    assert make_map().fit([], []).predict([-1e300, 0.0, 1e300]).tolist() == [0.5, 0.5, 0.5]


@every_map
def test_no_scores_give_no_probabilities(make_map):
    assert make_map().fit([0.0, 1.0], [0, 1]).predict([]).shape == (0,)


@every_map
def test_a_value_does_not_depend_on_its_batch(make_map):
    scores, labels = noisy_sample(300)
    fitted = make_map().fit(scores, labels)
    queries, _ = noisy_sample(97, seed=1)
    whole = fitted.predict(queries)
    for size in (1, 7, 64):
        parts = [fitted.predict(queries[i : i + size]) for i in range(0, 97, size)]
        assert np.concatenate(parts).tobytes() == whole.tobytes()
    shifted = np.empty(98)[1:]  # another alignment in memory
    shifted[:] = queries
    assert fitted.predict(shifted).tobytes() == whole.tobytes()


@every_map
def test_a_restored_map_answers_the_same_bytes(make_map):
    scores, labels = noisy_sample(200)
    fitted = make_map().fit(scores, labels)
    state = fitted.state()
    assert all(values.dtype in (np.float64, np.int64) for values in state.values())
    restored = make_map.from_state(state)
    assert restored.predict(scores).tobytes() == fitted.predict(scores).tobytes()
    assert restored.state().keys() == state.keys()


@every_map
def test_a_state_with_an_array_missing_is_refused(make_map):
    state = make_map().fit([0.0, 1.0], [0, 1]).state()
    for name in state:
        rest = {other: values for other, values in state.items() if other != name}
        with pytest.raises(InvalidSnapshot, match=name):
            make_map.from_state(rest)


@pytest.mark.parametrize("make_map", [PlattScaling, IsotonicMap, VennAbers])
def test_the_probability_never_falls_as_the_score_rises(make_map):
    for seed in range(20):
        scores, labels = noisy_sample(60, seed)
        grid = np.sort(np.concatenate((scores, np.linspace(-5, 5, 1001))))
        assert (np.diff(make_map().fit(scores, labels).predict(grid)) >= 0).all()


@every_map
def test_huge_scores_give_probabilities_and_no_warning(make_map):
    scores = [-1.7e308, -1e308, -1.0, 1.0, 1e308, 1.7e308]
    fitted = make_map().fit(scores, [0, 0, 1, 0, 1, 1])
    answers = fitted.predict([*scores, 0.0, 1.79e308, -1.79e308])
    assert ((answers >= 0) & (answers <= 1)).all()


def test_scores_are_one_dimensional_numbers():
    with pytest.raises(InvalidInput, match=r"scores: expected one score an example.*\(2, 1\)"):
        check_scores([[1.0], [2.0]])
    with pytest.raises(InvalidInput, match="scores: expected numbers, got list"):
        check_scores(["a", "b"])


def test_labels_may_be_booleans_integers_or_floats():
    for labels in ([True, False], [1, 0], [1.0, 0.0]):
        assert check_labels(labels, 2).tolist() == [True, False]
