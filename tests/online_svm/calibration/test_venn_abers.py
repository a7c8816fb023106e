import warnings

import numpy as np
import pytest

from online_svm import VennAbers
from online_svm.calibration.venn_abers import brier_point, log_loss_point
from online_svm.errors import InvalidInput, InvalidSnapshot

with np.errstate():  # importing it switches numpy's warnings off for everyone
    import venn_abers


def continuous(rng, n):
    return rng.random(n)


def tied(rng, n):
    return rng.integers(0, 12, size=n) / 12


def skewed(rng, n):
    return rng.beta(0.3, 6.0, size=n)


def package_interval(scores, labels, queries):
    reference = venn_abers.VennAbers()
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it divides by zero on its way, and takes minima of NaN
        reference.fit(np.column_stack((1 - scores, scores)), labels)
        return reference.predict_proba(np.column_stack((1 - queries, queries)))


@pytest.mark.parametrize("draw", [continuous, tied, skewed])
@pytest.mark.parametrize("n", [1, 2, 10, 300, 2000])
def test_intervals_and_points_equal_the_venn_abers_package(draw, n):
    for seed in range(5):
        rng = np.random.default_rng([n, seed])
        scores = draw(rng, n)
        labels = (rng.random(n) < scores**0.7).astype(float)
        queries = np.concatenate((scores[:50], draw(rng, 100), [0.0, 1.0]))
        point, interval = package_interval(scores, labels, queries)
        fitted = VennAbers().fit(scores, labels)
        assert np.abs(fitted.predict_interval(queries) - interval).max() <= 1e-12
        assert np.abs(fitted.predict(queries) - point[:, 1]).max() <= 1e-12


def test_points_equalise_the_regret_of_the_two_labels():
    p0, p1 = 0.3, 0.6
    p = float(log_loss_point(p0, p1))
    assert np.log(p1 / p) == pytest.approx(np.log((1 - p0) / (1 - p)))
    p = float(brier_point(p0, p1))
    assert (1 - p) ** 2 - (1 - p1) ** 2 == pytest.approx(p**2 - p0**2)


def test_the_points_are_reached_through_the_class_too():
    assert VennAbers().log_loss_point(0.0, 1.0) == VennAbers.brier_point(0.0, 1.0) == 0.5


@pytest.mark.parametrize(("p0", "p1"), [(0.6, 0.5), (-0.1, 0.5), (0.5, 1.1), (np.nan, 0.5)])
def test_ends_that_are_no_interval_are_refused(p0, p1):
    with pytest.raises(InvalidInput, match="expected 0 <= p0 <= p1 <= 1"):
        log_loss_point(p0, p1)


def test_ends_of_two_shapes_are_refused():
    with pytest.raises(InvalidInput, match="shapes"):
        brier_point([0.1, 0.2], [0.3])


def test_a_state_with_too_few_values_is_refused():
    state = VennAbers().fit([0.0, 1.0], [0, 1]).state()
    with pytest.raises(InvalidSnapshot, match="p0"):
        VennAbers.from_state(state | {"p0": state["p0"][1:]})
