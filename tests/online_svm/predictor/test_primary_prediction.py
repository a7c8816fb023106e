"""What every headline keeps to, the experts of its model, and how a report scores it."""

from copy import deepcopy

import numpy as np
import pytest
from predictor_answers import answered, answers_of_model, blocks, reports

from online_svm import MatrixScaling, TemperatureScaling, VectorScaling
from online_svm.metrics.scores import accuracy, brier, log_loss
from online_svm.predictor.joint_prediction import JointPrediction
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.predictor.protocol import ProtocolConfig
from online_svm.predictor.recent_stacks import STACKS
from online_svm.stream.answer_columns import COLUMNS

SHORT = {"window": 80, "refit_every": 40, "refit_lag": 0, "metrics_every": 240}
TWO, THREE = {"classes": ("a", "b")}, {"classes": ("a", "b", "c")}
CONFIGS = {
    "single": TWO | {"committee": "single"},
    "single without a level": TWO | {"committee": "single", "interval_level": None},
    "single of three": THREE | {"committee": "single", "interval_level": 0.8},
    "committee": TWO | {"committee": "default"},
    "committee of three": THREE | {"committee": "default"},
    "oldest": TWO | {"split": "oldest"},
    "oldest of three": THREE | {"split": "oldest"},
    "discovered": {"committee": "default"},
}


def stream(names, count=240):
    """Return rows and labels, the last of the names only in the second half."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, len(names), count)
    codes[: count // 2] %= max(2, len(names) - 1)
    X = rng.normal(size=(count, 3))
    X[:, 0] += codes
    return X, [names[code] for code in codes]


@pytest.fixture(scope="module", params=CONFIGS)
def run(request):
    config = ProtocolConfig(**SHORT, **CONFIGS[request.param])
    X, labels = stream(config.classes or ("a", "b", "c"))
    answers = OnlinePredictor(config).step_many(X, labels)
    return config, blocks(answers, "ok"), labels, reports(answers)


def test_the_interval_of_an_answer_holds_its_probability_and_the_label_has_the_largest(run):
    config, answers, *_ = run
    for block in answers:
        assert block.interval_level == config.interval_level
        assert (block.lower >= 0).all()
        assert (block.lower <= block.point).all()
        assert (block.point <= block.upper).all()
        assert (block.upper <= 1).all()
        np.testing.assert_allclose(block.point.sum(axis=1), 1.0, atol=1e-12)
        assert (block.label == block.point.argmax(axis=1)).all()
        assert (block.venn_lower <= block.venn_point).all()
        assert (block.venn_point <= block.venn_upper).all()


def test_a_headline_of_the_venn_predictor_is_its_mean_and_without_a_level_its_hull(run):
    for block in run[1]:
        if block.method == "venn":
            assert (block.point == block.venn_point).all()
            if block.interval_level is None:
                assert (block.lower == block.venn_lower).all()
                assert (block.upper == block.venn_upper).all()


def test_a_report_scores_headline_and_venn_predictor_each_by_its_own_probabilities(run):
    config, answers, labels, (report,) = run
    if config.classes is None:
        return  # the columns of its blocks are not the same throughout
    codes = np.array([config.classes.index(labels[n]) for block in answers for n in block.n])
    assert report.scored == len(codes) > 150
    for found, source in ((report.headline, ""), (report.venn, "venn_")):
        point, lower, upper = (
            np.concatenate([getattr(block, source + part) for block in answers])
            for part in ("point", "lower", "upper")
        )
        chosen = np.arange(len(codes)), point.argmax(axis=1)
        assert found.log_loss == pytest.approx(log_loss(point, codes), rel=1e-12)
        assert found.brier == pytest.approx(brier(point, codes), rel=1e-12)
        assert found.predicted.accuracy == accuracy(chosen[1], codes)
        assert found.predicted.probability == pytest.approx(point[chosen].mean(), rel=1e-12)
        assert found.predicted.lower == pytest.approx(lower[chosen].mean(), rel=1e-12)
        assert found.predicted.upper == pytest.approx(upper[chosen].mean(), rel=1e-12)


def test_every_method_that_an_answer_may_name_is_described(run):
    (column,) = [column for column in COLUMNS if column.name == "method"]
    for block in run[1]:
        assert f"`{block.method}`" in column.description


def around(n):
    """Return three classes around a centre."""
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 3, n)
    X = rng.normal(size=(n, 2)) + 2.0 * np.column_stack((np.cos(codes * 2.1), np.sin(codes * 2.1)))
    return X, codes, ["abc"[code] for code in codes]


def test_the_experts_of_more_classes_are_the_calibrators_and_the_venn_point(monkeypatch):
    X, truth, labels = around(160)
    predictor = OnlinePredictor(
        ProtocolConfig(**THREE, window=80, refit_every=40, refit_lag=0, maps=("platt",))
    )
    predictor.step_many(X[:120], labels[:120])  # a refit has just taken effect
    assert isinstance(predictor.active.primary, JointPrediction)
    recent = deepcopy(predictor.active.primary._recent)
    calibration = predictor.active.calibration
    scores, codes = calibration.scores.copy(), calibration.codes.copy()
    said = answers_of_model(monkeypatch)
    found = blocks(predictor.step_many(X[120:], labels[120:]))
    scored = np.concatenate([block.scores for block in found])

    def logs(s):
        return -np.log1p(np.exp(-s))

    expected = {
        name: kind.fit(of(scores), codes).predict(of(scored))
        for name, kind, of in (
            ("temperature", TemperatureScaling(), np.array),
            ("vector", VectorScaling(), np.array),
            ("matrix", MatrixScaling(), np.array),
            ("log-matrix", MatrixScaling(), logs),
        )
    }
    before_a_fit = expected["temperature"]
    expected["recent-matrix"] = recent.answer(logs(scored), truth[120:], before_a_fit)
    expected["venn"] = np.concatenate([block.venn_point for block in found])
    assert tuple(expected) == JointPrediction.outputs
    for name, points in expected.items():
        given = np.concatenate([answers[name] for answers in said])
        np.testing.assert_allclose(given, points, rtol=1e-9, err_msg=name)


def test_a_state_before_the_first_answer_with_another_class_is_restored():
    X, _, labels = around(100)
    labels[70:] = ["d" if i % 3 else label for i, label in enumerate(labels[70:])]
    config = ProtocolConfig(window=80, refit_every=20, refit_lag=0)
    whole, parts = OnlinePredictor(config), OnlinePredictor(config)
    sizes = set()
    for x, label in zip(X, labels, strict=True):
        expected, found = (one.step_many(x[None, :], [label]) for one in (whole, parts))
        assert [block.row(0) for block in blocks(found)] == [b.row(0) for b in blocks(expected)]
        data = parts.snapshot()
        parts = OnlinePredictor(config)
        parts.restore(data)
        assert parts.snapshot() == data
        sizes.add(0 if parts.active is None else len(parts.active.view.classes))
    assert sizes >= {4, 5}


def test_a_class_not_known_yet_has_the_share_of_the_venn_predictor(monkeypatch):
    X, _, labels = around(150)
    said = answers_of_model(monkeypatch)
    last = answered(ProtocolConfig(window=80, refit_every=40), X, labels)[-1]
    assert last.classes == ("a", "b", "c", None)
    assert said[-1].keys() == {*JointPrediction.outputs, *STACKS}
    for name, points in said[-1].items():
        np.testing.assert_allclose(points[:, -1], last.venn_point[:, -1], rtol=1e-9, err_msg=name)
