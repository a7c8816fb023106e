"""The predictor with a committee: what its scores and its headline may depend on."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from online_svm.config import PredictorConfig
from online_svm.predictor.mixture import Mixture
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.predictor.pair_headline import COMPONENTS, SHARE
from online_svm.stream.prediction import PredictionBlock
from online_svm.stream.split import training_mask

Stream = tuple[NDArray[np.float64], list[str]]


def stream(n: int, n_classes: int, seed: int = 0) -> Stream:
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, n_classes, n)
    X = rng.normal(size=(n, 4))
    X[:, 0] += 1.5 * codes
    return X, [f"c{code}" for code in codes]


def blocks(config: PredictorConfig, X: Any, labels: list[str]) -> list[PredictionBlock]:
    answers = OnlinePredictor(config).step_many(X, labels)
    return [a for a in answers if isinstance(a, PredictionBlock) and a.status == "ok"]


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("changed", ["shuffled", "reversed", "one class"])
@pytest.mark.parametrize("weight", [None, "balanced"])
def test_labels_that_calibrate_change_no_bit_of_any_score(
    n_classes: int, changed: str, weight: Any
) -> None:
    """So calibration examples and the next one are exchangeable, given the model."""
    classes = tuple(f"c{k}" for k in range(n_classes))
    config = PredictorConfig(
        classes=classes, window=150, refit_every=40, refit_lag=7,
        class_weight=weight,
    )  # fmt: skip
    X, labels = stream(500, n_classes)
    trains = training_mask("interleaved", 0, 500, config.training_share, config.seed)
    outside = np.flatnonzero(~trains)
    values = {
        "shuffled": list(np.random.default_rng(1).permutation(np.array(labels)[outside])),
        "reversed": [labels[i] for i in outside[::-1]],
        "one class": ["c0"] * len(outside),
    }[changed]
    other = list(labels)
    for i, label in zip(outside, values, strict=True):
        other[i] = str(label)
    assert other != labels
    before, after = blocks(config, X, labels), blocks(config, X, other)
    scores = np.concatenate([block.scores for block in before])
    np.testing.assert_array_equal(scores, np.concatenate([block.scores for block in after]))
    assert len(np.unique(scores)) > 300
    # The calibrated probabilities do depend on them.
    assert any((a.point != b.point).any() for a, b in zip(before, after, strict=True))


def test_the_headline_of_two_classes_mixes_the_stack_and_what_the_pair_makes_of_it() -> None:
    X, labels = stream(400, 2)
    config = PredictorConfig(classes=("c0", "c1"), window=200, refit_every=50)
    mixture = Mixture(COMPONENTS, SHARE)  # one for all models
    points, mixed = [], []
    for block in blocks(config, X, labels):
        stacked = 1.0 / (1.0 + np.exp(-block.scores[:, 0]))
        clipped = np.clip(stacked, block.venn_lower[:, 1], block.venn_upper[:, 1])
        mean = 0.5 * (block.venn_lower[:, 1] + block.venn_upper[:, 1])
        parts = [np.stack([1.0 - p, p], axis=1) for p in (stacked, clipped, mean)]
        codes = np.array([int(labels[n][1]) for n in block.n])
        mixed.append(mixture.answer(parts, codes)[:, 1])
        points.append(block.point[:, 1])
        np.testing.assert_allclose(block.point.sum(axis=1), 1.0, rtol=1e-15)
        assert (block.lower <= block.point).all()
        assert (block.point <= block.upper).all()
        assert (block.method, block.guarantee) == ("venn-abers-mixed", "exact")
    found, expected = np.concatenate(points), np.concatenate(mixed)
    # The maps of recent scores say nothing before they have fifty of them.
    np.testing.assert_allclose(found[:50], expected[:50], rtol=1e-9)
    assert 0.0 < np.abs(found[50:] - expected[50:]).mean() < 0.05


def test_a_class_that_is_discovered_changes_the_method_at_the_next_refit() -> None:
    X, labels = stream(300, 3)
    labels = [label if i >= 150 or label != "c2" else "c0" for i, label in enumerate(labels)]
    config = PredictorConfig(window=200, refit_every=50)
    made = blocks(config, X, labels)
    for block in made:
        known = len([label for label in block.classes if label is not None])
        assert block.scores.shape[1] == (1 if known == 2 else known)
        assert block.classes[-1] is None
        assert (block.point[:, -1] <= block.upper[:, -1]).all()
    methods = [block.method for block in made]
    assert methods[0] == "venn-abers-mixed" != methods[-1]


def test_a_committee_of_one_linear_machine_learns_a_linear_rule_and_no_other() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    linear = np.where(X[:, 0] > 0, "c1", "c0").tolist()
    product = np.where(X[:, 0] * X[:, 1] > 0, "c1", "c0").tolist()
    accuracy = {}
    for name, labels in (("linear", linear), ("product", product)):
        for member in ("logistic", "rbf", "cauchy"):
            config = PredictorConfig(
                classes=("c0", "c1"), refit_every=100, refit_lag=0, committee=(member,)
            )
            last = blocks(config, X, labels)[-1]
            said = np.where(last.scores[:, 0] > 0, "c1", "c0")
            accuracy[name, member] = np.mean(said == np.array(labels)[last.n])
    assert accuracy["linear", "logistic"] > 0.95
    assert accuracy["product", "logistic"] < 0.7
    assert min(accuracy["product", "rbf"], accuracy["product", "cauchy"]) > 0.85


def test_values_however_large_give_finite_answers() -> None:
    X, labels = stream(300, 2)
    X[200::20] *= 1e200
    X[210::20, 1] = -1e308
    for scale in ("standard", "none"):
        config = PredictorConfig(classes=("c0", "c1"), window=150, refit_every=40, scale=scale)  # type: ignore[arg-type]
        for block in blocks(config, X, labels):
            assert np.isfinite(block.scores).all()
            assert np.isfinite(block.point).all()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_snapshot_while_a_refit_is_under_way_changes_no_later_answer(n_classes: int) -> None:
    """It waits for the next model, while the present one goes on answering."""
    X, labels = stream(400, n_classes)
    classes = tuple(sorted(set(labels)))
    config = PredictorConfig(classes=classes, window=100, refit_every=50, refit_lag=40)
    undisturbed, disturbed = OnlinePredictor(config), OnlinePredictor(config)
    for i in range(0, 400, 10):
        expected = undisturbed.step_many(X[i : i + 10], labels[i : i + 10])
        found = disturbed.step_many(X[i : i + 10], labels[i : i + 10])
        disturbed.snapshot()
        for one, other in zip(expected, found, strict=True):
            if isinstance(one, PredictionBlock) and isinstance(other, PredictionBlock):
                np.testing.assert_array_equal(one.scores, other.scores)
                np.testing.assert_array_equal(one.point, other.point)
