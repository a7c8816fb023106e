"""The promise of `exact` at the predictor: it holds at each step, and labels that calibrate have
no part in any score."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from exact_streams import (
    SETTINGS,
    SHARES,
    Calibrated,
    Case,
    answers_of,
    judged,
    stream,
)

from online_svm.config import PredictorConfig
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.predictor.refit_schedule import RefitSchedule
from online_svm.stream.prediction import Prediction, PredictionBlock
from online_svm.stream.split import training_mask

EARLY = (5, 10, 11, 12, 15, 20, 21, 25, 40, 41)
CASES = [
    ("class", "5 %"), ("class-quantile", "50 %"), ("class-rank", "four classes"),
    ("venn-abers", "50 %"), ("committee, venn-abers", "50 %"),
]  # fmt: skip


def early(taxonomy: str, kind: str, draws: int = 700) -> Calibrated:
    case = Case(SHARES[kind], SETTINGS[taxonomy], draws, EARLY)
    return judged(taxonomy, EARLY, answers_of(case, chunks=1))


@pytest.mark.parametrize(("taxonomy", "kind"), CASES)
def test_what_is_called_exact_is_calibrated_at_each_early_step(taxonomy: str, kind: str) -> None:
    found = early(taxonomy, kind)
    assert found.cells > 0
    assert found.holds, str(found)


def test_the_simulation_sees_that_the_first_refit_waited_for_labels_that_calibrate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def by_window(schedule: RefitSchedule, start: int, n: int) -> bool:
        return len(np.unique(schedule._examples.codes(start, n))) > 1

    monkeypatch.setattr(RefitSchedule, "_can_train", by_window)
    found = early("class", "5 %", draws=1200)
    assert not found.holds, str(found)


def judged_cases() -> Iterator[tuple[str, str, int]]:
    """Yield configuration, kind of stream, and as many streams as its means need to be judged."""
    for name, kind in itertools.product(SETTINGS, SHARES):
        if "venn-abers" in name and len(SHARES[kind]) > 2:
            continue  # a pair a class against the rest: no guarantee
        if not name.startswith("committee"):
            yield name, kind, 6000 if kind == "1 %" else 1000
        elif kind != "1 %":  # which would take a committee an hour
            yield name, kind, 1500 if kind == "5 %" else 500


OFTEN = (
    ("class", "5 %"), ("class-quantile", "50 %"), ("class-rank", "four classes"), ("margin", "1 %"),
    ("venn-abers", "50 %"), ("committee, class-rank", "50 %"),
)  # fmt: skip
"""Cases that CI computes: each taxonomy, each kind of stream and a committee, once."""


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("name", "kind", "draws"), [case for case in judged_cases() if case[:2] in OFTEN]
)
def test_what_is_called_exact_is_calibrated_from_5_to_200_examples_over_many_streams(
    name: str, kind: str, draws: int, tell_line: Callable[[Calibrated], None]
) -> None:
    check_calibrated(name, kind, draws, tell_line)


@pytest.mark.scale
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("name", "kind", "draws"), [case for case in judged_cases() if case[:2] not in OFTEN]
)
def test_so_it_is_for_every_other_taxonomy_and_kind_of_stream(
    name: str, kind: str, draws: int, tell_line: Callable[[Calibrated], None]
) -> None:
    check_calibrated(name, kind, draws, tell_line)


def check_calibrated(
    name: str, kind: str, draws: int, tell_line: Callable[[Calibrated], None]
) -> None:
    case = Case(SHARES[kind], SETTINGS[name], draws)
    found = judged(f"{name}, {kind}", case.steps, answers_of(case))
    tell_line(found)
    assert found.cells > 0
    assert found.holds, str(found)


def answers(
    X: np.ndarray, codes: np.ndarray, classes: int, settings: dict[str, Any]
) -> list[PredictionBlock]:
    # An alarm, which the labels that calibrate may raise, would cut a block.
    config = PredictorConfig(
        classes=tuple(f"c{k}" for k in range(classes)),
        train_fraction=0.7,
        monitors="off",
        **settings,
    )
    said = OnlinePredictor(config).step_many(X, [f"c{code}" for code in codes])
    return [block for block in said if isinstance(block, PredictionBlock)]


@pytest.mark.parametrize(
    "settings",
    [
        *(SETTINGS[name] | {"refit_every": 50} for name in SETTINGS),
        {"refit_every": 60, "window": 100, "class_weight": "balanced", "committee": "single"},
    ],
)
@pytest.mark.parametrize("shares", [(0.93, 0.07), (0.4, 0.3, 0.2, 0.1)])
def test_no_score_depends_on_a_label_that_calibrates(
    settings: dict[str, Any], shares: tuple[float, ...]
) -> None:
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X, codes = stream(rng, 260, shares)
        trains = training_mask("interleaved", 0, len(X), 0.7)
        changed = np.where(trains, codes, rng.integers(0, len(shares), len(X)))
        assert (changed != codes).any()
        here, there = (answers(X, y, len(shares), settings) for y in (codes, changed))
        for a, b in zip(here, there, strict=True):
            assert a.status == b.status
            assert a.scores.tobytes() == b.scores.tobytes()
            assert (a.model, a.taxonomy) == (b.model, b.taxonomy)


@pytest.mark.parametrize("window", [60, None])
def test_the_guarantee_is_approximate_while_an_entry_without_a_label_lies_in_the_window(
    window: int | None,
) -> None:
    X, codes = stream(np.random.default_rng(0), 240, (0.5, 0.5))
    labels: list[str | None] = [f"c{code}" for code in codes]
    labels[100] = labels[130] = None
    config = PredictorConfig(
        classes=("c0", "c1"), window=window, refit_every=50, committee="single"
    )
    rows = said(OnlinePredictor(config), X, labels, 240)
    kinds = [row.guarantee for row in rows]
    begins = kinds.index("exact")
    # Each is answered as the others before it. The 131st came after 129 learned ones.
    until = 240 if window is None else 131 + window
    expected = ["exact"] * 101 + ["approximate"] * (until - 101) + ["exact"] * (240 - until)
    assert kinds == ["none"] * begins + expected[begins:]
    assert "without a label lies in the window" in (rows[150].reason or "")
    assert said(OnlinePredictor(config), X, labels, 7) == rows  # whatever the batches
    before, after = OnlinePredictor(config), OnlinePredictor(config)
    said(before, X[:120], labels[:120], 120)
    after.restore(before.snapshot())
    assert said(after, X[120:], labels[120:], 120) == rows[120:]


def said(
    predictor: OnlinePredictor, X: np.ndarray, labels: list[str | None], size: int
) -> list[Prediction]:
    found: list[Prediction] = []
    for begin in range(0, len(X), size):
        for block in predictor.step_many(X[begin : begin + size], labels[begin : begin + size]):
            if isinstance(block, PredictionBlock):
                found += [block.row(i) for i in range(len(block))]
    return found
