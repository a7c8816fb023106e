"""OnlinePredictor with the P-SVM: a stream in which some examples have a probability, no label."""

import math

import numpy as np
import pytest
from literal_predictor import Literal
from predictor_answers import reports, rows

from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.predictor.protocol import ProtocolConfig
from online_svm.refit import learner, scaling
from online_svm.stream.input_batch import Example
from online_svm.stream.split import training_mask

BASE = {"learner": "psvm", "classes": ("a", "b"), "features": 3}


def stream(n, share=0.3):
    """Return two overlapping classes, a share of the examples with a noisy posterior instead."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 3)) + np.where(codes[:, None] == 1, 0.8, -0.8)
    given = rng.random(n) < share
    posterior = 1.0 / (1.0 + np.exp(-1.6 * X.sum(axis=1)))
    noisy = np.clip(posterior + rng.uniform(-0.1, 0.1, n), 0.0, 1.0)
    labels = [None if p else "ab"[code] for p, code in zip(given, codes, strict=True)]
    return X, labels, np.where(given, noisy, np.nan)


@pytest.mark.parametrize("split", ["oldest", "interleaved"])
@pytest.mark.parametrize("schedule", [(60, 25, 20), (None, 15, 0), (40, 50, 49)])
def test_answers_are_those_of_the_specification_read_literally(schedule, split, monkeypatch):
    monkeypatch.setattr(learner, "TOLERANCE", 1e-8)
    monkeypatch.setattr(scaling, "RESCALE_EVERY", 1)
    window, every, lag = schedule
    config = ProtocolConfig(
        **BASE, window=window, refit_every=every, refit_lag=lag, split=split, gamma=0.3,
        C=2.0, C_prob=5.0, eta=0.05,
    )  # fmt: skip
    X, labels, probs = stream(150)
    literal = Literal(config)
    expected = [literal.step(*row) for row in zip(X, labels, probs, strict=True)]
    answers = rows(OnlinePredictor(config).step_many(X, labels, probs))
    for answer, said in zip(answers, expected, strict=True):
        assert (answer.status == "warming") == (said is None)
        if said is not None:
            assert answer.scores == pytest.approx(said[0], abs=1e-5)
            assert np.allclose(answer.venn, said[1], rtol=0, atol=1e-15)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_with_labels_only_the_scores_are_those_of_the_svm(kernel, monkeypatch):
    monkeypatch.setattr(learner, "TOLERANCE", 1e-7)
    X, labels, _ = stream(160, share=0.0)
    shared = {
        "classes": ("a", "b"), "window": 70, "refit_every": 30, "kernel": kernel,
        "class_weight": {"b": 2.0},
    }  # fmt: skip
    plain, tubes = (
        rows(OnlinePredictor(ProtocolConfig(**shared, **machine)).step_many(X, labels))
        for machine in ({"committee": "single"}, {"learner": "psvm"})
    )
    assert [p.status for p in plain] == [p.status for p in tubes]
    for one, other in zip(plain, tubes, strict=True):
        assert one.scores == pytest.approx(other.scores, abs=1e-5)
    assert {p.guarantee for p in tubes if p.status == "ok"} == {"exact"}


def test_the_map_of_the_machine_itself_comes_last_and_is_scored():
    config = ProtocolConfig(**BASE, window=60, refit_every=25, metrics_every=7)
    answers = OnlinePredictor(config).step_many(*stream(120))
    last = rows(answers)[-1]
    assert list(last.maps) == ["platt", "isotonic", "binning", "psvm"]
    a = math.log(1.0 / 0.1 - 1.0)
    p = 1.0 / (1.0 + math.exp(-a * last.scores[0]))
    assert last.maps["psvm"] == pytest.approx((1.0 - p, p), abs=1e-15)
    assert reports(answers)[-1].maps["psvm"].brier is not None


def test_a_probability_is_learned_and_counted_but_not_scored():
    X, labels, probs = stream(150, share=0.5)
    predictor = OnlinePredictor(ProtocolConfig(**BASE, window=None, refit_every=50, refit_lag=0))
    answers = rows(predictor.step_many(X, labels, probs))
    assert [p.n for p in answers] == list(range(150))
    scored = sum(y is not None and p.status == "ok" for y, p in zip(labels, answers, strict=True))
    assert predictor._engine.scoring._validity.report(150).scored == scored < 150
    trains = training_mask("interleaved", 0, 150, 0.7)
    outside = [y for y, t in zip(labels, trains, strict=True) if y is not None and not t]
    assert len(predictor.active.calibration.codes) == len(outside)
    assert (predictor.active.calibration.codes >= 0).all()


def test_a_later_training_set_of_probabilities_alone_is_learned():
    X, labels, probs = stream(80, share=1.0)
    trains = training_mask("interleaved", 0, 80, 0.7)
    for i in [*range(40), *(40 + np.flatnonzero(~trains[40:]))]:
        labels[i], probs[i] = "ab"[i % 2], math.nan
    config = ProtocolConfig(
        **BASE, window=40, refit_every=40, refit_lag=0, maps=("implied", "platt")
    )
    predictor = OnlinePredictor(config)
    predictor.step_many(X, labels, probs)
    low, high = (predictor.step(Example(x)) for x in ([-2.0] * 3, [2.0] * 3))
    assert (low.svm_label, high.svm_label) == ("a", "b")
    assert low.maps["implied"] == (0.5, 0.5)  # no label was there to vote on


@pytest.mark.parametrize("learner", ["svc", "psvm"])
def test_there_is_no_answer_before_something_was_trained_on(learner):
    X, labels, _ = stream(60, share=0.0)
    config = ProtocolConfig(
        classes=("a", "b"), learner=learner, train_fraction=0.01, refit_every=20
    )
    assert not training_mask("interleaved", 0, 60, 0.01).any()
    assert {p.status for p in rows(OnlinePredictor(config).step_many(X, labels))} == {"warming"}


@pytest.mark.parametrize("learner", ["svc", "psvm"])
@pytest.mark.parametrize("scale", ["standard", "none"])
def test_a_later_training_set_of_nothing_leaves_an_answer(learner, scale):
    X, labels, _ = stream(60, share=0.0)
    labels[:20] = ["a", "b"] * 10
    settings = {"window": 20, "refit_every": 20, "refit_lag": 0, "train_fraction": 0.1}
    config = ProtocolConfig(classes=("a", "b"), learner=learner, scale=scale, seed=12, **settings)
    trains = training_mask("interleaved", 0, 40, 0.1, seed=12)
    assert {labels[i] for i in np.flatnonzero(trains[:20])} == {"a", "b"}
    assert not trains[20:].any()
    answers = rows(OnlinePredictor(config).step_many(X, labels))
    assert answers[20].status == "ok"
    # One machine of the committee says -1, the others 0.
    assert answers[40].scores == ({"svc": -0.5, "psvm": -1.0}[learner],)
    assert answers[40].venn[0][0] == pytest.approx(labels[20:40].count("a") / 21)


def test_the_guarantee_is_approximate_while_probabilities_are_among_the_available():
    X, labels, _ = stream(200, share=0.0)
    probs = np.full(200, np.nan)
    probs[64], labels[64] = 0.5, None
    config = ProtocolConfig(**BASE, window=50, refit_every=20, refit_lag=0)
    answers = rows(OnlinePredictor(config).step_many(X, labels, probs))
    # Known from the 65th on, in the window of the refits at n = 80 and 100, no more at 120.
    expected = ["none"] * 10 + ["exact"] * 55 + ["approximate"] * 55 + ["exact"] * 80
    assert [p.guarantee for p in answers] == expected
    assert "probability instead of a label" in (answers[70].reason or "")


def test_with_probabilities_alone_nothing_is_claimed():
    X, _, _ = stream(60)
    predictor = OnlinePredictor(ProtocolConfig(**BASE, refit_every=20))
    answers = rows(predictor.step_many(X, [None] * 60, np.linspace(0.0, 1.0, 60)))
    assert {p.status for p in answers} == {"warming"}
    assert predictor.n == 60


@pytest.mark.parametrize("settings", [{"eta": 0.5}, {"eta": 0.0}, {"C_prob": 0.0}])
def test_a_tube_that_cannot_be_is_refused_by_name(settings):
    with pytest.raises(ValueError, match=next(iter(settings))):
        ProtocolConfig(**BASE, **settings)
