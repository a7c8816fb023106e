"""The mixed probability: weights as plain numbers, the identity of the Bayes mixture, the share."""

import math

import numpy as np
import pytest
from predictor_answers import reports, rows, said, stream

from online_svm.config import PredictorConfig
from online_svm.errors import InvalidSnapshot
from online_svm.predictor import mixture
from online_svm.predictor.mixture import FLOOR, SHARE, Mixture
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.stream.prediction import Prediction

SETTINGS = {
    "maps": ("platt", "mixed", "isotonic", "binning"), "window": 80, "refit_every": 40,
    "metrics_every": 20,
}  # fmt: skip


def config_of(n_classes, **changes):
    """Return settings that declare so many classes, or none for 0."""
    classes = [f"c{code}" for code in range(n_classes)] or None
    return PredictorConfig.model_validate(SETTINGS | {"classes": classes} | changes)


TWO = config_of(2)


def clipped(row):
    low = row < FLOOR
    rest = row * (1.0 - low.sum() * FLOOR) / row[~low].sum()
    return np.where(low, FLOOR, rest) if low.any() else row


def reference(components, codes, share):
    """Weights as plain numbers, normalised at each label; an example has a row of each method."""
    weights, mixed = None, []
    for parts, code in zip(components, codes, strict=True):
        parts = np.array([clipped(np.array(row)) for row in parts])
        weights = np.full(len(parts), 1.0 / len(parts)) if weights is None else weights
        mixed.append(weights @ parts)
        if code >= 0:
            weights = weights * parts[:, code]
            weights = (1.0 - share) * weights / weights.sum() + share / len(weights)
    return mixed


@pytest.mark.parametrize(
    ("n_classes", "changes", "names"),
    [
        (2, {}, ["platt", "isotonic", "binning", "mixed"]),
        (3, {}, ["platt", "isotonic", "binning", "mixed"]),
        (0, {"committee": "single"}, ["platt", "isotonic", "binning", "mixed"]),
        (2, {"learner": "psvm", "maps": ("mixed", "platt")}, ["platt", "psvm", "mixed"]),
        (2, {"maps": ("mixed",)}, ["mixed"]),
    ],
    ids=["two", "three", "discovered", "psvm", "alone"],
)
def test_what_is_published_mixes_the_headline_and_all_maps_by_their_labelled_answers(
    n_classes, changes, names
):
    """Of an answer to an unseen label too: no map gives it more than the floor."""
    X, labels = stream(150, n_classes or 2)
    given = [None if i % 7 == 3 else label for i, label in enumerate(labels)]
    if not n_classes:
        given[61] = "new"
    predictor = OnlinePredictor(config_of(n_classes, **changes))
    answers, codes, components = [], [], []
    for answer, label in zip(rows(predictor.step_many(X, given)), given, strict=True):
        if answer.status == "ok":
            assert list(answer.maps) == names
            answers.append(answer)
            components.append([answer.probabilities, *(answer.maps[name] for name in names[:-1])])
            known = label if label in answer.classes else None
            codes.append(-1 if label is None else answer.classes.index(known))
    expected = reference(components, codes, SHARE)
    for answer, mixed in zip(answers, expected, strict=True):
        np.testing.assert_allclose(answer.maps["mixed"], mixed, rtol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_without_a_share_the_loss_is_that_of_the_mean_of_the_products(n_classes, monkeypatch):
    monkeypatch.setattr(mixture, "SHARE", 0.0)
    X, labels = stream(700, n_classes)
    found = {}
    for answer in rows(OnlinePredictor(config_of(n_classes)).step_many(X, labels)):
        if answer.status == "ok":
            true = answer.classes.index(labels[answer.n])
            for name, values in {"venn": answer.probabilities, **answer.maps}.items():
                row = np.array(values)
                value = row[true] if name == "mixed" else clipped(row)[true]
                found.setdefault(name, []).append(value)
    loss = -np.log(found.pop("mixed")).sum()
    sums = np.array([np.log(values).sum() for values in found.values()])
    expected = -(sums.max() + math.log(np.exp(sums - sums.max()).mean()))
    assert len(sums) == 4
    assert loss == pytest.approx(expected, abs=1e-9)
    assert loss <= (-sums).min() + math.log(4) + 1e-9


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 1.0])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_mixture_is_the_weighted_mean_with_weights_as_plain_numbers(share, n_classes):
    rng = np.random.default_rng(0)
    components = rng.dirichlet(np.full(n_classes, 0.3), size=(3, 60))
    components[0, ::5] = np.eye(n_classes)[0]
    codes = rng.integers(-1, n_classes, 60)
    found = Mixture(3, share).answer(list(components), codes)
    np.testing.assert_allclose(
        found, reference(components.swapaxes(0, 1), codes, share), rtol=1e-11
    )
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)


def test_with_a_share_it_follows_the_method_that_is_best_in_each_segment():
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


def test_rows_without_a_tiny_probability_keep_their_bits():
    row = np.random.default_rng(0).dirichlet(np.ones(7), size=1)
    mixed = Mixture(1, 0.001).answer([row], np.array([-1]))
    np.testing.assert_array_equal(mixed, row)


def test_weights_survive_a_hundred_thousand_bad_answers():
    wrong, worse = np.full((100_000, 2), [1.0, 0.0]), np.full((100_000, 2), [1.0 - 1e-9, 1e-9])
    mixture = Mixture(2, 0.0)
    mixed = mixture.answer([wrong, worse], np.ones(100_000, dtype=np.int64))
    np.testing.assert_allclose(mixed[:, 1], FLOOR, rtol=1e-9)
    assert mixture.weights.tolist() == [0.5, 0.5]


def test_the_rows_of_a_million_classes_still_sum_to_one():
    row = np.zeros((1, 1_000_000))
    row[0, 3] = 1.0
    mixed = Mixture(1, 0.0).answer([row], np.array([5]))
    assert mixed.sum() == pytest.approx(1.0, abs=1e-9)
    assert mixed.min() > 0.0


def test_mixed_changes_nothing_else_and_is_reported_like_the_other_maps():
    X, labels = stream(200)
    with_it = said(OnlinePredictor(TWO), X, labels)
    without = TWO.model_copy(update={"maps": ("platt", "isotonic", "binning")})
    for answer, plain in zip(with_it, said(OnlinePredictor(without), X, labels), strict=True):
        names = list(answer.maps)
        assert names == [] or names == ["platt", "isotonic", "binning", "mixed"]
        kept = {name: values for name, values in answer.maps.items() if name != "mixed"}
        assert kept == plain.maps
        if isinstance(answer, Prediction):
            assert (answer.probabilities, answer.guarantee) == (
                plain.probabilities,
                plain.guarantee,
            )
    losses = {name: one.log_loss for name, one in reports(with_it)[-1].maps.items()}
    assert losses["mixed"] < max(losses.values())


def test_weights_of_another_number_of_methods_are_refused():
    with pytest.raises(InvalidSnapshot, match="logs"):
        Mixture.from_state(Mixture(2, 0.0).state(), 3, 0.0)


@pytest.mark.parametrize("weight", [np.nan, np.inf, -np.inf])
def test_weights_that_are_not_finite_are_refused(weight):
    with pytest.raises(InvalidSnapshot, match="out of range"):
        Mixture.from_state({"logs": np.array([0.0, weight])}, 2, 0.0)
