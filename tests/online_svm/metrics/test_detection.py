"""Recall, precision and areas of one class, against scikit-learn and their own coverage."""

import math

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, precision_score, recall_score, roc_auc_score

from online_svm.errors import InvalidInput
from online_svm.metrics.binomial_interval import proportion
from online_svm.metrics.detection import detection


def made(rng, n=400, share=0.1, skill=1.5, decimals=2):
    happened = rng.random(n) < share
    score = rng.normal(size=n) + skill * happened
    return np.round(1.0 / (1.0 + np.exp(2.0 - score)), decimals), happened


@pytest.mark.parametrize("seed", range(5))
def test_figures_are_those_of_scikit_learn_with_ties(seed):
    p, happened = made(np.random.default_rng(seed))
    decided = p > 0.3
    found = detection(p, happened, decided)
    assert found.recall.value == pytest.approx(recall_score(happened, decided))
    assert found.precision.value == pytest.approx(precision_score(happened, decided))
    assert found.roc_auc.value == pytest.approx(roc_auc_score(happened, p))
    assert found.pr_auc.value == pytest.approx(average_precision_score(happened, p))
    assert sum(each.count for each in found.reliability) == found.examples == len(p)


def test_the_order_of_the_examples_changes_no_bit():
    rng = np.random.default_rng(7)
    p, happened = made(rng)
    order = rng.permutation(len(p))
    shuffled = detection(p[order], happened[order], p[order] > 0.3)
    assert shuffled == detection(p, happened, p > 0.3)


def test_intervals_hold_the_true_areas_about_95_times_of_100():
    rng = np.random.default_rng(3)
    p, happened = made(rng, n=400_000, decimals=6)
    truth = detection(p, happened, p > 0.3)
    names = ("recall", "precision", "roc_auc", "pr_auc")
    held = dict.fromkeys(names, 0)
    for _ in range(400):
        p, happened = made(rng, n=600, decimals=6)
        found = detection(p, happened, p > 0.3)
        for name in names:
            one = getattr(found, name)
            held[name] += one.lower <= getattr(truth, name).value <= one.upper
    assert all(0.92 <= held[name] / 400 <= 1.0 for name in names), held


def test_what_is_undefined_is_unknown_and_extremes_have_an_interval():
    none = detection([0.1, 0.2], [0, 0], [0, 0])
    assert [str(none.recall), str(none.precision), str(none.roc_auc)] == ["unknown"] * 3
    assert math.isnan(none.pr_auc.value)
    best = detection([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1], [0, 0, 1, 1])
    assert best.roc_auc.value == best.pr_auc.value == 1.0
    assert 0.0 < best.roc_auc.lower < 0.5
    assert best.recall.upper == 1.0


def test_input_that_cannot_be_is_refused():
    with pytest.raises(InvalidInput):
        detection([0.5, 1.5], [0, 1], [0, 1])
    with pytest.raises(InvalidInput):
        detection([0.5, 0.5], [0, 1], [0])
    with pytest.raises(InvalidInput, match="hits"):
        proportion(3, 2)
