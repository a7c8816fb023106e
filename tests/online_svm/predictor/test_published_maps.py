"""The published maps by name: what the predictor says is what each map says, fitted directly."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from online_svm import (
    EvidentialBinning,
    EvidentialIsotonic,
    EvidentialLogistic,
    PlattScaling,
    VennAbers,
)
from online_svm.calibration.one_against_all import OneAgainstAll
from online_svm.config import PredictorConfig
from online_svm.errors import InvalidInput, InvalidSnapshot
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.storage.arrays import nest, under
from online_svm.storage.container import pack, unpack
from online_svm.stream.input_batch import Example
from online_svm.stream.prediction import Intervals, Prediction, PredictionBlock, ValidityReport
from online_svm.types import Floats

MAPS: dict[str, Callable[[], Any]] = {
    "venn-abers": VennAbers,
    "evidential-binning": EvidentialBinning,
    "evidential-isotonic": EvidentialIsotonic,
    "evidential-logistic": EvidentialLogistic,
}


def stream(n: int, n_classes: int = 2) -> tuple[Floats, list[str | None]]:
    rng = np.random.default_rng(n_classes)
    codes = rng.integers(0, n_classes, n)
    return rng.normal(size=(n, 3)) + codes[:, None], [f"c{code}" for code in codes]


def config_of(*maps: str, **changes: Any) -> PredictorConfig:
    settings = {"maps": maps, "window": 80}
    return PredictorConfig.model_validate(settings | {"refit_every": 40} | changes)


def run(config: PredictorConfig, n_classes: int, size: int, n: int = 130) -> list[Any]:
    """Return all predictions and reports, and the last snapshot."""
    X, labels = stream(n, n_classes)
    predictor, out = OnlinePredictor(config), []
    for begin in range(0, n, size):
        out += rows(predictor.step_many(X[begin : begin + size], labels[begin : begin + size]))
    return [*out, predictor.snapshot()]


def answers_of(config: PredictorConfig, n: int = 90) -> list[Prediction]:
    return [p for p in run(config, 2, n, n) if isinstance(p, Prediction)]


def intervals_of(answer: Prediction) -> dict[str, Intervals]:
    assert answer.map_intervals is not None
    return answer.map_intervals


def rows(answers: list[PredictionBlock | ValidityReport]) -> list[Prediction | ValidityReport]:
    out: list[Prediction | ValidityReport] = []
    for answer in answers:
        if isinstance(answer, PredictionBlock):
            out += [answer.row(i) for i in range(len(answer))]
        else:
            out.append(answer)
    return out


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", MAPS)
def test_a_published_map_is_the_map_fitted_on_the_calibration_scores(
    name: str, n_classes: int
) -> None:
    X, labels = stream(160, n_classes)
    declared = tuple(f"c{k}" for k in range(n_classes))
    predictor = OnlinePredictor(config_of(name, classes=declared, refit_lag=0))
    predictor.step_many(X[:120], labels[:120])  # a refit has just taken effect
    active = predictor.active
    assert active is not None
    scores, codes = active.calibration.scores.copy(), active.calibration.codes.copy()
    answers = [predictor.step(Example(x)) for x in X[120:]]
    asked = np.array([answer.scores for answer in answers])
    points = np.array([answer.maps[name] for answer in answers])
    bounds = np.array([intervals_of(answer)[name] for answer in answers])
    first = n_classes - scores.shape[1]  # of two classes there is one map: of the second
    shares = np.empty((len(asked), scores.shape[1]))
    for column in range(scores.shape[1]):
        fitted = MAPS[name]().fit(scores[:, column], codes == first + column)
        shares[:, column] = fitted.predict(asked[:, column])
        interval = fitted.predict_interval(asked[:, column])
        np.testing.assert_array_equal(bounds[:, first + column], interval)
    if n_classes == 2:
        np.testing.assert_array_equal(points, np.column_stack((1.0 - shares, shares)))
        np.testing.assert_array_equal(bounds[:, 0], 1.0 - bounds[:, 1, ::-1])
    else:
        expected = shares / shares.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(points, expected, rtol=1e-14)


@pytest.mark.parametrize("model", ["likelihood", "confidence"])
def test_a_logistic_mass_has_the_same_bits_alone_and_in_company(model: str) -> None:
    rng = np.random.default_rng(3)
    scores = rng.normal(size=300)
    fitted = EvidentialLogistic(model).fit(scores, scores + rng.normal(size=300) > 0)  # type: ignore[arg-type]
    asked = np.concatenate([rng.normal(scale=3.0, size=1001), [0.0, -1e9, 1e300, -1e300]])
    together = fitted.mass(asked)
    for offset in range(4):
        np.testing.assert_array_equal(fitted.mass(asked[offset:]), together[offset:])
        np.testing.assert_array_equal(fitted.mass(asked[::-1][offset:]), together[::-1][offset:])
    alone = np.concatenate([fitted.mass(asked[i : i + 1]) for i in range(len(asked))])
    np.testing.assert_array_equal(alone, together)


def test_intervals_hold_the_points_of_two_classes_and_lie_within_the_unit_interval() -> None:
    answers = answers_of(config_of(*MAPS, classes=("c0", "c1")))[20:]
    assert all(answer.status == "ok" for answer in answers)
    for name in MAPS:
        bounds = np.array([intervals_of(answer)[name] for answer in answers])
        points = np.array([answer.maps[name] for answer in answers])
        assert (bounds >= 0.0).all()
        assert (bounds <= 1.0).all()
        assert (bounds[:, :, 0] <= points + 1e-15).all()
        assert (points <= bounds[:, :, 1] + 1e-15).all()


def test_nothing_is_known_of_the_slot_of_unseen_labels() -> None:
    answer = answers_of(config_of("venn-abers", "platt"))[-1]
    assert answer.classes == ("c0", "c1", None)
    assert intervals_of(answer)["venn-abers"][2] == (0.0, 1.0)
    assert answer.maps["venn-abers"][2] == 0.0
    assert set(intervals_of(answer)) == {"venn-abers"}


def test_there_are_no_map_intervals_where_no_map_gives_one() -> None:
    answers = answers_of(config_of("platt", "isotonic", "binning"))
    assert {answer.status for answer in answers} == {"warming", "ok"}
    assert all(answer.map_intervals is None for answer in answers)
    first = answers_of(config_of("platt", "venn-abers"))[0]
    assert (first.status, first.map_intervals) == ("warming", {})


def test_a_map_without_intervals_is_not_asked_for_any() -> None:
    fitted = OneAgainstAll(PlattScaling).fit([[-1.0], [1.0]], [0, 1])
    with pytest.raises(InvalidInput, match="PlattScaling: gives points"):
        fitted.predict_interval([[0.0]])


@pytest.mark.parametrize("name", ["temperature", "platt"])
def test_a_snapshot_whose_map_is_of_other_classes_is_refused(name: str) -> None:
    """Compiled code would read beyond the end of what such a map holds."""
    config = config_of("temperature", "platt")
    header, arrays = unpack(run(config, 3, 130)[-1])
    of_two = under(f"active.map.{name}", unpack(run(config, 2, 130)[-1]).arrays)
    kept = {key: a for key, a in arrays.items() if not key.startswith(f"active.map.{name}.")}
    damaged = pack(header, kept | nest(f"active.map.{name}", of_two))
    with pytest.raises(InvalidSnapshot, match="columns"):
        OnlinePredictor(config).restore(damaged)
