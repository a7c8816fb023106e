"""`--set fit`: its split and its figures beside a route by hand."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import log_loss

from online_svm import OnlineClassifier
from scripts.bench.quality import fit


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
