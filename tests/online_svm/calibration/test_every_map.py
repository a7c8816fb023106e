"""Laws of all maps of scores: arguments, batches, states, and scikit-learn's conventions."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import estimator_checks
from sklearn.utils.validation import check_is_fitted

from online_svm import (
    EvidentialBinning,
    EvidentialIsotonic,
    EvidentialLogistic,
    IsotonicMap,
    MatrixScaling,
    PlattScaling,
    ScoreBinning,
    TemperatureScaling,
    VectorScaling,
    VennAbers,
)
from online_svm.calibration.diagram import check_labels, check_scores
from online_svm.calibration.evidential.masses import pignistic
from online_svm.calibration.score_map import CountsMap
from online_svm.errors import InvalidInput, InvalidSnapshot

PLAIN = [
    PlattScaling(), PlattScaling("model-trust", "platt"), IsotonicMap(), ScoreBinning(n_bins=4),
    VennAbers(),
]  # fmt: skip
EVIDENTIAL = [
    EvidentialBinning("likelihood"),
    EvidentialBinning("confidence"),
    EvidentialBinning("dempster"),
    EvidentialBinning("confidence", 5, 0),  # a whole alpha stays as it was given
    EvidentialIsotonic("likelihood"),
    EvidentialIsotonic("confidence"),
    EvidentialIsotonic("dempster", 0.1),
    EvidentialLogistic("likelihood"),
    EvidentialLogistic("confidence", 0.1),
]
MAPS = [*PLAIN, *EVIDENTIAL]
JOINT_MAPS = [TemperatureScaling(), VectorScaling(), MatrixScaling(ridge=3.0)]
KINDS = [EvidentialBinning, EvidentialIsotonic, EvidentialLogistic]
each_map = pytest.mark.parametrize("map_", MAPS, ids=repr)
each_evidential = pytest.mark.parametrize("map_", EVIDENTIAL, ids=repr)
GRID = np.concatenate([np.linspace(-5, 5, 23), [-1e300, 1e300, 1e-300]])


def sample(n=120, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.random(n) < 0.4
    return rng.normal(size=n) + 2.0 * labels, labels


def check_proper(fitted, scores):
    """The interval, where there is one, holds the point; and so do masses, which sum to one."""
    point = fitted.predict(scores)
    assert ((point >= 0.0) & (point <= 1.0)).all()
    if hasattr(fitted, "predict_interval"):
        interval = fitted.predict_interval(scores)
        assert ((interval >= 0.0) & (interval <= 1.0)).all()
        assert (interval[:, 0] <= point).all()
        assert (point <= interval[:, 1]).all()
    if hasattr(fitted, "mass"):
        masses = fitted.mass(scores)
        assert masses.shape == (len(scores), 3)
        assert ((masses >= 0) & (masses <= 1)).all()
        np.testing.assert_allclose(masses.sum(axis=1), 1.0, atol=1e-12)
        np.testing.assert_allclose(interval[:, 1], 1.0 - masses[:, 1], atol=1e-12)
        np.testing.assert_array_equal(point, pignistic(masses))


def answers(fitted, scores):
    """Return all that a map says of scores, as bytes, a row each."""
    names = [name for name in ("predict", "predict_interval", "mass") if hasattr(fitted, name)]
    said = [getattr(fitted, name)(scores) for name in names]
    return [b"".join(part[i].tobytes() for part in said) for i in range(len(scores))]


# What is refused


@each_map
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_score_that_is_not_finite_is_named_with_its_position(map_, bad):
    with pytest.raises(InvalidInput, match=r"scores: value 1 is"):
        clone(map_).fit([0.0, bad], [0, 1])
    fitted = clone(map_).fit(*sample())
    for name in ("predict", "predict_interval", "mass"):
        if hasattr(fitted, name):
            with pytest.raises(InvalidInput, match=r"scores: value 0 is"):
                getattr(fitted, name)([bad])
    if hasattr(fitted, "contour"):
        with pytest.raises(InvalidInput, match="scores"):
            fitted.contour(bad, [0.5])


@each_map
@pytest.mark.parametrize(
    ("labels", "told"),
    [([0, 1, 1], "labels: expected one label for each of 2"), ([-1, 1], "labels: must be 0 or 1")],
)
def test_labels_that_do_not_fit_are_refused(map_, labels, told):
    with pytest.raises(InvalidInput, match=told):
        clone(map_).fit([0.0, 1.0], labels)


@each_map
def test_an_unfitted_map_raises_an_error_of_both_hierarchies(map_):
    fresh = clone(map_)
    calls = [lambda: fresh.predict([0.0]), fresh.state]
    if hasattr(fresh, "mass"):
        calls += [lambda: fresh.mass([0.0]), lambda: fresh.contour(0.0, 0.5)]
    for call in calls:
        for error in (NotFittedError, InvalidInput):
            with pytest.raises(error, match="not fitted yet") as told:
                call()
            # So one that is raised in another process, as of joblib, is told here.
            assert str(pickle.loads(pickle.dumps(told.value))) == str(told.value)


@each_evidential
@pytest.mark.parametrize("tau", [-0.1, 1.1, np.nan])
def test_a_contour_is_asked_for_proportions_only(map_, tau):
    with pytest.raises(InvalidInput, match="tau"):
        map_.fit(*sample()).contour(0.0, [0.5, tau])


def test_scores_are_one_dimensional_numbers():
    with pytest.raises(InvalidInput, match=r"scores: expected one score an example.*\(2, 1\)"):
        check_scores([[1.0], [2.0]])
    with pytest.raises(InvalidInput, match="scores: expected numbers, got list"):
        check_scores(["a", "b"])


def test_labels_may_be_booleans_integers_or_floats():
    for labels in ([True, False], [1, 0], [1.0, 0.0]):
        assert check_labels(labels, 2).tolist() == [True, False]


# What is answered


@each_map
def test_without_examples_a_map_returns_one_half_or_is_vacuous(map_):
    fitted = clone(map_).fit([], [])
    np.testing.assert_array_equal(fitted.predict(GRID), np.full(len(GRID), 0.5))
    assert fitted.predict([]).shape == (0,)
    if hasattr(fitted, "predict_interval"):
        assert fitted.predict_interval([-1.0, 1.0]).tolist() == [[0, 1], [0, 1]]
    if hasattr(fitted, "mass"):
        np.testing.assert_array_equal(fitted.mass(GRID), np.tile([0.0, 0.0, 1.0], (len(GRID), 1)))
        np.testing.assert_array_equal(fitted.contour(0.3, [0.0, 0.2, 1.0]), np.ones(3))
    assert answers(type(map_).from_state(fitted.state()), GRID) == answers(fitted, GRID)


@each_map
@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(st.floats(allow_nan=False, allow_infinity=False), st.booleans()), max_size=12
    )
)
def test_any_finite_scores_have_proper_answers(map_, examples):
    scores = np.array([score for score, _ in examples])
    fitted = clone(map_).fit(scores, [label for _, label in examples])
    check_proper(fitted, np.concatenate([scores, GRID, [1.79e308, -1.79e308]]))


@each_evidential
@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize("n", [1, 2, 40])
def test_one_class_only_is_believed_and_the_other_stays_plausible(map_, label, n):
    fitted = map_.fit(np.linspace(-1, 1, n), np.full(n, label))
    check_proper(fitted, GRID)
    at = fitted.mass(np.linspace(-1, 1, n))
    assert (at[:, 0 if label else 1] >= at[:, 1 if label else 0]).all()
    if fitted.alpha != 0:  # confidence without a level excludes nothing
        assert (at[:, 2] > 0).all()


@each_map
def test_the_order_of_the_examples_hardly_matters(map_):
    scores, labels = sample()
    first = clone(map_).fit(scores, labels).predict(GRID)
    other = clone(map_).fit(scores[::-1], labels[::-1]).predict(GRID)
    is_counted = isinstance(map_, CountsMap)  # it knows no order
    np.testing.assert_allclose(other, first, rtol=0, atol=0 if is_counted else 1e-9)


@each_map
def test_a_score_has_one_answer_in_any_batch_and_after_restarts(map_):
    fitted = clone(map_).fit(*sample(300))
    state = fitted.state()
    restored = type(map_).from_state(state)
    assert restored.get_params() == map_.get_params()
    assert restored.state().keys() == state.keys()
    assert all(values.ndim == 1 for values in state.values())
    assert all(values.dtype in (np.float64, np.int64) for values in state.values())
    asked = np.concatenate([np.random.default_rng(3).normal(scale=3.0, size=1001), GRID])
    whole = answers(fitted, asked)
    assert answers(restored, asked) == whole
    for size in (1, 3, 7, 64):
        parts = [answers(fitted, asked[i : i + size]) for i in range(0, len(asked), size)]
        assert [row for part in parts for row in part] == whole
    for offset in range(4):  # another alignment in memory, and another stride
        assert answers(fitted, asked[offset:]) == whole[offset:]
        assert answers(fitted, asked[::-1][offset:]) == whole[::-1][offset:]


@pytest.mark.parametrize("map_", MAPS[:-1], ids=repr)  # the last has no table of ignorance
def test_a_state_with_an_array_missing_is_refused(map_):
    state = clone(map_).fit([0.0, 1.0], [0, 1]).state()
    for name in state:
        rest = {other: values for other, values in state.items() if other != name}
        with pytest.raises(InvalidSnapshot, match=name):
            type(map_).from_state(rest)


# Parameters, and scikit-learn's conventions

TEXTS = {
    "PlattScaling(method='model-trust')", "PlattScaling()", "IsotonicMap()",
    "ScoreBinning(n_bins=4)", "VennAbers()",
    "EvidentialBinning(alpha=0, model='confidence', n_bins=5)",
    "EvidentialIsotonic(alpha=0.1, model='dempster')",
    "EvidentialLogistic(alpha=0.1, model='confidence', targets='raw')",
}  # fmt: skip


def test_the_text_of_a_map_names_its_class_and_changed_parameters():
    found = {repr(map_) for map_ in [*MAPS, EvidentialLogistic("confidence", 0.1, "raw")]}
    assert TEXTS - found == set()


@each_map
def test_a_clone_has_the_parameters_and_nothing_learned(map_):
    fitted = clone(map_).fit(*sample())
    check_is_fitted(fitted)
    copy = clone(fitted)
    assert copy.get_params() == map_.get_params()
    with pytest.raises(NotFittedError):
        check_is_fitted(copy)
    again = copy.set_params(**map_.get_params()).fit(*sample())
    assert answers(again, GRID) == answers(fitted, GRID)


# `check_estimator` gives rows to `fit`; these checks need none.
CHECKS = [
    estimator_checks.check_estimator_cloneable, estimator_checks.check_estimator_repr,
    estimator_checks.check_get_params_invariance, estimator_checks.check_no_attributes_set_in_init,
    estimator_checks.check_parameters_default_constructible, estimator_checks.check_valid_tag_types,
]  # fmt: skip


@pytest.mark.parametrize("map_", [*MAPS, *JOINT_MAPS], ids=repr)
def test_scikit_learn_finds_its_conventions_kept(map_):
    for check in CHECKS:
        check(type(map_).__name__, map_)
    tags, is_flat = map_.__sklearn_tags__().input_tags, map_ in MAPS
    assert (tags.one_d_array, tags.two_d_array) == (is_flat, not is_flat)


NONSENSE = [
    (PlattScaling, {"method": "bfgs"}),
    (PlattScaling, {"targets": "soft"}),
    *((kind, {"n_bins": n}) for kind in (ScoreBinning, EvidentialBinning) for n in (0, -3, 2.5)),
    *((kind, {"model": "bayes"}) for kind in KINDS),
    *((kind, {"alpha": alpha}) for kind in KINDS for alpha in (-0.1, 1.1, np.nan)),
    (EvidentialLogistic, {"targets": "soft"}),
]


@pytest.mark.parametrize(("kind", "changes"), NONSENSE, ids=str)
def test_a_parameter_that_is_nonsense_is_refused_at_once_and_by_fit(kind, changes):
    (name,) = changes
    with pytest.raises(InvalidInput, match=name):
        kind(**changes)
    with pytest.raises(InvalidInput, match=name):
        kind().set_params(**changes).fit(*sample())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_at_both_limits_of_alpha_confidence_is_vacuous(kind, alpha):
    masses = kind("confidence", alpha=alpha).fit(*sample()).mass(GRID)
    np.testing.assert_array_equal(masses, np.tile([0.0, 0.0, 1.0], (len(GRID), 1)))


def test_the_maps_of_a_worker_need_no_scikit_learn():
    maps = ("platt", "isotonic", "binning", "venn-abers", "mixed", "evidential-binning",
            "evidential-isotonic", "evidential-logistic", "temperature", "vector",
            "matrix")  # fmt: skip
    code = f"""
import sys, numpy as np
import online_svm.predictor.online_predictor
from online_svm.config import PredictorConfig
from online_svm.predictor.protocol import ProtocolConfig
from online_svm.predictor.calibrators import fit_calibrators
fitted = fit_calibrators(ProtocolConfig(maps={maps}), np.arange(8.0)[:, None], np.arange(8) % 2)
assert len(fitted) == 10, fitted
found = [name for name in sys.modules if name.split('.')[0] == 'sklearn']
assert not found, found
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
