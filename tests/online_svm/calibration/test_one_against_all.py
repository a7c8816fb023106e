import numpy as np
import pytest

from online_svm import IsotonicMap, PlattScaling, ScoreBinning
from online_svm.calibration.one_against_all import OneAgainstAll, normalise_rows
from online_svm.errors import InvalidInput, InvalidSnapshot


def three_classes(n=200, seed=0):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 3, size=n)
    return rng.normal(size=(n, 3)) + 1.5 * np.eye(3)[codes], codes


def test_each_column_has_the_map_of_its_class_and_rows_sum_to_one():
    scores, codes = three_classes()
    answers = OneAgainstAll(PlattScaling).fit(scores, codes).predict(scores)
    each = [PlattScaling().fit(scores[:, j], codes == j).predict(scores[:, j]) for j in range(3)]
    expected = np.array(each).T / np.array(each).sum(axis=0)[:, None]
    assert answers == pytest.approx(expected, rel=1e-14)
    assert answers.sum(axis=1) == pytest.approx(np.ones(len(codes)))


def test_one_column_is_the_map_of_class_1_of_two():
    rng = np.random.default_rng(1)
    scores, codes = rng.normal(size=(100, 1)), rng.integers(0, 2, size=100)
    fitted = OneAgainstAll(IsotonicMap).fit(scores, codes)
    expected = IsotonicMap().fit(scores[:, 0], codes).predict(scores[:, 0])
    assert len(fitted.maps_) == 1
    assert fitted.predict(scores)[:, 1].tolist() == expected.tolist()
    assert fitted.predict(scores).sum(axis=1).tolist() == [1.0] * 100


def test_a_row_that_sums_to_zero_becomes_uniform():
    scores = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    fitted = OneAgainstAll(lambda: ScoreBinning(2)).fit(scores, [0, 1, 2])
    assert fitted.predict([[0.0, 0.0, 0.0]]).tolist() == [[1 / 3, 1 / 3, 1 / 3]]


def test_a_row_does_not_depend_on_its_batch():
    scores, codes = three_classes(150)
    fitted = OneAgainstAll(PlattScaling).fit(scores, codes)
    whole = fitted.predict(scores)
    for size in (1, 7, 64):
        parts = [fitted.predict(scores[i : i + size]) for i in range(0, 150, size)]
        assert np.concatenate(parts).tobytes() == whole.tobytes()
    assert fitted.predict(np.asfortranarray(scores)).tobytes() == whole.tobytes()


def test_rows_are_added_from_the_left_in_every_memory_order():
    rows = np.random.default_rng(2).random((9, 11))
    expected = []
    for row in rows.tolist():
        total = 0.0
        for value in row:
            total += value
        expected.append([value / total for value in row])
    assert normalise_rows(rows).tolist() == expected
    assert normalise_rows(np.asfortranarray(rows)).tolist() == expected


def test_a_restored_set_of_maps_answers_the_same_bytes():
    scores, codes = three_classes(80)
    fitted = OneAgainstAll(lambda: ScoreBinning(4)).fit(scores, codes)
    restored = OneAgainstAll.from_state(fitted.state(), lambda: ScoreBinning(4))
    assert restored.predict(scores).tobytes() == fitted.predict(scores).tobytes()


def test_a_state_without_one_of_its_maps_is_refused():
    scores, codes = three_classes(30)
    state = OneAgainstAll(PlattScaling).fit(scores, codes).state()
    with pytest.raises(InvalidSnapshot, match="options"):
        OneAgainstAll.from_state({k: v for k, v in state.items() if k[0] != "2"}, PlattScaling)


@pytest.mark.parametrize("codes", [[0, 3], [-1, 0], [0.5, 1.0], [0]])
def test_codes_out_of_range_or_number_are_refused(codes):
    with pytest.raises(InvalidInput, match="codes:"):
        OneAgainstAll(PlattScaling).fit([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]], codes)


def test_another_number_of_columns_than_fitted_is_refused():
    fitted = OneAgainstAll(PlattScaling).fit(*three_classes(30))
    with pytest.raises(InvalidInput, match="expected 3 columns, as in fit, got 1"):
        fitted.predict([[1.0]])


def test_scores_without_columns_are_refused():
    with pytest.raises(InvalidInput, match="scores: expected shape"):
        OneAgainstAll(PlattScaling).fit([1.0, 2.0], [0, 1])


def test_a_class_without_examples_gets_its_maps_own_constant():
    scores = np.zeros((4, 3))
    answers = OneAgainstAll(PlattScaling).fit(scores, [0, 0, 1, 1]).predict(scores[:1])
    assert answers[0, 2] == pytest.approx((1 / 6) / (1 / 6 + 2 * (0.75 + 0.25) / 2))
