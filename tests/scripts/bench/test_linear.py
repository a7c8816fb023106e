"""The benchmark of the linear machine: what it measures, and how it says so."""

import numpy as np
import orjson
import pytest

from online_svm.config import PredictorConfig
from online_svm.predictor.online_predictor import OnlinePredictor
from scripts.bench import linear
from scripts.bench.commands import app
from scripts.bench.linear import Ratio, cost, costs, quality
from scripts.command_line import main


def test_accuracy_and_log_loss_are_those_of_the_published_answers(data_set):
    found = quality("Elec2, first 10,000", limit=600)
    examples = data_set("elec2")
    for learner in ("linear", "svc"):
        config = PredictorConfig(
            classes=("0", "1"), learner=learner, maps=("platt",), committee="single"
        )
        answers = OnlinePredictor(config).step_many(examples.X[:600], examples.y[:600].tolist())
        points = np.concatenate([b.point for b in answers if getattr(b, "status", "") == "ok"])
        truth = (examples.y[600 - len(points) : 600] == "1").astype(int)
        points, truth = points[250 - 600 :], truth[250 - 600 :]
        hits = np.mean(points.argmax(axis=1) == truth)
        loss = -np.mean(np.log(points[np.arange(350), truth]))
        values = [ratio.ours if learner == "linear" else ratio.peer for ratio in found]
        assert values == pytest.approx([hits, loss], abs=1e-12)


@pytest.mark.parametrize("feature_map", ["nystroem", "fourier"])
def test_the_cost_is_that_of_the_last_examples_before_each_size(monkeypatch, feature_map):
    monkeypatch.setattr(linear, "SIZES", (1000, 2000, 4000))
    monkeypatch.setattr(linear, "STRETCH", 250)
    monkeypatch.setattr(linear, "PEER_SIZE", 1000)
    first, second = cost(2000, feature_map)
    assert first.name == "an example, after 1,000 / kernel machine"
    assert second.name == "an example, after 2,000 / 1,000"
    assert second.peer == first.ours
    assert first.unit == second.unit == "us"


def test_refits_are_part_of_the_cost(monkeypatch):
    config = PredictorConfig(classes=("a", "b"), learner="linear", window=400, n_components=50)
    seldom = config.model_copy(update={"refit_every": 100_000, "refit_lag": 0})
    (_, often), (_, without) = next(costs(config, [3000])), next(costs(seldom, [3000]))
    assert often > without > 0.0


def test_the_command_prints_a_line_or_an_object_a_ratio(monkeypatch, capsys):
    asked = []

    def run(*arguments):
        asked.append(arguments)
        yield Ratio("Adult: accuracy / kernel machine", 0.84, 0.8, bound=">= 0.98")
        yield Ratio("an example, after 100,000 / 10,000", 61.0, 60.0, unit="us")

    monkeypatch.setattr(linear, "run", run)
    for flags in (["--feature-map", "fourier", "--examples", "20000"], ["--json"]):
        with pytest.raises(SystemExit) as ended:
            main(app, "bench", ["linear", *flags])
        assert ended.value.code == 0
    first, second, *objects = capsys.readouterr().out.splitlines()
    assert first.split()[-3:] == ["1.050", ">=", "0.98"]
    assert second.split()[-3:] == ["60.00", "us", "1.017"]
    assert [orjson.loads(one)["ratio"] for one in objects] == pytest.approx([1.05, 61 / 60])
    assert [given[:3] for given in asked] == [
        (20000, "fourier", None),
        (1_000_000, "nystroem", None),
    ]
