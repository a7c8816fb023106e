"""Lambrou et al. (2012): the protocol against the predictor's, and the tables on short streams."""

import numpy as np
import pytest
from scipy.stats import norm

from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.predictor.protocol import ProtocolConfig
from online_svm.stream.prediction import PredictionBlock
from scripts.papers import Run
from scripts.papers.venn import experiments as venn
from scripts.papers.venn.experiments import AdultTask, measure_adult, measured_batch, measures
from scripts.papers.venn.protocol import STEPWISE, Setting, follow

COLLAPSED = Setting("car", "sigma", 0.02)


@pytest.fixture(scope="module")
def collapsed(data_set):
    data_set("car")  # or skip
    return follow(COLLAPSED, None, seed=0, length=400)


def test_the_protocol_is_that_of_the_predictor(data_set):
    setting, n = Setting("wine", "sigma", 0.6), 150
    data = data_set("wine")
    order = np.random.default_rng(1).permutation(len(data))[:n]
    classes = tuple(map(str, np.unique(data.y)))
    config = ProtocolConfig.paper(classes, gamma=setting.gamma, maps=("platt",))
    answers = OnlinePredictor(config).step_many(data.X[order], list(map(str, data.y[order])))
    blocks = [b for b in answers if isinstance(b, PredictionBlock) and b.status == "ok"]
    stream = follow(setting, None, seed=1, length=n)
    venn, platt = stream.tracks["class"], stream.tracks["Platt, calibration"]
    steps = np.concatenate([b.n for b in blocks]).tolist()
    assert [n for n, *_ in venn] == [n for n, *_ in platt] == steps
    for ours, theirs in (
        ([lower for _, _, lower, _ in venn], [b.lower for b in blocks]),
        ([point for _, point, _, _ in venn], [b.point for b in blocks]),
        ([point for _, point, _, _ in platt], [b.maps["platt"] for b in blocks]),
    ):
        same = np.isclose(np.array(ours), np.concatenate(theirs), rtol=0, atol=1e-3).all(axis=1)
        assert same.mean() > 0.98


def test_platt_on_training_scores_is_rejected_and_on_calibration_scores_is_not(collapsed):
    measured = measures(collapsed)
    assert measured["Platt, training"]["paper_p"] < 1e-50
    assert measured["Platt, calibration"]["paper_p"] > 0.05
    assert measured["class"]["paper_p"] > 0.05
    assert measured[STEPWISE]["probability"] > 0.95, "isotonic by steps: as certain as printed"


def test_measures_are_those_of_the_definition():
    rng = np.random.default_rng(0)
    point = rng.dirichlet(np.ones(3), size=200)
    codes, own = rng.integers(0, 3, 200), rng.integers(0, 3, 200)
    measured = measured_batch(point, point - 0.1, point + 0.2, own, codes)
    label = point.argmax(axis=1)
    p = point.max(axis=1)
    z = ((label == codes) - p).sum() / np.sqrt((p * (1 - p)).sum())
    assert measured["accuracy"] == pytest.approx((label == codes).mean())
    assert measured["paper_p"] == pytest.approx(2 * norm.sf(abs(z)))
    middle = p + 0.05
    z = ((label == codes) - middle).sum() / np.sqrt((middle * (1 - middle)).sum())
    assert measured["midpoint_p"] == pytest.approx(2 * norm.sf(abs(z)))
    assert measured["width"] == pytest.approx(0.3)
    assert measured["surplus"] == pytest.approx(((label == codes) - p).sum())
    assert sum(measured["class_surplus"]) == pytest.approx(0.0, abs=1e-9)


def test_on_adult_finer_taxonomies_reduce_the_log_loss(data_set):
    data_set("a9a")
    methods = measure_adult(AdultTask(0, None, 3000))["methods"]
    loss = {name: measured["log_loss"] for name, measured in methods.items()}
    assert loss["class-rank"] < loss["class"] - 0.04
    assert loss["venn-abers"] < loss["class"] - 0.05
    assert methods["class"]["width"] < methods["class-rank"]["width"]


@pytest.fixture(scope="module")
def result(data_set):
    for name in ("car", "wine", "a9a"):
        data_set(name)  # or skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(venn, "each", lambda function, tasks, _: list(map(function, tasks)))
        patch.setattr(venn, "QUICK", venn.VennPlan(("sigma", "gamma"), 1, 2, 2, 60, 200))
        return venn.run(Run(quick=True))


@pytest.mark.slow
def test_every_printed_value_has_a_measurement_and_a_reason_where_it_differs(result):
    assert len(result["rows"]) == 22
    for row in result["rows"]:
        assert isinstance(row["measured"], float)
        assert isinstance(row["measured_gamma"], float)
        assert row["reason"] is None or len(row["reason"]) > 10
    of = [claim["of"] for claim in result["claims"]]
    assert of == [2, 8, 8, 1, 1, 22, 22, 22, 6]
    assert all(len(c["not_in"]) == c["of"] - c["holds"] for c in result["claims"])

    for table in result["tables"]:
        assert {len(row) for row in table["rows"]} == {len(table["columns"])}
