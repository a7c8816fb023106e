"""The headline of more than two classes: what is mixed, and how it continues."""

from itertools import pairwise
from typing import Any

import numpy as np

from online_svm import MatrixScaling, TemperatureScaling, VectorScaling
from online_svm.config import PredictorConfig
from online_svm.predictor.joint_headline import (
    N_COMPONENTS,
    RECENT,
    SHARE,
    JointHeadline,
    _recent_matrix,
)
from online_svm.predictor.mixture import Mixture
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.predictor.recent_map import RecentMap
from online_svm.stream.prediction import PredictionBlock
from online_svm.types import Floats


def stream(n: int, n_classes: int = 3) -> tuple[Floats, list[str]]:
    rng = np.random.default_rng(n_classes)
    codes = rng.integers(0, n_classes, n)
    X = rng.normal(size=(n, 2)) + 2.0 * np.column_stack((np.cos(codes * 2.1), np.sin(codes * 2.1)))
    return X, [f"c{code}" for code in codes]


def config_of(**changes: Any) -> PredictorConfig:
    settings = {"committee": "default", "window": 80, "refit_every": 40, "maps": ("platt",)}
    return PredictorConfig.model_validate(settings | changes)


DECLARED = ("c0", "c1", "c2")


def test_the_headline_mixes_the_maps_and_the_venn_point_by_how_well_they_did() -> None:
    X, labels = stream(160)
    config = config_of(classes=DECLARED, refit_lag=0)
    predictor = OnlinePredictor(config)
    predictor.step_many(X[:120], labels[:120])  # a refit has just taken effect
    active = predictor.active
    assert active is not None
    assert isinstance(active.headline, JointHeadline)
    mixture = Mixture.from_state(active.headline._mixture.state(), N_COMPONENTS, SHARE)
    recent = RecentMap.from_state(
        {k: v.copy() for k, v in active.headline._recent.state().items()},
        RECENT, _recent_matrix, MatrixScaling.from_state, 3,
    )  # fmt: skip
    assert np.ptp(mixture.weights) > 0.01
    scores, codes = active.calibration.scores.copy(), active.calibration.codes.copy()
    (block,) = (b for b in predictor.step_many(X[120:], labels[120:]) if len(b.n) == 40)

    def logs(s: Floats) -> Floats:
        return -np.log1p(np.exp(-s))

    components = [
        kind.fit(of(scores), codes).predict(of(block.scores))
        for kind, of in (
            (TemperatureScaling(), np.array),
            (VectorScaling(), np.array),
            (MatrixScaling(), np.array),
            (MatrixScaling(), logs),
        )
    ]
    truth = np.array([DECLARED.index(label) for label in labels[120:]])
    components.append(recent.answer(logs(block.scores), truth, components[0]))
    expected = mixture.answer([*components, block.venn_point], truth)
    np.testing.assert_allclose(block.point, expected, rtol=1e-9)
    assert block.method == "joint"


def test_the_weights_outlive_a_refit() -> None:
    X, labels = stream(120)
    predictor = OnlinePredictor(config_of(classes=DECLARED, refit_lag=0))
    weights = []
    for x, label in zip(X, labels, strict=True):
        predictor.step_many(x[None], [label])
        active = predictor.active
        if active is not None and isinstance(active.headline, JointHeadline):
            weights.append((active.version, active.headline._mixture.weights))
    refits = [k for k, (a, b) in enumerate(pairwise(weights)) if a[0] != b[0]]
    assert len(refits) > 5
    for k in refits:
        # One label moves a weight by no more than what its map gave it, plus the share.
        assert np.abs(weights[k + 1][1] - weights[k][1]).max() < 0.2
    assert np.ptp(weights[-1][1]) > 0.1


def test_the_interval_holds_the_probability_and_the_venn_hull() -> None:
    X, labels = stream(150)
    for block in OnlinePredictor(config_of(classes=DECLARED)).step_many(X, labels):
        if isinstance(block, PredictionBlock) and block.status == "ok":
            assert (block.lower <= block.point).all()
            assert (block.point <= block.upper).all()
            np.testing.assert_allclose(block.point.sum(axis=1), 1.0, rtol=1e-12)
            np.testing.assert_array_equal(block.label, block.point.argmax(axis=1))


def test_a_third_class_that_is_discovered_changes_the_method_at_a_refit() -> None:
    X, labels = stream(160)
    two = [label if label != "c2" else "c1" for label in labels[:80]]
    predictor = OnlinePredictor(config_of(refit_lag=0))
    methods = [
        (block.n[0], len(block.classes), block.method)
        for block in predictor.step_many(X, [*two, *labels[80:]])
        if isinstance(block, PredictionBlock) and block.status == "ok"
    ]
    assert {method for _, n_classes, method in methods if n_classes == 4} == {"joint"}
    assert "joint" not in {method for _, n_classes, method in methods if n_classes == 3}
    assert {n_classes for _, n_classes, _ in methods} == {3, 4}


def test_a_class_not_known_yet_has_the_share_of_the_venn_predictor() -> None:
    X, labels = stream(150)
    blocks = OnlinePredictor(config_of()).step_many(X, labels)
    last = [block for block in blocks if isinstance(block, PredictionBlock)][-1]
    assert last.classes == (*DECLARED, None)
    np.testing.assert_allclose(last.point[:, -1], last.venn_point[:, -1], rtol=1e-9)
