"""The page on monitoring: its example is what `status` says, and its figures hold."""

from pathlib import Path

import numpy as np
import orjson
import pytest

from online_svm.config import PredictorConfig
from online_svm.metrics.corp import corp_decomposition
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.stream.prediction import ValidityReport
from workers.cli.validity_text import validity_lines
from workers.message.encode import encode_report

PAGE = (Path(__file__).parents[2] / "docs" / "monitoring.md").read_text()


def test_the_example_is_what_status_says_of_labels_5000_to_5249_inverted():
    rng = np.random.default_rng(14)
    X = rng.normal(size=(6000, 2))
    y = np.where(X[:, 0] + X[:, 1] + rng.normal(size=6000) > 0, "yes", "no")
    y[5000:5250] = np.where(y[5000:5250] == "yes", "no", "yes")
    config = PredictorConfig(classes=("no", "yes"), monitors="off", metrics_every=250)
    answers = OnlinePredictor(config).step_many(X[:5250], y[:5250].tolist())
    report = [answer for answer in answers if isinstance(answer, ValidityReport)][-1]
    message = orjson.loads(encode_report(report, report.n))
    told = [f"  {name:<9}  {text}" for name, text in validity_lines(message)]
    assert "\n".join(told) in PAGE


@pytest.mark.parametrize("spread", [1.0, 8.0])
def test_the_miscalibration_of_right_probabilities_is_what_the_page_says(spread):
    assert "about 0.005 on 1,000 examples" in PAGE
    rng = np.random.default_rng(6)
    found = []
    for _ in range(100):
        p = rng.beta(spread, spread, 1000)
        found.append(corp_decomposition(p, rng.random(1000) < p).miscalibration)
    assert np.mean(found) == pytest.approx(0.005, abs=0.001)
