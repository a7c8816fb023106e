"""The mixed probability: the identity of the Bayes mixture, the share, and the same bytes."""

import math
from typing import Any

import numpy as np
import pytest
from session_steps import OwnRefits

from online_svm.config import PredictorConfig
from online_svm.errors import InvalidSnapshot
from online_svm.predictor import mixture
from online_svm.predictor.mixture import FLOOR, Mixture
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.stream.prediction import PredictionBlock, ValidityReport
from online_svm.types import Floats

MAPS = ("platt", "mixed", "isotonic", "binning")


def stream(n: int, n_classes: int = 2) -> tuple[Floats, list[str | None]]:
    rng = np.random.default_rng(n_classes)
    codes = rng.integers(0, n_classes, n)
    return rng.normal(size=(n, 3)) + codes[:, None], [f"c{code}" for code in codes]


def config_of(**changes: Any) -> PredictorConfig:
    settings = {"maps": MAPS, "window": 80, "refit_every": 40, "metrics_every": 20}
    return PredictorConfig.model_validate(settings | changes)


def declared(n_classes: int = 2, **changes: Any) -> PredictorConfig:
    return config_of(classes=[f"c{code}" for code in range(n_classes)], **changes)


def run(predictor: OnlinePredictor, X: Floats, labels: list[str | None], size: int) -> list[Any]:
    out: list[Any] = []
    for begin in range(0, len(X), size):
        for answer in predictor.step_many(X[begin : begin + size], labels[begin : begin + size]):
            is_block = isinstance(answer, PredictionBlock)
            out += [answer.row(i) for i in range(len(answer))] if is_block else [answer]
    return out


def clipped(row: Floats) -> Floats:
    low = row < FLOOR
    rest = row * (1.0 - low.sum() * FLOOR) / row[~low].sum()
    return np.where(low, FLOOR, rest) if low.any() else row


def of_truth(config: PredictorConfig, n: int, n_classes: int) -> dict[str, Floats]:
    """Return what each method gave the true label, clipped, at each answer after warm-up."""
    X, labels = stream(n, n_classes)
    found: dict[str, list[float]] = {}
    for prediction, label in zip(
        [p for p in run(OnlinePredictor(config), X, labels, n) if not _is_report(p)],
        labels,
        strict=True,
    ):
        if prediction.status == "warming":
            continue
        true = prediction.classes.index(label)
        for name, values in {"venn": prediction.probabilities, **prediction.maps}.items():
            row = np.array(values)
            value = row[true] if name == "mixed" else clipped(row)[true]
            found.setdefault(name, []).append(value)
    return {name: np.array(values) for name, values in found.items()}


def _is_report(answer: Any) -> bool:
    return isinstance(answer, ValidityReport)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_without_a_share_the_loss_is_that_of_the_mean_of_the_products(
    n_classes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mixture, "SHARE", 0.0)
    found = of_truth(declared(n_classes), 700, n_classes)
    loss = -np.log(found.pop("mixed")).sum()
    sums = np.array([np.log(values).sum() for values in found.values()])
    expected = -(sums.max() + math.log(np.exp(sums - sums.max()).mean()))
    assert len(sums) == 4
    assert loss == pytest.approx(expected, abs=1e-9)
    assert loss <= (-sums).min() + math.log(4) + 1e-9


def reference(components: Floats, codes: list[int], share: float) -> list[Floats]:
    """Weights as plain numbers, normalised at each label."""
    weights, mixed = np.full(len(components), 1.0 / len(components)), []
    for i, code in enumerate(codes):
        parts = np.array([clipped(row) for row in components[:, i]])
        mixed.append(weights @ parts)
        if code >= 0:
            weights = weights * parts[:, code]
            weights = (1.0 - share) * weights / weights.sum() + share / len(weights)
    return mixed


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 1.0])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_mixture_is_the_weighted_mean_with_weights_as_plain_numbers(
    share: float, n_classes: int
) -> None:
    rng = np.random.default_rng(0)
    components = rng.dirichlet(np.full(n_classes, 0.3), size=(3, 60))
    components[0, ::5] = np.eye(n_classes)[0]
    codes = rng.integers(-1, n_classes, 60)
    found = Mixture(3, share).answer(list(components), codes)
    np.testing.assert_allclose(found, reference(components, codes.tolist(), share), rtol=1e-11)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)


def test_with_a_share_it_follows_the_method_that_is_best_in_each_segment() -> None:
    good, bad = np.array([[0.1, 0.9]] * 500), np.array([[0.9, 0.1]] * 500)
    first, second = np.concatenate([good, bad]), np.concatenate([bad, good])
    ones = np.ones(1000, dtype=np.int64)
    loss = {}
    for share in (0.0, 0.001):
        found = Mixture(2, share).answer([first, second], ones)
        loss[share] = -np.log(found[:, 1]).sum()
    best_sequence = 1000 * -math.log(0.9)
    # One change of the best costs about ln(K / share), and the share itself n share.
    assert loss[0.001] - best_sequence < math.log(2) + math.log(2 / 0.001) + 1000 * 0.001
    assert loss[0.0] - best_sequence > 1000


def test_rows_without_a_tiny_probability_keep_their_bits() -> None:
    row = np.random.default_rng(0).dirichlet(np.ones(7), size=1)
    mixed = Mixture(1, 0.001).answer([row], np.array([-1]))
    np.testing.assert_array_equal(mixed, row)


def test_a_certain_method_is_clipped_and_can_recover_from_an_error() -> None:
    certain, even = np.array([[0.0, 1.0]] * 40), np.full((40, 2), 0.5)
    columns = np.array([0, *[1] * 39])
    mixed = Mixture(2, 0.0).answer([certain, even], columns)
    assert mixed[0].tolist() == pytest.approx([0.25 + FLOOR / 2, 0.75 - FLOOR / 2], abs=1e-15)
    assert mixed[1, 1] == pytest.approx(0.5, abs=1e-5)
    assert mixed[-1, 1] > 0.999


def test_weights_survive_a_hundred_thousand_bad_answers() -> None:
    wrong, worse = np.full((100_000, 2), [1.0, 0.0]), np.full((100_000, 2), [1.0 - 1e-9, 1e-9])
    mixture = Mixture(2, 0.0)
    mixed = mixture.answer([wrong, worse], np.ones(100_000, dtype=np.int64))
    np.testing.assert_allclose(mixed[:, 1], FLOOR, rtol=1e-9)
    assert mixture.weights.tolist() == [0.5, 0.5]


def test_the_rows_of_a_million_classes_still_sum_to_one() -> None:
    row = np.zeros((1, 1_000_000))
    row[0, 3] = 1.0
    mixed = Mixture(1, 0.0).answer([row], np.array([5]))
    assert mixed.sum() == pytest.approx(1.0, abs=1e-9)
    assert mixed.min() > 0.0


def test_a_refit_in_another_process_changes_no_bit_of_mixed() -> None:
    X, labels = stream(150)
    inline = OnlinePredictor(declared())
    expected = run(inline, X, labels, 20)
    with OwnRefits(declared()) as refitter:
        apart = OnlinePredictor(declared(), refitter)
        assert run(apart, X, labels, 20) == expected
        assert apart.snapshot() == inline.snapshot()


def test_mixed_changes_nothing_else_and_is_reported_like_the_other_maps() -> None:
    X, labels = stream(200)
    with_it = run(OnlinePredictor(declared()), X, labels, 200)
    without = declared(maps=("platt", "isotonic", "binning"))
    for answer, plain in zip(with_it, run(OnlinePredictor(without), X, labels, 200), strict=True):
        names = list(answer.maps)
        assert names == [] or names == ["platt", "isotonic", "binning", "mixed"]
        kept = {name: values for name, values in answer.maps.items() if name != "mixed"}
        assert kept == plain.maps
        if not _is_report(answer):
            assert (answer.probabilities, answer.guarantee) == (
                plain.probabilities,
                plain.guarantee,
            )
    last = [answer for answer in with_it if _is_report(answer)][-1]
    losses = {name: report.log_loss for name, report in last.maps.items()}
    assert losses["mixed"] < max(losses.values())


def test_only_labelled_examples_answered_after_warming_change_the_weights() -> None:
    X, labels = stream(60)
    predictor = OnlinePredictor(declared())
    assert predictor._answerer._mixture is not None
    run(predictor, X[:10], labels[:10], 1)
    assert predictor._answerer._mixture.weights.tolist() == [0.25] * 4
    run(predictor, X[10:30], [None] * 20, 1)
    assert predictor._answerer._mixture.weights.tolist() == [0.25] * 4
    run(predictor, X[30:], labels[30:], 1)
    assert len(set(predictor._answerer._mixture.weights.tolist())) > 1


def test_the_slot_of_unseen_labels_has_the_share_of_the_venn_predictor_and_the_floors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(mixture, "SHARE", 0.0)
    X, labels = stream(60)
    predictor = OnlinePredictor(config_of(committee="single"))
    run(predictor, X, labels, 60)
    assert predictor._answerer._mixture is not None
    weights = predictor._answerer._mixture.weights
    (block,) = [b for b in predictor.step_many(X[:1], [None]) if isinstance(b, PredictionBlock)]
    expected = weights[0] * block.point[0, 2] + weights[1:].sum() * FLOOR
    assert block.maps["mixed"][0, 2] == pytest.approx(expected, rel=1e-9)
    run(predictor, X[:1], ["new"], 1)
    assert predictor._answerer._mixture.weights[0] > weights[0]


def test_the_map_of_a_psvm_is_mixed_as_well() -> None:
    X, labels = stream(120)
    config = declared(learner="psvm", maps=("mixed", "platt"))
    predictor = OnlinePredictor(config)
    answer = run(predictor, X, labels, 120)[-2]
    assert list(answer.maps) == ["platt", "psvm", "mixed"]
    assert predictor._answerer._mixture is not None
    assert len(predictor._answerer._mixture.weights) == 3


def test_mixed_alone_is_the_clipped_venn_predictor() -> None:
    X, labels = stream(90)
    for answer in run(OnlinePredictor(declared(maps=("mixed",))), X, labels, 90):
        if not _is_report(answer) and answer.status == "ok":
            assert answer.maps["mixed"] == answer.probabilities


def test_weights_of_another_number_of_methods_are_refused() -> None:
    with pytest.raises(InvalidSnapshot, match="logs"):
        Mixture.from_state(Mixture(2, 0.0).state(), 3, 0.0)


@pytest.mark.parametrize("weight", [np.nan, np.inf, -np.inf])
def test_weights_that_are_not_finite_are_refused(weight: float) -> None:
    with pytest.raises(InvalidSnapshot, match="out of range"):
        Mixture.from_state({"logs": np.array([0.0, weight])}, 2, 0.0)
