"""The methods of the quality benchmark: each answers before it learns."""

import sys

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from online_svm.config import PredictorConfig
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.stream.input_batch import Example
from scripts.bench.quality import rolling
from scripts.bench.quality.answers import ours
from scripts.bench.quality.rolling import calibrated, venn_abers_package
from scripts.bench.quality.rows import METHODS
from scripts.bench.quality.streams import stream
from workers.errors import BadConfiguration

PEERS = [name for name in METHODS if name.startswith(("rolling", "river"))]


@pytest.fixture(autouse=True)
def one_thread():
    """Threads that wait for a busy processor take minutes; the benchmark has one thread too."""
    with threadpool_limits(1):
        yield


@pytest.fixture(scope="module")
def examples():
    X, codes = stream("phishing", seed=3)
    return X[:620], codes[:620]


def test_ours_is_what_the_predictor_answers_one_by_one(examples):
    X, codes = (values[:120] for values in examples)
    predictor = OnlinePredictor(PredictorConfig(classes=("0", "1")))
    expected, labels, intervals = {}, [], []
    for x, code in zip(X, codes, strict=True):
        answer = predictor.step(Example(x, str(code)))
        expected.setdefault("own", []).append(answer.probabilities[1] if answer.label else 0.5)
        for name in predictor.config.published:
            probability = answer.maps[name][1] if answer.maps else 0.5
            expected.setdefault(f"own: {name}", []).append(probability)
        labels.append(int(answer.label or 0))
        intervals.append([answer.lower, answer.upper] if answer.label else [0.0, 1.0])
    found = ours(X, codes, 2, row="own")
    assert {name: found[name].probabilities[:, 1].tolist() for name in expected} == expected
    assert found["own"].intervals[np.arange(120), labels].tolist() == intervals


def test_a_rolling_model_is_fitted_on_the_last_window_and_answers_the_next(monkeypatch, examples):
    monkeypatch.setattr(rolling, "WINDOW", 300)
    X, codes = examples
    found = calibrated("svc", SVC)(X, codes, 2)["svc"].probabilities
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
    found = calibrated("svc", SVC)(X, codes, 4)["svc"].probabilities[250:]
    assert found[:, 2] == pytest.approx(5 / 254)
    assert found[:, 3] == pytest.approx(1 / 254)
    assert found.sum(axis=1) == pytest.approx(1.0)


def test_a_window_with_one_class_answers_with_frequencies():
    codes = np.zeros(300, dtype=np.int64)
    X = np.random.default_rng(0).normal(size=(300, 2))
    found = calibrated("svc", SVC)(X, codes, 2)["svc"].probabilities
    assert found[299] == pytest.approx([251 / 252, 1 / 252])


def test_the_venn_abers_package_has_the_scores_of_our_split(examples):
    X, codes = examples
    found = venn_abers_package("package")(X, codes, 2)["package"].probabilities[:, 1]
    changes = {"refit_lag": 0, "maps": ("venn-abers",), "committee": "single"}
    own = ours(X, codes, 2, row="own", **changes)
    own = own["own: venn-abers"].probabilities[:, 1]
    # Ours is the mean of the pair and the package's its log loss point: near, not equal.
    assert (found[:250] == 0.5).all()
    assert np.abs(found[250:] - own[250:]).mean() < 0.03
    assert np.corrcoef(found[250:], own[250:])[0, 1] > 0.98


def test_the_venn_abers_package_is_of_two_classes_and_may_be_absent(monkeypatch, examples):
    X, codes = examples
    with pytest.raises(BadConfiguration, match="two classes only"):
        venn_abers_package("package")(X, codes, 3)
    monkeypatch.setitem(sys.modules, "venn_abers", None)
    with pytest.raises(BadConfiguration, match=r"pip install 'online-svm\[dev\]'"):
        venn_abers_package("package")(X, codes, 2)


@pytest.mark.parametrize("name", PEERS)
def test_no_peer_sees_a_label_before_it_answers(examples, name):
    X, codes = (values[:300] for values in examples)
    changed = np.append(codes[:-1], 1 - codes[-1])
    found, of_changed = (METHODS[name](X, given, 2)[name] for given in (codes, changed))
    np.testing.assert_array_equal(found.probabilities, of_changed.probabilities)
    assert found.probabilities[0].tolist() == [0.5, 0.5]
    hits = found.probabilities[250:].argmax(axis=1) == codes[250:]
    assert hits.mean() > 0.7


@pytest.mark.parametrize("name", PEERS)
def test_every_peer_answers_more_than_two_classes(name):
    X, codes = (values[:300] for values in stream("waveform", seed=0))
    said = METHODS[name](X, codes, 3)[name].probabilities
    assert said.shape == (300, 3)
    assert said.sum(axis=1) == pytest.approx(1.0)
    assert (said[250:].argmax(axis=1) == codes[250:]).mean() > 0.5
