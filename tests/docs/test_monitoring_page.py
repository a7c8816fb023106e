"""The pages on monitoring and costs: the example is what `status` says, and figures hold."""

from pathlib import Path

import numpy as np
import orjson
import pytest

from online_svm.config import PredictorConfig
from online_svm.metrics.reliability import corp_decomposition
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.stream.validity_report import ValidityReport
from workers.cli.status import fact_lines
from workers.message.encode import encode_report
from workers.reading.facts import facts
from workers.reading.status import FeedStatus

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "monitoring.md").read_text("utf-8")
COSTS = (DOCS / "how-to" / "costs.md").read_text("utf-8")


def report_after(count, **settings):
    """Return the report after so many examples of which labels 5,000 to 5,249 are inverted."""
    rng = np.random.default_rng(14)
    X = rng.normal(size=(6000, 2))
    y = np.where(X[:, 0] + X[:, 1] + rng.normal(size=6000) > 0, "yes", "no")
    y[5000:5250] = np.where(y[5000:5250] == "yes", "no", "yes")
    config = PredictorConfig(classes=("no", "yes"), monitors="off", metrics_every=250, **settings)
    answers = OnlinePredictor(config).step_many(X[:count], y[:count].tolist())
    return [answer for answer in answers if isinstance(answer, ValidityReport)][-1]


def test_the_example_is_what_status_says_of_labels_5000_to_5249_inverted():
    report = report_after(5250)
    message = orjson.loads(encode_report(report, report.n))
    lines = fact_lines(facts(FeedStatus(feed="f", report=message)))
    told = [f"  {name:<9}  {text}" for name, text in lines]
    assert "\n".join(told) in PAGE


def test_a_window_of_250_shows_what_the_page_says():
    overall = report_after(5250, metrics_window=250).windowed.overall
    told = f"accuracy is {overall.accuracy:.3f} against {overall.probability:.3f}"
    assert f"With `metrics_window = 250` the recent {told}" in PAGE


@pytest.mark.parametrize("spread", [1.0, 8.0])
def test_the_miscalibration_of_right_probabilities_is_what_the_page_says(spread):
    assert "about 0.005 on 1,000 examples" in PAGE
    rng = np.random.default_rng(6)
    found = []
    for _ in range(100):
        p = rng.beta(spread, spread, 1000)
        found.append(corp_decomposition(p, rng.random(1000) < p).miscalibration)
    assert np.mean(found) == pytest.approx(0.005, abs=0.001)


@pytest.mark.parametrize("review", [None, 0.5])
def test_german_credit_costs_what_the_page_says(data_set, review):
    data = data_set("german")
    costs = {"1": {"1": 0, "2": 1}, "2": {"1": 5, "2": 0}}
    if review:
        costs = {label: row | {"review": review} for label, row in costs.items()}
    config = PredictorConfig(classes=("1", "2"), costs=costs)
    answers = OnlinePredictor(config).step_many(data.X, [str(label) for label in data.y])
    told = [answer for answer in answers if isinstance(answer, ValidityReport)][-1].costs
    text = " ".join(COSTS.split())
    if review:
        n, mean = told.taken["review"], f"{told.mean:.3f}".removeprefix("0")
        assert f"with `review` at .5 it was {mean}, and {n} of {told.scored}" in text
    else:
        figures = told.mean, told.always["2"], told.by_label, told.always["1"]
        own, refuse, label, lend = (f"{cost:.3f}".removeprefix("0") for cost in figures)
        assert (
            f"was {own} without `review` (always refuse {refuse}, most probable label {label}, "
            f"always lend {lend})"
        ) in text
