"""The figures of an answered history against scikit-learn and the definitions."""

import numpy as np
import pytest
from sklearn.metrics import log_loss, roc_auc_score

from online_svm.config import SCORE
from online_svm.metrics.scores import interval_coverage, squared_calibration_error
from workers.offline.backtest.prequential import HEADLINE, HistoryOutcome, Published
from workers.offline.backtest.result import CURVE_POINTS, BacktestResult, result_of, scores


def root(square):
    return max(0.0, square) ** 0.5


def said(n, classes, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.dirichlet(np.ones(len(classes)), n)
    ends = np.stack((values * 0.9, 1 - 0.9 * (1 - values)), axis=-1)
    codes = np.array([rng.choice(len(classes), p=row) for row in values])
    return Published(values, ends), codes


def test_two_classes_are_scored_by_the_second():
    method, codes = said(300, ("no", "yes"))
    found = scores(method, ("no", "yes"), codes)
    p = method.probabilities[:, 1]
    low, high = method.intervals[:, 1].T
    assert found.log_loss == pytest.approx(log_loss(codes, method.probabilities))
    assert found.brier == pytest.approx(np.mean((p - codes) ** 2))
    assert found.auc == pytest.approx(roc_auc_score(codes, p))
    assert found.calibration_error == root(squared_calibration_error(p, codes))
    assert found.coverage == interval_coverage(p, method.intervals[:, 1], codes).coverage
    assert found.width == pytest.approx(np.mean(high - low))
    # A slot for labels that were not seen changes no figure.
    slot = np.pad(method.probabilities, ((0, 0), (0, 1)))
    wide = Published(slot, np.pad(method.intervals, ((0, 0), (0, 1), (0, 0))))
    assert scores(wide, ("no", "yes", None), codes) == found


def test_more_classes_are_calibrated_by_the_most_probable_one():
    classes = ("a", "b", "c", "d")
    method, codes = said(400, classes)
    found = scores(method, classes, codes)
    chosen = method.probabilities.argmax(axis=1)
    p = method.probabilities.max(axis=1)
    assert found.calibration_error == root(squared_calibration_error(p, chosen == codes))
    assert found.accuracy == np.mean(chosen == codes)
    truth = np.eye(4)[codes]
    assert found.brier == pytest.approx(((method.probabilities - truth) ** 2).sum(axis=1).mean())
    assert found.auc == pytest.approx(roc_auc_score(codes, method.probabilities, multi_class="ovr"))


def test_what_is_not_defined_is_none():
    method, codes = said(50, ("no", "yes"))
    found = scores(Published(method.probabilities), ("no", "yes"), codes)  # no intervals
    assert (found.coverage, found.coverage_of_perfect, found.width) == (None, None, None)
    assert scores(method, ("no", "yes"), np.ones(50, dtype=np.int64)).auc is None


def test_the_curves_end_with_the_figures_and_hold_all_answers_and_survive_json():
    method, codes = said(1000, ("no", "yes"))
    found = result_of(
        HistoryOutcome(("no", "yes"), codes, np.arange(1000) + 10, {HEADLINE: method})
    )
    loss, reliability = found.loss, found.reliability
    assert (len(loss.learned), loss.learned[0], loss.learned[-1]) == (CURVE_POINTS, 10, 1009)
    assert loss.log_loss[-1] == pytest.approx(found.methods[HEADLINE].log_loss, rel=1e-12)
    weights = reliability.examples
    assert sum(weights) == 1000
    assert np.average(reliability.frequency, weights=weights) == pytest.approx(codes.mean())
    mean = method.probabilities[:, 1].mean()
    assert np.average(reliability.probability, weights=weights) == pytest.approx(mean)
    assert BacktestResult.model_validate_json(found.model_dump_json()) == found


def test_a_given_score_has_a_reliability_of_its_own():
    (ours, codes), (given, _) = said(300, ("no", "yes")), said(300, ("no", "yes"))
    given = Published(given.probabilities**2 / (given.probabilities**2).sum(axis=1)[:, None])
    methods = {HEADLINE: ours, SCORE: given}
    outcome = HistoryOutcome(("no", "yes"), codes, np.arange(300), methods)
    found = result_of(outcome)
    alone = result_of(HistoryOutcome(("no", "yes"), codes, np.arange(300), {HEADLINE: given}))
    assert found.score_reliability == alone.reliability != found.reliability
    assert BacktestResult.model_validate_json(found.model_dump_json()) == found
    assert alone.score_reliability is None


@pytest.mark.parametrize("n", [0, 1])
def test_fewer_than_two_scored_answers_have_no_figures(n):
    method, codes = said(n, ("no", "yes"))
    found = result_of(
        HistoryOutcome(("no", "yes"), codes, np.arange(n), {HEADLINE: method} if n else {})
    )
    assert (found.methods, found.counts.scored, found.loss.learned) == ({}, n, [])
