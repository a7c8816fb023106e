"""Parameters of the public estimators: documented, passed by name, kept and cloned."""

import inspect
import re

import pytest
from sklearn.base import clone

from online_svm import (
    ImpliedPosterior,
    InductiveVennClassifier,
    OnlineCalibrator,
    OnlineClassifier,
    OnlineSVC,
    PredictorConfig,
    ProbabilisticSVC,
    ProbabilitySVC,
    river,
)

ESTIMATORS = (
    *(OnlineSVC, InductiveVennClassifier, ImpliedPosterior, ProbabilisticSVC, ProbabilitySVC),
    *(OnlineClassifier, OnlineCalibrator, river.OnlineClassifier),
)
OF_FEEDS = (OnlineClassifier, OnlineCalibrator, river.OnlineClassifier)
FIRST = {  # what may be passed without its name
    OnlineSVC: ["C"], ImpliedPosterior: ["n_models"], ProbabilisticSVC: ["C", "C_prob"],
    ProbabilitySVC: [], OnlineClassifier: [], OnlineCalibrator: ["estimator", "scores"],
    river.OnlineClassifier: ["classes"],
    InductiveVennClassifier: ["estimator", "taxonomy", "split", "train_fraction", "window",
                              "refit_every", "taxonomy_bins"],
}  # fmt: skip


def parameters(estimator):
    return inspect.signature(estimator).parameters


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda one: f"{one.__module__}")
def test_each_parameter_has_a_line_in_the_docstring(estimator):
    section = inspect.getdoc(estimator).partition("Parameters\n")[2].partition("\nExamples\n")[0]
    assert set(parameters(estimator)) - set(re.findall(r"\w+", section)) == set()


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda one: f"{one.__module__}")
def test_shared_parameters_are_passed_by_name(estimator):
    by_place = [p.name for p in parameters(estimator).values() if p.kind is not p.KEYWORD_ONLY]
    assert by_place == FIRST[estimator]


@pytest.mark.parametrize("estimator", OF_FEEDS, ids=lambda one: f"{one.__module__}")
def test_a_parameter_that_is_a_setting_has_its_default(estimator):
    config = PredictorConfig()
    shared = set(parameters(estimator)) & set(PredictorConfig.model_fields) - {"scores"}
    assert shared >= {"window", "interval_level", "seed"}
    assert {name: parameters(estimator)[name].default for name in shared} == {
        name: getattr(config, name) for name in shared
    }


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda one: f"{one.__module__}")
def test_each_parameter_is_kept_as_it_was_given_and_cloned(estimator):
    given = {name: object() for name in parameters(estimator)}
    model = estimator(**given)
    assert all(getattr(model, name) is value for name, value in given.items())
    if estimator is not river.OnlineClassifier:
        kept = clone(estimator(**dict.fromkeys(given, 7))).get_params()
        assert kept == dict.fromkeys(given, 7)
