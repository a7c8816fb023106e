"""The benchmark of probabilities: what it measures, of whom, and how it says so."""

import sys

import numpy as np
import orjson
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from online_svm.config import PredictorConfig
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.stream.example import Example
from workers.cli import app as cli
from workers.lab.bench import quality, quality_report
from workers.lab.bench.quality import Quality, Task, measure, scored, tasks_of
from workers.lab.bench.quality_methods import METHODS, ours, rolling_svc, venn_abers_package
from workers.lab.bench.quality_streams import stream


@pytest.fixture(scope="module")
def examples():
    X, codes = stream("phishing", seed=3)
    return X[:620], codes[:620]


def test_ours_is_what_the_predictor_answers_one_by_one(examples):
    X, codes = (values[:120] for values in examples)
    config = PredictorConfig(classes=("0", "1"), maps=("platt", "isotonic", "binning", "mixed"))
    predictor, expected = OnlinePredictor(config), {}
    for x, code in zip(X, codes, strict=True):
        answer = predictor.step(Example(x, str(code)))
        given = {"Venn": answer.probabilities} | answer.maps
        for name in ("Venn", *config.maps):
            expected.setdefault(name, []).append(given[name][1] if answer.maps else 0.5)
    found = ours(X, codes)
    assert {name: values.tolist() for name, values in found.items()} == expected


def test_a_rolling_svc_is_fitted_on_the_last_window_and_answers_the_next(monkeypatch, examples):
    monkeypatch.setattr("workers.lab.bench.quality_methods.WINDOW", 300)
    X, codes = examples
    found = rolling_svc(X, codes, "sigmoid")["sigmoid"]
    held = slice(200, 500)
    scaler = StandardScaler().fit(X[held])
    peer = CalibratedClassifierCV(SVC(), method="sigmoid", ensemble=False)
    peer.fit(scaler.transform(X[held]), codes[held])
    expected = peer.predict_proba(scaler.transform(X[500:]))[:, 1]
    np.testing.assert_allclose(found[500:], expected, rtol=1e-12)
    assert (found[:250] == 0.5).all()


def test_the_venn_abers_package_has_the_scores_of_our_split(examples):
    X, codes = examples
    found = venn_abers_package(X, codes)["venn-abers package"]
    own = ours(X, codes, refit_lag=0, maps=("venn-abers",))["venn-abers"]
    # Ours is the mean of the pair and the package's its log loss point: near, not equal.
    assert (found[:250] == 0.5).all()
    assert np.abs(found[250:] - own[250:]).mean() < 0.03
    assert np.corrcoef(found[250:], own[250:])[0, 1] > 0.98


@pytest.mark.parametrize("name", [name for name in METHODS if name.startswith("river")])
def test_models_of_river_give_probabilities_before_they_learn(examples, name):
    X, codes = (values[:150] for values in examples)
    (found,) = METHODS[name](X, codes).values()
    (changed,) = METHODS[name](X, np.append(codes[:-1], 1 - codes[-1])).values()
    assert found[0] == 0.5
    assert ((found >= 0.0) & (found <= 1.0)).all()
    np.testing.assert_array_equal(found, changed)
    assert scored(found[50:], codes[50:])["accuracy"] > 0.7


def test_streams_are_shuffled_by_the_seed_or_kept_in_time_order(data_set):
    first, second = stream("bananas", seed=0), stream("bananas", seed=1)
    assert first[0].shape == (5300, 2)
    assert (first[0] != second[0]).any()
    assert sorted(map(tuple, first[0])) == sorted(map(tuple, second[0]))
    data = data_set("elec2")
    X, codes = stream("elec2", seed=5)
    np.testing.assert_array_equal(X, data.X[:10_000])
    assert len(codes) == 10_000
    assert len(tasks_of(["bananas", "elec2"], 4)) == 5 * len(METHODS)


def test_the_first_examples_are_not_scored_of_any_method(monkeypatch):
    for name in ("ours", "rolling SVC, sigmoid", "river LogisticRegression"):
        for row in measure(Task("phishing", 0, name, limit=400)).values():
            assert row["examples"] == 400
            assert 0.05 < row["log_loss"] < 1.0
    positive = np.append(np.zeros(250), np.full(5, 0.9))
    monkeypatch.setitem(METHODS, "known", lambda X, _: {"known": positive[: len(X)]})
    (row,) = measure(Task("phishing", 0, "known", limit=255)).values()
    assert row["log_loss"] < -np.log(0.1) + 1e-9


def test_measures_are_those_of_their_definitions():
    rng = np.random.default_rng(0)
    positive, codes = rng.random(400), rng.integers(0, 2, 400)
    found = scored(positive, codes)
    assert found["brier"] == pytest.approx(np.mean((positive - codes) ** 2))
    assert found["accuracy"] == np.mean((positive > 0.5) == codes)
    truth = np.where(codes == 1, positive, 1.0 - positive)
    assert found["log_loss"] == pytest.approx(-np.log(truth).mean())
    order = np.argsort(positive)
    bins = np.array_split(order, 15)
    gaps = [len(b) * abs(codes[b].mean() - positive[b].mean()) for b in bins]
    assert found["ece"] == pytest.approx(sum(gaps) / 400, abs=0.01)


def quality_of(method, losses, name="phishing"):
    values = {measure: np.array(losses) for measure in quality.MEASURES}
    return Quality(name, method, 1250, values)


def test_ours_is_compared_with_the_better_rolling_svc_order_by_order():
    found = quality_report.comparisons(
        [
            quality_of("ours: platt", [0.31, 0.29]),
            quality_of("ours, crossfit: platt", [0.3, 0.3]),
            quality_of("rolling SVC, sigmoid", [0.3, 0.28]),
            quality_of("rolling SVC, isotonic", [0.9, 0.2]),
            quality_of("river ARF", [0.1, 0.1]),
        ]
    )
    assert [one.ours.method for one in found] == ["ours: platt", "ours, crossfit: platt"]
    assert {one.peer.method for one in found} == {"rolling SVC, sigmoid"}
    assert found[0].difference == pytest.approx(0.01)
    assert found[0].error == pytest.approx(0.0, abs=1e-12)
    assert (found[0].most, found[1].most) == (0.02, 0.005)
    assert found[1].error == pytest.approx(0.01)


def test_in_time_order_the_default_has_to_be_better():
    (one,) = quality_report.comparisons(
        [
            quality_of("ours: mixed", [0.4], "elec2"),
            quality_of("rolling SVC, sigmoid", [0.5], "elec2"),
        ]
    )
    assert (one.most, one.error) == (0.0, None)


def test_a_variant_shows_the_answers_it_is_asked_for(examples):
    X, codes = (values[:90] for values in examples)
    whole, part = ours(X, codes, early_until=0), METHODS["ours, lag from the start"](X, codes)
    assert list(part) == ["Venn", "platt", "mixed"]
    assert all((part[name] == whole[name]).all() for name in part)


def test_a_method_that_cannot_run_here_is_named_and_the_rest_is_measured(monkeypatch):
    monkeypatch.setitem(sys.modules, "venn_abers", None)
    assert "pip install 'online-svm[dev]'" in measure(Task("phishing", 0, "venn-abers package"))


def test_data_that_are_not_there_leave_out_one_stream(monkeypatch, tmp_path):
    monkeypatch.setattr(
        quality, "METHODS", {"river LogisticRegression": METHODS["river LogisticRegression"]}
    )
    found, skipped = quality.run(print, 1, tmp_path, ("elec2", "phishing"), limit=300)
    assert [one.stream for one in found] == ["phishing"]
    assert len(skipped) == 1
    assert skipped[0].startswith("elec2, river LogisticRegression: ")


@pytest.mark.parametrize(
    ("flags", "orders"), [([], 10), (["--quick"], 2), (["--shuffles", "3"], 3)]
)
def test_the_command_prints_tables_or_json_and_says_what_is_missing(
    monkeypatch, capsys, flags, orders
):
    asked = []

    def measured(tell, shuffles, data_dir, streams):
        asked.append((shuffles, streams))
        tell("1 of 1: done")
        rows = [quality_of("ours: platt", [0.3]), quality_of("rolling SVC, sigmoid", [0.29])]
        return rows, ["elec2: no file"]

    monkeypatch.setattr(quality, "run", measured)
    for option in ([], ["--json"]):
        with pytest.raises(SystemExit) as ended:
            cli.main(["bench", "quality", "--stream", "phishing", *flags, *option])
        assert ended.value.code == 0
        out, error = capsys.readouterr()
        assert "not measured: elec2: no file" in error
        assert "1 of 1: done" in error
        if option:
            lines = [orjson.loads(line) for line in out.splitlines()]
            assert lines[0]["log_loss"] == 0.3
            assert lines[-1]["difference"] == pytest.approx(0.01)
        else:
            assert "rolling SVC, sigmoid" in out
            assert "+0.0100" in out
    assert asked == [(orders, ("phishing",))] * 2


def test_a_stream_that_is_not_known_is_named(capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(["bench", "quality", "--stream", "phising"])
    assert ended.value.code == 2
    assert "one of phishing, bananas, adult, elec2" in capsys.readouterr().err
