"""The interval of the primary prediction: bins, counts and shifts, against a literal loop."""

import numpy as np
import pytest
from predictor_answers import blocks, stream
from scipy import stats
from scipy.special import expit, logit

from online_svm.errors import InvalidSnapshot
from online_svm.predictor.expert import RowsToLearn
from online_svm.predictor.expert_intervals import MIN_ORIGINALS
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.predictor.pending_examples import AnswerTimeOutputs
from online_svm.predictor.protocol import ProtocolConfig
from online_svm.predictor.recent_interval import (
    COUNT_EVERY,
    DELAYED_MISS_SHARE,
    MAX_COUNTED_EXAMPLES,
    MISS_SHARE,
    MOVED_EXAMPLES,
    N_BINS,
    RecentIntervals,
)
from online_svm.stream.labels import ClassView

LEVEL, THREE = 0.9, ClassView("abc", True)


def sample(n, n_classes=3, seed=0):
    """Return columns, some without a label, and probabilities; some of these are alike."""
    rng = np.random.default_rng(seed)
    point = rng.dirichlet(np.full(n_classes, 0.4), n)
    point[:: n // 40 + 1] = 1.0 / n_classes
    columns = (rng.random((n, 1)) > point.cumsum(axis=1)).sum(axis=1).clip(max=n_classes - 1)
    columns[rng.random(n) < 0.1] = -1
    return columns, point


def answered(held, columns, point):
    return np.stack(held.answer(columns, point), axis=-1)


def literally(p, said, came, missed=MISS_SHARE):
    """Return the interval of p, of what was said of a class and whether it came."""
    if not len(said):
        return 0.0, 1.0
    order = np.sort(said)
    weights = np.sqrt(order * (1.0 - order)).cumsum()
    edges = [order[weights * N_BINS >= weights[-1] * b][0] for b in range(1, N_BINS)]
    here = np.searchsorted(edges, p)
    alike = np.searchsorted(edges, said) == here
    if not alike.any():
        return 0.0, 1.0
    hits, total, middle = came[alike].sum(), alike.sum(), logit(said[alike].mean())
    tail = (1.0 - LEVEL) / 2.0 * missed
    low = stats.beta.ppf(tail, hits, total - hits + 1) if hits else 0.0
    high = stats.beta.ppf(1.0 - tail, hits + 1, total - hits) if hits < total else 1.0
    q = np.clip(p, 1e-6, 1.0 - 1e-6)
    below, above = here == 0 and logit(q) < middle, here == N_BINS - 1 and logit(q) > middle
    wider = abs(logit(q) - middle) if below or above else 0.0
    low, high = (
        expit(logit(q) + logit(end) - middle + move) for end, move in ((low, -wider), (high, wider))
    )
    moved = MOVED_EXAMPLES / len(said)
    return min(max(low - moved, 0.0), p), max(min(high + moved, 1.0), p)


@pytest.mark.parametrize(("late", "missed"), [(False, MISS_SHARE), (True, DELAYED_MISS_SHARE)])
@pytest.mark.parametrize("size", [7, 800])
def test_each_answer_is_the_shift_of_its_bin_among_the_last_labelled_whatever_the_cuts(
    size, late, missed
):
    columns, point = sample(800)
    held, parts = RecentIntervals(LEVEL, THREE, is_delayed=late), []
    for i in range(0, 800, size):
        parts.append(answered(held, columns[i : i + size], point[i : i + size]))
        state, held = held.state(), RecentIntervals(LEVEL, THREE, is_delayed=late)
        held.restore(state)
    found = np.concatenate(parts)
    learned, counted, due = [], [], 1
    for i in range(800):
        if i < 60 or i % 40 == 0:
            for y in range(3):
                came = columns[counted] == y
                expected = literally(point[i, y], point[counted, y], came, missed)
                assert found[i, y] == pytest.approx(expected, abs=1e-12)
        if columns[i] >= 0:
            learned.append(i)
        if len(learned) == due:
            counted = learned[len(learned) // 3 :][-MAX_COUNTED_EXAMPLES:]
            due += min(COUNT_EVERY, max(1, due // 4))
    assert len(learned) > MAX_COUNTED_EXAMPLES + COUNT_EVERY


def test_with_two_classes_one_interval_is_the_complement_of_the_other():
    columns, point = sample(400, n_classes=2)
    found = answered(RecentIntervals(LEVEL, ClassView("ab", True)), columns, point)
    assert found[:, 0] == pytest.approx(1.0 - found[:, 1, ::-1], abs=1e-12)
    counted = (columns >= 0).nonzero()[0]
    held = RecentIntervals(LEVEL, ClassView("ab", True))
    answered(held, columns, point)
    held.follow(held)  # counts all labels
    (last,) = answered(held, np.array([-1]), point[:1])
    counted = counted[len(counted) // 3 :]
    expected = literally(point[0, 1], point[counted, 1], columns[counted] == 1)
    assert last[1] == pytest.approx(expected, abs=1e-12)
    assert (found[..., 0] <= point).all()
    assert (point <= found[..., 1]).all()


def test_intervals_hold_probabilities_of_0_and_1():
    columns, point = np.zeros(300, dtype=np.int64), np.tile([1.0, 0.0, 0.0], (300, 1))
    found = answered(RecentIntervals(LEVEL, THREE), columns, point)
    assert np.isfinite(found).all()
    assert (found[..., 0] <= point).all()
    assert (point <= found[..., 1]).all()
    assert found[-1, 0, 0] > 0.97


@pytest.mark.parametrize("size", [400, 600, 900])
def test_a_class_that_becomes_known_was_never_said_and_the_others_keep_their_counts(size):
    before = RecentIntervals(LEVEL, ClassView("acd", False))
    columns, point = sample(size, 4)
    answered(before, columns, point)
    after = RecentIntervals(LEVEL, ClassView("acdb", False))
    after.follow(before)
    places = [0, 2, 3, 4]
    wider = np.zeros((size, 5))
    wider[:, places] = point
    learned = np.flatnonzero(columns >= 0)
    last = learned[len(learned) // 3 :][-MAX_COUNTED_EXAMPLES:]
    found = answered(after, np.full(size, -1), wider)
    for i in range(0, size, 50):
        for y, place in enumerate(places):
            expected = literally(point[i, y], point[last, y], columns[last] == y)
            assert found[i, place] == pytest.approx(expected, abs=1e-12)
    asked = answered(after, np.array([-1]), np.full((1, 5), 0.2))
    assert asked[0, 1].tolist() == [0.0, pytest.approx(1.0, abs=1e-3)]


def test_a_damaged_state_is_refused():
    held = RecentIntervals(LEVEL, THREE)
    answered(held, *sample(200))
    state = held.state()
    for damage in (
        {"columns": state["columns"] + 3},
        {"points": state["points"][:-1]},
        {"points": state["points"] * np.nan},
        {"low": state["low"][:, 1:]},
        {"edges": state["edges"][:2]},
        {"since": np.array([COUNT_EVERY - 1])},
        {"first": np.array([1])},
        {"first": np.array([-1])},
        {"outer": -state["outer"]},
        {"moved": -state["moved"]},
    ):
        with pytest.raises(InvalidSnapshot, match="RecentIntervals: "):
            RecentIntervals(LEVEL, THREE).restore(state | damage)


def test_what_was_said_outlives_a_model_and_an_answer_without_a_label_leaves_no_trace():
    config = ProtocolConfig(classes=("c0", "c1", "c2"), window=80, refit_every=40, refit_lag=0)
    predictor = OnlinePredictor(config)
    X, labels = stream(200, 3)
    said = blocks(predictor.step_many(X, labels))
    assert {block.model for block in said} >= {0, 1, 2, 3}
    held = RecentIntervals(0.9, THREE)
    codes = np.array([int(label[1]) for label in labels])
    for block in said:
        expected = answered(held, codes[block.n], block.point)
        np.testing.assert_array_equal(np.stack([block.lower, block.upper], axis=-1), expected)
    kept = predictor.active.state().arrays
    predictor.step_many(X[:5], [None] * 5)
    for name, array in predictor.active.state().arrays.items():
        np.testing.assert_array_equal(array, kept[name])


def test_with_delayed_labels_the_answer_of_the_present_state_is_counted():
    """Not the answer that a much worse model gave before it."""
    config = {"classes": ("c0", "c1"), "window": 200, "refit_every": 40, "refit_lag": 0}
    X, labels = stream(300)
    late = OnlinePredictor(ProtocolConfig(**config, horizon=100))
    late.step_many(X[:299], labels[:299])
    expected = late.frozen().answer(X[199:200]).point  # example 199 is learned next
    given = blocks(late.step_many(X[299:], labels[299:]))
    assert len(given) == 1
    counted = counted_by(late)
    np.testing.assert_array_equal(counted[-1:], expected)
    at_once = OnlinePredictor(ProtocolConfig(**config))
    points = np.concatenate([block.point for block in blocks(at_once.step_many(X, labels))])
    np.testing.assert_array_equal(counted_by(at_once), points)


def counted_by(predictor, name="present"):
    return predictor._engine._experts._intervals.state()[f"{name}.points"]


def test_original_answers_count_once_enough_were_given_by_a_comparable_state():
    config = {"classes": ("c0", "c1"), "window": 200, "refit_every": 100, "refit_lag": 0}
    X, labels = stream(400)
    late = OnlinePredictor(ProtocolConfig(**config, horizon=100))
    late.step_many(X, labels)  # 300 are learned: the first, and those from 200 on, had half
    assert len(counted_by(late)) == 300
    assert len(counted_by(late, "originals")) == 101
    one = late._engine._experts._intervals
    for n in (MIN_ORIGINALS - 1, MIN_ORIGINALS):
        for name in ("present", "originals"):
            columns, point = sample(2 * n, 2)
            labelled = np.flatnonzero(columns >= 0)[:n]
            held = RecentIntervals(LEVEL, ClassView("ab", True))
            setattr(one, f"_{name}", held)
            far = 0.5 if name == "originals" else 1.0  # these were too certain
            answered(held, columns[labelled], 0.5 + far * (point[labelled] - 0.5))
        rows = RowsToLearn(X[:1], None, np.array([-1]), earlier(1))
        asked = np.array([[0.4, 0.6]])
        lower, upper = one.answer(asked, rows)
        ends = [
            answered(held, np.array([-1]), asked)[0].T for held in (one._present, one._originals)
        ]
        low, high = ends[0] if n < MIN_ORIGINALS else (
            np.minimum(ends[0][0], ends[1][0]), np.maximum(ends[0][1], ends[1][1])
        )  # fmt: skip
        np.testing.assert_array_equal([lower[0], upper[0]], [low, high])
    assert (ends[0][0] != low).any() or (ends[0][1] != high).any()


def earlier(m):
    """Return what is known of m rows that are not learned."""
    never, nowhere = np.zeros(m, dtype=bool), np.full(m, -1)
    return AnswerTimeOutputs(never, nowhere, [None] * m, never, np.zeros(m))
