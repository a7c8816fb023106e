"""The promise of `exact` at the predictor: it holds at each step, and labels that calibrate have
no part in any score."""

import itertools

import numpy as np
import pytest
from exact_streams import SETTINGS, SHARES, Case, answers_of, judged, stream
from predictor_answers import blocks, rows, said

from online_svm.config import PredictorConfig
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.predictor.refit_schedule import RefitSchedule
from online_svm.stream.split import training_mask

EARLY = (5, 10, 11, 12, 15, 20, 21, 25, 40, 41)
CASES = [
    ("class", "5 %"), ("class-quantile", "50 %"), ("class-rank", "four classes"),
    ("venn-abers", "50 %"), ("committee, venn-abers", "50 %"),
]  # fmt: skip


def early(taxonomy, kind, draws=700, has_kinds=False):
    # No alarm is raised so early, and the bets that would raise it take as long as the answers.
    settings = SETTINGS[taxonomy] | {"monitors": "off"}
    case = Case(SHARES[kind], settings, draws, EARLY, has_kinds=has_kinds)
    return judged(taxonomy, EARLY, answers_of(case, chunks=1))


@pytest.mark.parametrize(("taxonomy", "kind"), CASES)
def test_what_is_called_exact_is_calibrated_at_each_early_step(taxonomy, kind):
    found = early(taxonomy, kind)
    assert found.cells > 0
    assert found.holds, str(found)


def test_so_it_is_for_rows_with_rare_categories_names_that_come_and_go_and_gaps():
    found = early("class-quantile", "50 %", draws=400, has_kinds=True)
    assert found.cells > 0
    assert found.holds, str(found)


def test_the_simulation_sees_that_the_first_refit_waited_for_labels_that_calibrate(monkeypatch):
    def by_window(schedule, start, n):
        return len(np.unique(schedule._examples.codes(start, n))) > 1

    monkeypatch.setattr(RefitSchedule, "_can_train", by_window)
    found = early("class", "5 %", draws=1200)
    assert not found.holds, str(found)


def judged_cases():
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
    name, kind, draws, tell_line
):
    check_calibrated(name, kind, draws, tell_line)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("name", "kind"),
    [("class", "5 %"), ("class-rank", "four classes"), ("venn-abers", "50 %"),
     ("committee, class-rank", "50 %")],
)  # fmt: skip
def test_rows_of_every_kind_are_calibrated_from_5_to_200_examples(name, kind, tell_line):
    check_calibrated(name, kind, 500, tell_line, has_kinds=True)


@pytest.mark.scale
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("name", "kind", "draws"), [case for case in judged_cases() if case[:2] not in OFTEN]
)
def test_so_it_is_for_every_other_taxonomy_and_kind_of_stream(name, kind, draws, tell_line):
    check_calibrated(name, kind, draws, tell_line)


def check_calibrated(name, kind, draws, tell_line, has_kinds=False):
    case = Case(SHARES[kind], SETTINGS[name], draws, has_kinds=has_kinds)
    title = f"{name}, {kind}" + ", every kind" * has_kinds
    found = judged(title, case.steps, answers_of(case))
    tell_line(found)
    assert found.cells > 0
    assert found.holds, str(found)


def answers(X, codes, classes, settings):
    # An alarm, which the labels that calibrate may raise, would cut a block.
    config = PredictorConfig(
        classes=tuple(f"c{k}" for k in range(classes)),
        train_fraction=0.7,
        monitors="off",
        **settings,
    )
    return blocks(OnlinePredictor(config).step_many(X, [f"c{code}" for code in codes]))


@pytest.mark.parametrize(
    "settings",
    [
        *(SETTINGS[name] | {"refit_every": 50} for name in SETTINGS),
        {"refit_every": 60, "window": 100, "class_weight": "balanced", "committee": "single"},
        {"refit_every": 40, "window": 150, "class_weight": "balanced", "refit_lag": 7},
    ],
)
@pytest.mark.parametrize("shares", [(0.93, 0.07), (0.4, 0.3, 0.2, 0.1)])
def test_no_score_depends_on_a_label_that_calibrates(settings, shares):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X, codes = stream(rng, 260, shares)
        trains = training_mask("interleaved", 0, len(X), 0.7)
        changed = np.where(trains, codes, rng.integers(0, len(shares), len(X)))
        assert (changed != codes).any()
        here, there = (answers(X, y, len(shares), settings) for y in (codes, changed))
        assert any((a.point != b.point).any() for a, b in zip(here, there, strict=True))
        for a, b in zip(here, there, strict=True):
            assert a.status == b.status
            assert a.scores.tobytes() == b.scores.tobytes()
            assert (a.model, a.taxonomy) == (b.model, b.taxonomy)


@pytest.mark.parametrize("window", [60, None])
def test_the_guarantee_is_approximate_while_an_entry_without_a_label_lies_in_the_window(window):
    X, codes = stream(np.random.default_rng(0), 240, (0.5, 0.5))
    labels = [f"c{code}" for code in codes]
    labels[100] = labels[130] = None
    config = PredictorConfig(
        classes=("c0", "c1"), window=window, refit_every=50, committee="single"
    )
    answers = rows(said(OnlinePredictor(config), X, labels))
    kinds = [row.guarantee for row in answers]
    begins = kinds.index("exact")
    # Each is answered as the others before it. The 131st came after 129 learned ones.
    until = 240 if window is None else 131 + window
    expected = ["exact"] * 101 + ["approximate"] * (until - 101) + ["exact"] * (240 - until)
    assert kinds == ["none"] * begins + expected[begins:]
    assert "without a label lies in the window" in (answers[150].reason or "")
    assert rows(said(OnlinePredictor(config), X, labels, 7)) == answers  # whatever the batches
    before, after = OnlinePredictor(config), OnlinePredictor(config)
    said(before, X[:120], labels[:120])
    after.restore(before.snapshot())
    assert rows(said(after, X[120:], labels[120:])) == answers[120:]
