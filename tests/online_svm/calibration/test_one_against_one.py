import warnings

import numpy as np
import pytest

from online_svm.calibration.estimators import IsotonicMap, PlattScaling, VennAbers
from online_svm.calibration.one_against_all import OneAgainstAll
from online_svm.calibration.one_against_one import OneAgainstOne
from online_svm.errors import InvalidInput, InvalidSnapshot

with np.errstate():  # importing it switches numpy's warnings off for everyone
    from venn_abers.venn_abers import predict_proba_prefitted_va


def four_classes(n=300, seed=0):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 4, size=n)
    return rng.normal(size=(n, 4)) + 1.5 * np.eye(4)[codes], codes


def package_points(scores, codes, queries, kind):
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it divides by zero on its way, and takes minima of NaN
        return predict_proba_prefitted_va(scores, codes, queries, va_tpe=kind)[0]


def softmax(scores):
    powers = np.exp(scores)
    return powers / powers.sum(axis=1, keepdims=True)


def test_coupled_venn_abers_points_equal_the_packages():
    scores, codes = four_classes()
    queries, _ = four_classes(100, seed=1)
    # The package takes p_j / (p_i + p_j) as the pair's score, which rises with s_j - s_i.
    expected = package_points(softmax(scores), codes, softmax(queries), "one_vs_one")
    ours = OneAgainstOne(VennAbers).fit(scores, codes).predict(queries)
    assert np.abs(ours - expected).max() < 1e-12


def test_one_against_all_venn_abers_points_equal_the_packages():
    scores, codes = four_classes()
    queries, _ = four_classes(100, seed=1)
    scores, queries = softmax(scores), softmax(queries)
    expected = package_points(scores, codes, queries, "one_vs_rest")
    ours = OneAgainstAll(VennAbers).fit(scores, codes).predict(queries)
    assert np.abs(ours - expected).max() < 1e-12


def test_pairs_that_agree_with_one_distribution_give_it_back():
    truth = np.array([0.5, 0.3, 0.2])

    class Known:
        """The exact pair probabilities, in the order the pairs are fitted."""

        pairs = iter([(0, 1), (0, 2), (1, 2)])

        def fit(self, scores, labels):  # noqa: ARG002 - the map protocol passes them
            self.i, self.j = next(Known.pairs)
            return self

        def predict(self, scores):
            return np.full(len(scores), truth[self.j] / (truth[self.i] + truth[self.j]))

    fitted = OneAgainstOne(Known).fit(np.eye(3), [0, 1, 2])
    assert fitted.predict(np.zeros((1, 3)))[0] == pytest.approx(truth, rel=1e-12)


def test_a_class_that_loses_a_pair_for_certain_has_probability_zero():
    scores = np.repeat(np.eye(3), 5, axis=0)
    fitted = OneAgainstOne(IsotonicMap).fit(scores, np.repeat([0, 1, 2], 5))
    assert fitted.predict(np.eye(3)).tolist() == np.eye(3).tolist()


def test_a_row_does_not_depend_on_its_batch():
    scores, codes = four_classes(150)
    fitted = OneAgainstOne(PlattScaling).fit(scores, codes)
    whole = fitted.predict(scores)
    for size in (1, 7, 64):
        parts = [fitted.predict(scores[i : i + size]) for i in range(0, 150, size)]
        assert np.concatenate(parts).tobytes() == whole.tobytes()


def test_a_pair_without_examples_is_even():
    answers = OneAgainstOne(VennAbers).fit(np.zeros((2, 4)), [0, 1]).predict(np.zeros((1, 4)))
    assert answers[0, 2] == answers[0, 3]
    assert answers.sum() == pytest.approx(1.0)


def test_huge_scores_do_not_overflow():
    fitted = OneAgainstOne(PlattScaling).fit(np.eye(3) * 1.7e308 - 0.8e308, [0, 1, 2])
    assert np.isfinite(fitted.predict([[1.7e308, -1.7e308, 0.0]])).all()


def test_a_restored_set_of_maps_answers_the_same_bytes():
    scores, codes = four_classes(80)
    fitted = OneAgainstOne(VennAbers).fit(scores, codes)
    restored = OneAgainstOne.from_state(fitted.state(), VennAbers)
    assert restored.predict(scores).tobytes() == fitted.predict(scores).tobytes()


def test_a_state_that_holds_too_few_maps_is_refused():
    state = OneAgainstOne(PlattScaling).fit(*four_classes(40)).state()
    with pytest.raises(InvalidSnapshot, match="no maps for the pairs of 1000000 classes"):
        OneAgainstOne.from_state(state | {"n_classes": np.array([1_000_000])}, PlattScaling)
    del state["5.parameters"]
    with pytest.raises(InvalidSnapshot, match="parameters"):
        OneAgainstOne.from_state(state, PlattScaling)


def test_a_single_column_makes_no_pair():
    with pytest.raises(InvalidInput, match="at least two"):
        OneAgainstOne(PlattScaling).fit([[0.0], [1.0]], [0, 1])


def test_another_number_of_columns_than_fitted_is_refused():
    fitted = OneAgainstOne(PlattScaling).fit(*four_classes(40))
    with pytest.raises(InvalidInput, match="expected 4 columns, as in fit, got 3"):
        fitted.predict(np.zeros((1, 3)))
