"""The maps keep scikit-learn's conventions, and a worker needs no scikit-learn for them."""

import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
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
from online_svm.errors import InvalidInput

MAPS = [
    PlattScaling("model-trust", "platt"),
    IsotonicMap(),
    ScoreBinning(n_bins=4),
    VennAbers(),
    EvidentialBinning("confidence", 5, 0),  # a whole alpha stays as it was given
    EvidentialIsotonic("dempster", 0.1),
    EvidentialLogistic("confidence", 0.1, "raw"),
]
JOINT_MAPS = [TemperatureScaling(), VectorScaling(), MatrixScaling(ridge=3.0)]
each_map = pytest.mark.parametrize("map_", MAPS, ids=repr)

TEXTS = {
    "PlattScaling": "PlattScaling(method='model-trust')",
    "IsotonicMap": "IsotonicMap()",
    "ScoreBinning": "ScoreBinning(n_bins=4)",
    "VennAbers": "VennAbers()",
    "EvidentialBinning": "EvidentialBinning(alpha=0, model='confidence', n_bins=5)",
    "EvidentialIsotonic": "EvidentialIsotonic(alpha=0.1, model='dempster')",
    "EvidentialLogistic": "EvidentialLogistic(alpha=0.1, model='confidence', targets='raw')",
}


def sample(n: int = 60) -> tuple[Any, Any]:
    rng = np.random.default_rng(3)
    scores = rng.normal(size=n)
    return scores, scores + rng.normal(size=n) > 0.0


@each_map
def test_a_clone_has_the_parameters_and_nothing_learned(map_: Any) -> None:
    fitted = clone(map_).fit(*sample())
    check_is_fitted(fitted)
    copy = clone(fitted)
    assert copy.get_params() == map_.get_params()
    with pytest.raises(NotFittedError):
        check_is_fitted(copy)
    asked = [0.0, 0.5]
    again = copy.set_params(**map_.get_params()).fit(*sample())
    np.testing.assert_array_equal(again.predict(asked), fitted.predict(asked))


@each_map
def test_the_text_of_a_map_names_its_class_and_changed_parameters(map_: Any) -> None:
    assert repr(map_) == TEXTS[type(map_).__name__]


@each_map
def test_a_map_that_is_not_fitted_says_so_in_both_hierarchies(map_: Any) -> None:
    for error in (NotFittedError, InvalidInput):
        with pytest.raises(error, match="not fitted yet") as told:
            clone(map_).predict([0.0])
        # So one that is raised in another process, as of joblib, is told here.
        assert str(pickle.loads(pickle.dumps(told.value))) == str(told.value)


# `check_estimator` gives rows to `fit`; these checks need none.
CHECKS = [
    estimator_checks.check_estimator_cloneable,
    estimator_checks.check_estimator_repr,
    estimator_checks.check_get_params_invariance,
    estimator_checks.check_no_attributes_set_in_init,
    estimator_checks.check_parameters_default_constructible,
    estimator_checks.check_valid_tag_types,
]


@pytest.mark.parametrize("map_", [*MAPS, *JOINT_MAPS], ids=repr)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_scikit_learn_finds_its_conventions_kept(map_: Any, check: Any) -> None:
    check(type(map_).__name__, map_)
    tags, is_flat = map_.__sklearn_tags__().input_tags, map_ in MAPS
    assert (tags.one_d_array, tags.two_d_array) == (is_flat, not is_flat)


@pytest.mark.parametrize(
    ("map_", "changes"),
    [
        (PlattScaling(), {"method": "bfgs"}),
        (PlattScaling(), {"targets": "soft"}),
        (ScoreBinning(), {"n_bins": 0}),
        (ScoreBinning(), {"n_bins": 2.5}),
        (EvidentialBinning(), {"n_bins": 0}),
        (EvidentialBinning(), {"alpha": 2.0}),
        (EvidentialIsotonic(), {"model": "none"}),
        (EvidentialLogistic(), {"targets": "soft"}),
    ],
    ids=str,
)
def test_a_parameter_that_was_set_to_nonsense_is_refused_by_fit(map_: Any, changes: Any) -> None:
    (name,) = changes
    with pytest.raises(InvalidInput, match=name):
        clone(map_).set_params(**changes).fit(*sample())
    with pytest.raises(InvalidInput, match=name):
        type(map_)(**changes)


def test_the_maps_of_a_worker_need_no_scikit_learn() -> None:
    maps = ("platt", "isotonic", "binning", "venn-abers", "mixed", "evidential-binning",
            "evidential-isotonic", "evidential-logistic", "temperature", "vector",
            "matrix")  # fmt: skip
    code = f"""
import sys, numpy as np
import online_svm.predictor.online_predictor, online_svm.predictor.combiner
from online_svm.config import PredictorConfig
from online_svm.predictor.published_maps import fit_maps
fitted = fit_maps(PredictorConfig(maps={maps}), np.arange(8.0)[:, None], np.arange(8) % 2)
assert len(fitted) == 10, fitted
found = [name for name in sys.modules if name.split('.')[0] == 'sklearn']
assert not found, found
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
