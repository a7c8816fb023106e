"""The weights of an ensemble as plain numbers, their share, and the published "mixed"."""

import numpy as np
import pytest
from predictor_answers import rows, stream

from online_svm.config import PredictorConfig
from online_svm.errors import InvalidSnapshot
from online_svm.predictor.ensemble import CALIBRATORS_UPDATE, Ensemble, WeightUpdate
from online_svm.predictor.online_predictor import OnlinePredictor

FLOOR = 1e-6

SETTINGS = {
    "maps": ("platt", "mixed", "isotonic", "binning"), "window": 80, "refit_every": 40,
    "metrics_every": 20,
}  # fmt: skip


def config_of(n_classes, **changes):
    """Return settings that declare so many classes, or none for 0."""
    classes = [f"c{code}" for code in range(n_classes)] or None
    return PredictorConfig.model_validate(SETTINGS | {"classes": classes} | changes)


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
    expected = reference(components, codes, CALIBRATORS_UPDATE.share)
    for answer, mixed in zip(answers, expected, strict=True):
        np.testing.assert_allclose(answer.maps["mixed"], mixed, rtol=1e-9)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 1.0])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_mixture_is_the_weighted_mean_with_weights_as_plain_numbers(share, n_classes):
    rng = np.random.default_rng(0)
    components = rng.dirichlet(np.full(n_classes, 0.3), size=(3, 60))
    components[0, ::5] = np.eye(n_classes)[0]
    codes = rng.integers(-1, n_classes, 60)
    found = Ensemble(3, WeightUpdate(share)).answer(list(components), codes)
    np.testing.assert_allclose(
        found, reference(components.swapaxes(0, 1), codes, share), rtol=1e-11
    )
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)


def test_rows_without_a_tiny_probability_keep_their_bits():
    row = np.random.default_rng(0).dirichlet(np.ones(7), size=1)
    mixed = Ensemble(1, WeightUpdate(0.001)).answer([row], np.array([-1]))
    np.testing.assert_array_equal(mixed, row)


def test_weights_survive_a_hundred_thousand_bad_answers():
    wrong, worse = np.full((100_000, 2), [1.0, 0.0]), np.full((100_000, 2), [1.0 - 1e-9, 1e-9])
    experts = Ensemble(2, WeightUpdate(0.0))
    mixed = experts.answer([wrong, worse], np.ones(100_000, dtype=np.int64))
    np.testing.assert_allclose(mixed[:, 1], FLOOR, rtol=1e-9)
    assert experts.weights.tolist() == [0.5, 0.5]


def test_the_rows_of_a_million_classes_still_sum_to_one():
    row = np.zeros((1, 1_000_000))
    row[0, 3] = 1.0
    mixed = Ensemble(1, WeightUpdate(0.0)).answer([row], np.array([5]))
    assert mixed.sum() == pytest.approx(1.0, abs=1e-9)
    assert mixed.min() > 0.0


@pytest.mark.parametrize("logs", [[0.0], [0.0, np.nan], [0.0, np.inf], [0.0, -np.inf]])
def test_weights_of_another_number_or_not_finite_are_refused(logs):
    with pytest.raises(InvalidSnapshot, match="logs"):
        Ensemble(2, CALIBRATORS_UPDATE).restore({"logs": np.array(logs)})
