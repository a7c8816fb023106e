"""`--set river`: its streams, its figures beside river's own, and the page of stored figures."""

import json
import math
import sys

import matplotlib.pyplot as plt
import pytest
from river import metrics, naive_bayes

from scripts import make_river_page
from scripts.bench.kept import Cell
from scripts.bench.quality.river_models import LOGISTIC
from scripts.bench.quality.river_track import ClippedLogLoss, measure, run, validated
from scripts.bench.quality.streams import pairs
from scripts.generated_page import Picture


@pytest.mark.parametrize(("method", "published"), [(LOGISTIC, 0.8872), ("river ALMA", 0.8256)])
def test_models_without_chance_reach_their_published_accuracy(method, published):
    (reached,) = measure(Cell(stream="Phishing", method=method, examples=1250))
    assert reached["accuracy"] == published


def test_each_answer_is_scored_before_its_label_is_learned():
    examples, model = pairs("LED_a", 200), naive_bayes.GaussianNB()
    losses, accuracy = [], metrics.Accuracy()
    for x, y in examples:
        if answer := model.predict_proba_one(x):
            losses.append(-math.log(max(answer.get(y, 0.0) / sum(answer.values()), 1e-6)))
            accuracy.update(y, model.predict_one(x))
        model.learn_one(x, y)
    (reached,) = validated(naive_bayes.GaussianNB(), examples, 10)
    assert reached["log_loss"] == pytest.approx(sum(losses) / len(losses))
    assert reached["accuracy"] == accuracy.get()


def test_a_label_that_the_answer_leaves_out_costs_the_most():
    metric = ClippedLogLoss()
    metric.update("b", {"a": 1.0})
    assert metric.get() == pytest.approx(-math.log(1e-6))


def test_a_small_run_prints_figures_and_names_what_does_not_run(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "capymoa", None)
    rows = f"online-svm;{LOGISTIC};river ALMA;river Voting;capymoa ARF"
    options = {"rows": rows, "examples": 120}
    found = list(run("AGR_g,LED_g", **options, results=tmp_path / "kept"))
    told = capsys.readouterr().err
    assert "stream LED_g, method river ALMA, draw 0, examples 120: not run: for two classes" in told
    assert "stream AGR_g, method capymoa ARF, draw 0, examples 120: not run: needs Java" in told
    plain = {(one["stream"], one["method"]): one for one in found[0].rows}
    assert len(plain) == 7
    for (_, method), values in plain.items():
        assert values["examples"] == 120
        assert (values["log_loss"] is None) == (method == "river Voting")
        assert json.loads(json.dumps(values)) == values
    assert plain["LED_g", LOGISTIC]["cost"] == 1.0
    assert plain["AGR_g", "online-svm"]["cost"] > 1.0
    assert [*run("AGR_g,LED_g", **options, results=tmp_path / "kept")] == found


def test_the_page_has_the_stored_figures(tmp_path):
    assert make_river_page.main(["--check"]) == 0
    lines = [*map(json.loads, make_river_page.STORED.read_text().splitlines())]
    ours = [one for one in lines if (one["stream"], one["method"]) == ("Phishing", "online-svm")]
    ours[-1]["measured"][-1]["accuracy"] = 0.1234
    other = tmp_path / "other.jsonl"
    other.write_text("\n".join(map(json.dumps, lines)))
    for shown in (make_river_page.render, make_river_page.tables):
        assert ".1234" in shown(other)
        assert ".1234" not in shown()


def test_a_picture_of_other_figures_is_not_current(tmp_path):
    (tmp_path / "figures").write_text("1")
    picture = Picture(tmp_path / "p.svg", tmp_path / "figures", lambda: plt.figure(figsize=(1, 1)))
    assert not picture.is_current
    picture.write()
    first = picture.target.read_bytes()
    picture.write()
    assert picture.is_current
    assert picture.target.read_bytes() == first
    picture.stored.write_text("2")
    assert not picture.is_current
