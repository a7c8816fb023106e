"""The figures of the paper on German credit, and what the reproduction draws."""

import json

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import roc_auc_score

from scripts.papers import Run, implied, repeat
from scripts.papers.implied import (
    BANK_PENALTY,
    Split,
    bank,
    bank_scores,
    looked_up,
    measures,
    reference,
)


@pytest.fixture(scope="module")
def german(data_set):
    data_set("german-numeric")
    return Split.german(None)


@pytest.fixture(scope="module")
def fitted(german):
    return bank(german, BANK_PENALTY)


def test_raw_platt_and_implied_have_the_calibration_scores_and_areas_of_the_paper(german, fitted):
    single = reference(german, seed=0)
    estimates = {
        "raw": (single["raw"], 0.086, 0.742),
        "platt": (single["platt"], 0.104, 0.742),
        "implied": (fitted.vote_shares(german.X_test), 0.065, 0.747),
    }
    for name, (p, calibration, area) in estimates.items():
        step = IsotonicRegression(out_of_bounds="clip").fit(p, german.y_test).predict(p)
        assert np.abs(p - step).mean() == pytest.approx(calibration, abs=0.005), name
        assert roc_auc_score(german.y_test, p) == pytest.approx(area, abs=0.01), name
        found = measures(p, german.y_test)
        assert found["calibration"] == pytest.approx(np.abs(p - step).mean(), abs=1e-12)


def test_with_the_printed_c_the_area_is_the_printed_one(german):
    shares = bank(german, 10.0).vote_shares(german.X_test)
    assert roc_auc_score(german.y_test, shares) == pytest.approx(0.73, abs=0.01)
    assert measures(shares, german.y_test)["calibration"] == pytest.approx(0.073, abs=0.005)


def test_a_look_up_by_the_printed_equation_is_upside_down_and_votes_are_not(german, fitted):
    plain = fitted.crossings(german.X_test) == 1
    assert 0.9 < plain.mean() < 1.0
    read = looked_up(bank_scores(fitted, german.X_test))[plain]
    assert 1 - read == pytest.approx(fitted.vote_shares(german.X_test)[plain], abs=1 / 200)


def test_the_result_is_plain_data_and_the_same_again(monkeypatch):
    monkeypatch.setattr(implied, "QUICK_SPLITS", 2)
    monkeypatch.setattr(implied, "QUICK_FOLD_SEEDS", 2)
    result = repeat("implied", Run(quick=True))
    assert repeat("implied", Run(quick=True)) == result
    assert json.loads(json.dumps(result))["rows"] == result["rows"]
