"""The interval of the primary prediction: bins, counts and shifts, against a literal loop."""

import numpy as np
import pytest
from predictor_answers import blocks, stream
from scipy import stats
from scipy.special import expit, logit

from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.predictor.protocol import ProtocolConfig
from online_svm.predictor.recent_interval import (
    COUNT_EVERY,
    DELAYED_ERROR,
    MAX_COUNTED_EXAMPLES,
    MOVED_EXAMPLES,
    N_BINS,
    YOUNG,
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


BELIEVED, UNKNOWN_VARIANCE, NEWEST = 0.87, 5.0, 125  # as in recent_interval.c


def literally(p, said, came, n_labels, larger=1.0):
    """Return the interval of p, of what was said of a class and whether it came.

    `n_labels`: labels so far, of which `said` has the newest.
    """
    if not len(said):
        return 0.0, 1.0
    order = np.sort(said)
    weights = np.sqrt(order * (1.0 - order)).cumsum()
    edges = [order[weights * N_BINS >= weights[-1] * b][0] for b in range(1, N_BINS)]
    bins = np.searchsorted(edges, said)
    newest, residuals, variances = bins[-NEWEST:] // 2, (came - said)[-NEWEST:], said * (1 - said)
    r, v = (np.bincount(newest, part) for part in (residuals, variances[-NEWEST:]))
    squares = (v**2).sum() + 1e-12
    shown = (r**2 - v).sum() / squares - np.sqrt(2.0 / squares)
    spread, lines = larger * (1.0 + YOUNG / n_labels), []
    for b in np.unique(bins):
        alike = bins == b
        middle = np.clip(said[alike].mean(), 1e-6, 1.0 - 1e-6)
        noise = 1.0 / max(variances[alike].sum(), 1e-9)
        with np.errstate(divide="ignore"):
            near = abs(logit(said) - logit(middle)) <= 1.0
        error = spread / np.sqrt(variances[near].sum() + UNKNOWN_VARIANCE)
        off = logit((came[alike].sum() + 0.5) / (alike.sum() + 1)) - logit(middle)
        error = max(error, off**2 - noise, shown)
        weight = BELIEVED * error / (error + noise)
        centre = np.clip(middle + weight * (came - said)[alike].mean(), 1e-6, 1.0 - 1e-6)
        n = 1.0 / (centre * (1.0 - centre) * error * (1.0 - BELIEVED * weight))
        low = min(middle, stats.beta.ppf((1.0 - LEVEL) / 2.0, n * centre, n * (1.0 - centre) + 1.0))
        high = max(middle, stats.beta.ppf((1.0 + LEVEL) / 2.0, n * centre + 1.0, n * (1 - centre)))
        lines.append((
            middle, np.exp(logit(low) - logit(middle)), np.exp(logit(middle) - logit(high))
        ))  # fmt: skip
    means, lows, highs = map(np.array, zip(*lines, strict=True))
    q = np.clip(p, 1e-6, 1.0 - 1e-6)
    wider = max(logit(means[0]) - logit(q), logit(q) - logit(means[-1]), 0.0)
    with np.errstate(divide="ignore"):
        low = expit(logit(q) + np.log(np.interp(q, means, lows)) - wider)
        high = expit(logit(q) - np.log(np.interp(q, means, highs)) + wider)
    moved = MOVED_EXAMPLES / len(said)
    return min(max(low - moved, 0.0), p), max(min(high + moved, 1.0), p)


@pytest.mark.parametrize(("late", "larger"), [(False, 1.0), (True, DELAYED_ERROR)])
@pytest.mark.parametrize("size", [7, 800])
def test_each_answer_is_shifted_by_the_last_labelled_whatever_the_cuts(size, late, larger):
    columns, point = sample(800)
    held, parts = RecentIntervals(LEVEL, THREE, is_delayed=late), []
    for i in range(0, 800, size):
        parts.append(answered(held, columns[i : i + size], point[i : i + size]))
        state, held = held.state(), RecentIntervals(LEVEL, THREE, is_delayed=late)
        held.restore(state)
    found = np.concatenate(parts)
    learned, counted, n_counted, due = [], [], 0, 1
    for i in range(800):
        if i < 60 or i % 40 == 0:
            for y in range(3):
                came = columns[counted] == y
                expected = literally(point[i, y], point[counted, y], came, n_counted, larger)
                assert found[i, y] == pytest.approx(expected, abs=1e-9)
        if columns[i] >= 0:
            learned.append(i)
        if len(learned) == due:
            counted = learned[len(learned) // 3 :][-MAX_COUNTED_EXAMPLES:]
            n_counted = due
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
    n_labels, counted = len(counted), counted[len(counted) // 3 :]
    expected = literally(point[0, 1], point[counted, 1], columns[counted] == 1, n_labels)
    assert last[1] == pytest.approx(expected, abs=1e-9)
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
            expected = literally(point[i, y], point[last, y], columns[last] == y, len(learned))
            assert found[i, place] == pytest.approx(expected, abs=1e-9)
    asked = answered(after, np.array([-1]), np.full((1, 5), 0.2))
    assert asked[0, 1].tolist() == [0.0, pytest.approx(1.0, abs=1e-3)]


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
    before = late.step_many(X[:299], labels[:299])
    original = np.concatenate([block.point for block in blocks(before)])[199]
    present = late.frozen().answer(X[199:200]).point  # example 199 is learned next
    late.step_many(X[299:], labels[299:])
    (counted,) = counted_by(late)[-1:]
    # The recent stacks and the label history have no part in it.
    np.testing.assert_allclose(counted, present[0], atol=0.02)
    assert abs(counted[0] - original[0]) > 0.05
    at_once = OnlinePredictor(ProtocolConfig(**config))
    points = np.concatenate([block.point for block in blocks(at_once.step_many(X, labels))])
    np.testing.assert_array_equal(counted_by(at_once), points)


def counted_by(predictor):
    return predictor._engine._experts._intervals.state()["points"]
