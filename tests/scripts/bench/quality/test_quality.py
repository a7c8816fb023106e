"""`bench quality`: its streams, its methods, what it measures and says."""

import numpy as np
import pytest
from pandas import DataFrame
from sklearn.calibration import CalibratedClassifierCV
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from online_svm.config import PredictorConfig
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.stream.input_batch import Example
from scripts.bench.kept import Cell
from scripts.bench.quality import methods
from scripts.bench.quality.methods import PEERS, ours
from scripts.bench.quality.run import means_of_draws, measure, of_means, of_rivals, run
from scripts.bench.quality.streams import stream
from workers.errors import BadConfiguration
from workers.push.datasets import DataNotFound

RIVER = "river AMF"
SVC_ROLLING = PEERS["rolling SVC, sigmoid"]
ROLLING = [name for name in PEERS if name.startswith(("rolling", "river"))]
SLOWEST = ("river LeveragingBagging", "river SRP")


@pytest.fixture(scope="module")
def examples():
    X, codes = stream("phishing", seed=3)
    return X[:620], codes[:620]


def test_a_stream_is_shuffled_or_drawn_by_the_seed():
    for name in ("bananas", "sea"):
        first, again, other = (stream(name, seed) for seed in (0, 0, 1))
        np.testing.assert_array_equal(first[0], again[0])
        np.testing.assert_array_equal(first[1], again[1])
        assert (first[0] != other[0]).any()
        is_shuffle = sorted(map(tuple, first[0])) == sorted(map(tuple, other[0]))
        assert is_shuffle == (name == "bananas")


def test_a_stream_in_time_order_is_the_file(data_set):
    data = data_set("elec2")
    for name, part in (("elec2", slice(10_000)), ("elec2-late", slice(30_000, 40_000))):
        X, codes = stream(name, seed=5)
        np.testing.assert_array_equal(X, data.X[part])
        np.testing.assert_array_equal(codes, data.y[part] == "1")


def test_a_missing_file_or_data_set_is_named(monkeypatch, tmp_path):
    with pytest.raises(DataNotFound, match=r"elec\.csv"):
        stream("elec2", seed=0, data_dir=tmp_path)
    from river import datasets

    monkeypatch.delattr(datasets, "Phishing")
    with pytest.raises(BadConfiguration, match="no data set Phishing"):
        stream("phishing", seed=0)


def test_ours_is_what_the_predictor_answers_one_by_one(examples):
    X, codes = (values[:120] for values in examples)
    predictor = OnlinePredictor(PredictorConfig(classes=("0", "1")))
    answers = [predictor.step(Example(x, str(code))) for x, code in zip(X, codes, strict=True)]
    found = ours(X, codes, 2)
    for i, answer in enumerate(answers):
        is_scored = answer.status == "ok"  # answers while warming are not
        label = int(answer.label or 0)
        interval = [answer.lower, answer.upper] if is_scored else [0.0, 1.0]
        expected = list(answer.probabilities) if is_scored else [0.5, 0.5]
        assert found.probabilities[i].tolist() == expected
        assert found.intervals[i, label].tolist() == interval


def test_a_rolling_model_is_fitted_on_the_last_window_and_answers_the_next(monkeypatch, examples):
    monkeypatch.setattr(methods, "WINDOW", 300)
    X, codes = examples
    found = SVC_ROLLING(X, codes, 2)
    held = slice(200, 500)
    scaler = StandardScaler().fit(X[held])
    peer = CalibratedClassifierCV(SVC(), ensemble=False).fit(scaler.transform(X[held]), codes[held])
    expected = peer.predict_proba(scaler.transform(X[500:]))
    np.testing.assert_allclose(found[500:], expected, rtol=1e-12)
    assert (found[:250] == 0.5).all()


def test_a_class_too_rare_to_calibrate_gets_its_smoothed_frequency():
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(500, 2)), rng.integers(0, 2, 500)
    codes[:4] = 2  # fewer than there are folds; a fourth class has no example at all
    found = SVC_ROLLING(X, codes, 4)[250:]
    assert found[:, 2] == pytest.approx(5 / 254)
    assert found[:, 3] == pytest.approx(1 / 254)
    assert found.sum(axis=1) == pytest.approx(1.0)
    alone = SVC_ROLLING(X[:300], np.zeros(300, dtype=np.int64), 2)
    assert alone[299] == pytest.approx([251 / 252, 1 / 252])


@pytest.mark.parametrize("name", [
    pytest.param(name, marks=[pytest.mark.slow] * (name in SLOWEST)) for name in ROLLING
])  # fmt: skip
def test_no_peer_sees_a_label_before_it_answers_and_each_takes_more_classes(examples, name):
    for (X, codes), k, right in ((examples, 2, 0.7), (stream("waveform", seed=0), 3, 0.5)):
        X, codes = X[:300], codes[:300]
        found = PEERS[name](X, codes, k)
        assert found.sum(axis=1) == pytest.approx(1.0)
        assert found[0].tolist() == [1 / k] * k
        assert (found[250:].argmax(axis=1) == codes[250:]).mean() > right
        if k == 2:
            changed = np.append(codes[:-1], 1 - codes[-1])
            np.testing.assert_array_equal(found, PEERS[name](X, changed, 2))


def test_the_first_examples_are_answered_but_not_scored(monkeypatch):
    seen = []

    def method(X, codes, n_classes):
        seen.append(len(X))
        return np.where(np.arange(len(X))[:, None] < 250, [1.0, 0.0], [0.5, 0.5])

    monkeypatch.setitem(PEERS, "known", method)
    (found,) = measure(Cell(stream="phishing", method="known", examples=400))
    assert seen == [260, 400]
    assert found["examples"] == 400
    assert found["log_loss"] == pytest.approx(np.log(2.0))


def test_processes_find_what_one_finds_and_what_cannot_run_here_is_named(tmp_path, capsys):
    def lines(jobs):
        kept = {"jobs": jobs, "results": tmp_path / str(jobs), "data_dir": tmp_path}
        found = run("elec2,phishing", f"{RIVER};rolling LR", 1, 300, **kept)
        rows, _ = [result.rows for result in found]
        told = capsys.readouterr().err.splitlines()
        assert sum("stream elec2" in line and "not run: " in line for line in told) == 2
        return [{name: v for name, v in row.items() if "microseconds" not in name} for row in rows]

    one = lines(1)
    assert [row["method"] for row in one] == [RIVER, "rolling LR"]
    assert lines(2) == one


def table_of(losses):
    """Return figures of which only the log losses matter: of each stream, method and shuffle."""
    cells = [
        Cell(stream=name, method=method, draw=draw).key
        | {"examples": 1250, "log_loss": loss, "squared_calibration_error": 0.0}
        for name, methods in losses.items()
        for method, shuffles in methods.items()
        for draw, loss in enumerate(shuffles)
    ]
    return means_of_draws(DataFrame(cells))


def test_means_are_over_the_streams_that_all_rows_of_them_have():
    whole = table_of(
        {"phishing": {"headline": [0.2, 0.4], RIVER: [0.1]}, "bananas": {"headline": [0.5]}}
    )
    result = of_means(whole, "two classes")
    (mean,) = result.rows
    assert (mean["method"], mean["log_loss"]) == ("headline", pytest.approx(0.4))
    assert result.title == "two classes: means over 2 streams"


def test_the_headline_is_held_against_the_best_peer_of_each_stream():
    losses = {
        "phishing": {"headline": 0.2, "river AMF": 0.3, "river ARF": 0.4},
        "car": {"headline": 0.5, "rolling LR": 0.49},
        "ionosphere": {"headline": 0.202, "rolling LR": 0.2},
        "sea": {"headline": 0.2},  # no peer
    }
    whole = table_of({name: {row: [loss] for row, loss in rows.items()}
                      for name, rows in losses.items()})  # fmt: skip
    (result,) = of_rivals(whole, "all")
    assert {one["stream"]: one["method"] for one in result.rows} == {
        "phishing": "river AMF", "car": "rolling LR", "ionosphere": "rolling LR",
    }  # fmt: skip
    assert [one["stream"] for one in result.rows if not one["near"]] == ["car"]
    assert "on 2 of 3 streams" in result.title
