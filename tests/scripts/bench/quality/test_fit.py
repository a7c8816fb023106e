"""`--set fit`: its split and its figures beside a route by hand."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import log_loss

from online_svm import OnlineClassifier
from scripts.bench.quality import fit, memory


def table(_folder):
    """Return a number and a category, and labels that follow both."""
    rng = np.random.default_rng(3)
    number, colour = rng.normal(size=240), rng.choice(["red", "blue", "green"], 240)
    y = (number + 2.0 * (colour == "red") + rng.normal(size=240) > 0.5).astype(np.int64)
    return pd.DataFrame({"number": number, "colour": colour}), y


def test_both_are_tested_on_the_quarter_that_they_did_not_learn(monkeypatch, tmp_path):
    monkeypatch.setattr(fit, "SETS", {"made": table})
    rows, checks = fit.run(data_dir=tmp_path)
    X, y = table(None)
    order = np.random.default_rng(0).permutation(240)
    X, y = X.iloc[order].reset_index(drop=True), y[order]
    is_tested = np.arange(240) % 4 == 0
    ours = OnlineClassifier().fit(X[~is_tested], y[~is_tested]).predict_proba(X[is_tested])
    codes = np.column_stack([X.number, X.colour.map({"blue": 0, "green": 1, "red": 2})])
    peer = HistGradientBoostingClassifier(categorical_features=[1], random_state=0)
    trees = peer.fit(codes[~is_tested], y[~is_tested]).predict_proba(codes[is_tested])
    (found,) = rows.rows
    assert found["rows"] == 240
    assert found["fit"] == pytest.approx(log_loss(y[is_tested], ours))
    assert found["trees"] == pytest.approx(log_loss(y[is_tested], trees))
    assert found["time_ratio"] > 0.0
    assert not checks.checks  # the goal is of adult


def test_a_slow_drift_goes_from_one_law_to_the_other_and_a_b_a_b_returns(tmp_path):
    laws = {name: memory.STREAMS[name](tmp_path) for name in ("stationary", "abrupt", "a-b-a-b")}
    slow = memory.STREAMS["slow-drift"](tmp_path)[1]
    first, second = laws["stationary"][1], laws["abrupt"][1]
    np.testing.assert_array_equal(first[:15_000], second[:15_000])
    assert (first != second)[15_000:].mean() > 0.2
    np.testing.assert_array_equal(laws["a-b-a-b"][1][18_750:22_500], second[18_750:22_500])
    np.testing.assert_array_equal(laws["a-b-a-b"][1][22_500:26_250], first[22_500:26_250])
    assert (slow != first)[:1_000].mean() < 0.05
    assert (slow != second)[-1_000:].mean() < 0.05
