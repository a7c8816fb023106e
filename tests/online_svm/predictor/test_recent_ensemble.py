"""Neighbours and recent stacks, against the method written out; and what they gain and leave."""

import numpy as np
import pytest
from scipy.special import expit, softmax

from online_svm.config import PredictorConfig
from online_svm.errors import InvalidSnapshot
from online_svm.predictor.ensemble import Ensemble
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.predictor.pending_examples import AnswerTimeOutputs, member_outputs_from_state
from online_svm.predictor.recent_ensemble import MemberOutputs, RecentEnsemble
from online_svm.refit.committee.stack import fit_more, fit_two
from online_svm.refit.scaling import Scaling


def votes(points, labels, row, classes):
    """Log-odds by the nearest of the last labelled points, of equal ones the newest."""
    found = []
    for count, memory in ((5, 100), (10, 250), (10, 1000)):
        near = [
            (float(((p - row) ** 2).sum()), -i)
            for i, p in enumerate(points)
            if i >= len(points) - memory
        ]
        near = [labels[-i] for _, i in sorted(near)[:count]]
        p = [(near.count(k) + 1.0 / classes) / (len(near) + 1.0) for k in range(classes)]
        odds = np.log(p) - np.log1p(-np.array(p))
        found.append(odds[1:] if classes == 2 else odds)
    return np.array(found)


class WrittenOut:
    """Neighbours and stacks from lists."""

    def __init__(self, classes):
        self.classes = classes
        self.points, self.labels, self.said = [], [], []
        self.weights, self.since = [], 0

    def says(self, odds, row, point):
        """Return all inputs of the stacks, and the probabilities of each; `point` before a fit."""
        odds = np.concatenate([odds, votes(self.points, self.labels, row, self.classes)])
        if self.weights and self.classes == 2:
            p = [expit(odds[:, 0] @ w[:-1] + w[-1]) for w in self.weights]
            return odds, [np.array([1.0 - q, q]) for q in p]
        if self.weights:
            return odds, [softmax(odds.T @ w[:-1]) for w in self.weights]
        return odds, [point, point]

    def learn(self, row, column, odds):
        self.points.append(row)
        self.labels.append(column)
        self.said.append(odds)
        self.since += 1
        if self.since < 50:
            return
        self.since, inputs = 0, len(odds)
        equal = np.append(np.full(inputs, 1.0 / inputs), 0.0)
        self.weights = self.weights or [equal.copy(), equal.copy()]
        for size, fitted in zip((250, 1000), self.weights, strict=True):
            held, of = np.array(self.said[-size:]), np.array(self.labels[-size:])
            if self.classes == 2:
                fit_two(held[:, :, 0], of == 1, fitted, 1e-2)
            else:
                fit_more(held, of, fitted[:-1], 1e-2)


def written_out(given, point, columns, classes):
    """Answer each row in turn."""
    stacks, answers = WrittenOut(classes), []
    for i, column in enumerate(columns.tolist()):
        odds, each = stacks.says(given.odds[i], given.rows[i], point[i])
        answers.append(each)
        if 0 <= column < classes:
            stacks.learn(given.rows[i], column, odds)
    return Ensemble(3).answer([point, *np.array(answers).swapaxes(0, 1)], columns)


def written_out_late(given, point, now, columns, delay):
    """Answer each row in turn, and learn it so many rows later."""
    classes = point.shape[1]
    stacks, begin = WrittenOut(classes), np.array([0.7, 0.15, 0.15])
    weights, heard, words, answers = begin, 0, [], []
    for i in range(len(point)):
        odds, each = stacks.says(given.odds[i], given.rows[i], point[i])
        words.append((odds, np.array([point[i], *each])))
        answers.append(weights @ clipped(words[i][1]) if heard >= 50 else point[i])
        k = i - delay
        if k < 0 or columns[k] < 0:
            continue
        odds, then = words[k]
        credited = clipped(np.array([(then[0] + now[k]) / 2.0, *then[1:]]))[:, columns[k]]
        weights = weights * credited**0.03
        weights = 0.998 * weights / weights.sum() + 0.002 * begin
        heard += not np.array_equal(then[0], then[1])
        stacks.learn(given.rows[k], columns[k], odds)
    return np.array(answers)


def clipped(rows):
    low = rows < 1e-6
    room = 1.0 - 1e-6 * low.sum(axis=1, keepdims=True)
    scaled = rows * room / np.where(low, 0.0, rows).sum(axis=1, keepdims=True)
    return np.where(low, 1e-6, np.where(low.any(axis=1, keepdims=True), scaled, rows))


def given_rows(n, classes, seed=0):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, classes, n)
    X = np.round(4.0 * (rng.normal(size=(n, 2)) + codes[:, None])) / 4.0  # some are equally far
    decisions = 1 if classes == 2 else classes
    odds = rng.normal(size=(n, 3, decisions))
    point = rng.dirichlet(np.ones(classes), size=n)
    columns = np.where(rng.uniform(size=n) < 0.1, -1, codes)
    return MemberOutputs(X, X, odds), point, columns


def part(given, rows):
    return MemberOutputs(*(values[rows] for values in given))


def calls(delay, n, sizes):
    """Yield the rows of calls and which are learned: each `delay` rows after its answer."""
    steps = [(k, learns) for i in range(n) for k, learns in ((i, False), (i - delay, True))]
    steps = [step for step in steps if step[0] >= 0]
    begin = 0
    for size in sizes:
        part = steps[begin : begin + size]
        yield [row for row, _ in part], np.array([learns for _, learns in part])
        begin += size


def restored(state, classes, *, is_delayed=False):
    ensemble = RecentEnsemble(3, classes, is_delayed=is_delayed)
    ensemble.restore(state, Scaling.identity(2))
    return ensemble


def late_answers(ensemble, given, points, columns, each_call, reopened=lambda ensemble: ensemble):
    """Answer rows, and learn each later; `points` are the headline's then and at learning."""
    kept, found = {}, []
    for rows, learns in each_call:
        ensemble = reopened(ensemble)
        here = {row: i for i, row in enumerate(rows) if not learns[i]}
        at = [here.get(row, -1) if of else -1 for row, of in zip(rows, learns, strict=True)]
        before = [kept.get(row) for row in rows]
        columns_of = np.where(learns, columns[rows], -1)
        point = np.where(learns[:, None], points[1][rows], points[0][rows])
        earlier = AnswerTimeOutputs(learns, np.array(at), before, learns)
        mixed, said = ensemble.answer(part(given, rows), point, columns_of, earlier)
        found += list(mixed[~learns])
        kept |= {row: {name: v[i] for name, v in said.items()} for row, i in here.items()}
    return np.array(found), ensemble


@pytest.mark.parametrize(("classes", "n"), [(2, 1300), (3, 320)])
def test_each_answer_is_that_of_the_method_written_out(classes, n):
    given, point, columns = given_rows(n, classes)
    found = RecentEnsemble(3, classes).answer(given, point, columns)[0]
    np.testing.assert_allclose(found, written_out(given, point, columns, classes), rtol=1e-8)


@pytest.mark.parametrize("classes", [2, 4])
def test_the_bytes_are_the_same_whatever_the_batches_and_after_a_restart(classes):
    given, point, columns = given_rows(2600, classes)
    whole, parts = RecentEnsemble(3, classes), RecentEnsemble(3, classes)
    expected = whole.answer(given, point, columns)[0]
    found, begin = [], 0
    for size in [1, 3, 49, 60, 700, 1, 900, 886]:
        rows = slice(begin, begin + size)
        parts = restored(parts.state(), classes)
        found.append(parts.answer(part(given, rows), point[rows], columns[rows])[0])
        begin += size
    np.testing.assert_array_equal(np.concatenate(found), expected)
    for name, value in whole.state().items():
        np.testing.assert_array_equal(parts.state()[name], value, err_msg=name)


def test_rows_that_are_held_are_scaled_by_the_model_that_answers():
    given, point, columns = given_rows(300, 2)
    scaling = Scaling(np.ones(2), np.array([2.0, 0.25]), np.ones(2))
    one, other = RecentEnsemble(3, 2), RecentEnsemble(3, 2)
    one.answer(part(given, slice(200)), point[:200], columns[:200])
    other.answer(
        part(given._replace(rows=scaling.transform(given.X)), slice(200)),
        point[:200],
        columns[:200],
    )
    moved = RecentEnsemble(3, 2)
    moved.follow(one, scaling)
    points = moved._points[:, : moved._size]
    np.testing.assert_array_equal(points, other._points[:, : other._size])


def test_with_another_number_of_classes_it_begins_anew():
    given, point, columns = given_rows(80, 2)
    before, ensemble = RecentEnsemble(3, 2), RecentEnsemble(3, 3)
    before.answer(given, point, columns)
    ensemble.follow(before, Scaling.identity(2))
    assert ensemble.state()["columns"].size == 0


def test_labels_that_are_not_known_keep_what_the_headline_gives_them():
    given, point, columns = given_rows(200, 2)
    point = np.column_stack([0.9 * point, np.full(200, 0.1)])
    columns[::7] = 2
    found = RecentEnsemble(3, 2).answer(given, point, columns)[0]
    np.testing.assert_allclose(found[:, 2], 0.1, rtol=1e-12)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)


@pytest.mark.parametrize(("classes", "n"), [(2, 700), (3, 350)])
def test_where_labels_are_late_each_answer_is_that_of_the_method_written_out(classes, n):
    given, point, columns = given_rows(n, classes)
    now = given_rows(n, classes, seed=1)[1]
    each_call = calls(60, n, [10] * ((2 * n - 60) // 10))
    found, _ = late_answers(
        RecentEnsemble(3, classes, is_delayed=True), given, (point, now), columns, each_call
    )
    expected = written_out_late(given, point, now, columns, 60)
    np.testing.assert_allclose(found, expected, rtol=1e-8)
    is_headline = (found == point).all(axis=1)
    assert is_headline[:220].all()
    assert not is_headline[240:].any()


@pytest.mark.parametrize("classes", [2, 4])
def test_where_labels_are_late_calls_and_restarts_change_no_byte(classes):
    given, point, columns = given_rows(1300, classes)
    now = given_rows(1300, classes, seed=1)[1]

    def reopened(ensemble):
        return restored(ensemble.state(), classes, is_delayed=True)

    late = RecentEnsemble(3, classes, is_delayed=True)
    rows = given, (point, now), columns
    expected, whole = late_answers(late, *rows, calls(90, 1300, [2600]))
    sizes = [1, 3, 149, 60, 700, 1, 900, 1000]
    late = RecentEnsemble(3, classes, is_delayed=True)
    found, parts = late_answers(late, *rows, calls(90, 1300, sizes), reopened)
    np.testing.assert_array_equal(found, expected)
    for name, value in whole.state().items():
        np.testing.assert_array_equal(parts.state()[name], value, err_msg=name)


def test_an_example_of_which_nothing_was_said_is_a_neighbour_and_no_more():
    given, point, columns = given_rows(200, 2)
    late, every = RecentEnsemble(3, 2, is_delayed=True), np.ones(200, dtype=bool)
    earlier = AnswerTimeOutputs(every, np.full(200, -1), [None] * 200, every)
    mixed, _ = late.answer(given, point, columns, earlier)
    np.testing.assert_array_equal(mixed, point)
    state = late.state()
    assert np.isnan(state["odds"]).all()
    begin = RecentEnsemble(3, 2, is_delayed=True).state()
    np.testing.assert_array_equal(state["mixture.logs"], begin["mixture.logs"])
    np.testing.assert_array_equal(state["columns"], columns[columns >= 0])
    assert "250.weights" not in state


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("columns", [2]), ("columns", []), ("since", [50]), ("heard", [51]), ("heard", [-1]),
        ("odds", [[[np.inf]] * 6]), ("odds", [[[np.nan]] * 5 + [[0.0]]]),
        ("250.weights", [0.0] * 6), ("1000.weights", [1e7] * 7), ("mixture.logs", [0.0]),
        ("X", np.empty((1, 100_001))),
        ("X", np.empty((0, 10**12))),
    ],
)  # fmt: skip
def test_a_state_that_does_not_fit_is_refused(name, value):
    state = RecentEnsemble(3, 2, is_delayed=True).state()
    state |= {"columns": np.array([0]), "X": np.ones((1, 2)), "odds": np.full((1, 6, 1), np.nan)}
    state |= {f"{size}.weights": np.zeros(7) for size in (250, 1000)}
    restored(state, 2, is_delayed=True)
    with pytest.raises((InvalidSnapshot, ValueError)):
        restored(state | {name: np.array(value, dtype=state[name].dtype)}, 2, is_delayed=True)


@pytest.mark.parametrize("name", ["odds", "parts"])
def test_what_was_said_of_waiting_examples_is_refused_if_it_does_not_fit(name):
    said = {"odds": np.zeros((4, 6, 1)), "parts": np.full((4, 3, 2), 0.5)}
    assert member_outputs_from_state(said)["parts"].shape == (4, 3, 2)
    for changed in (said[name][:-1], said[name][0], said[name] * np.nan, said[name].astype("<f4")):
        with pytest.raises((InvalidSnapshot, ValueError)):
            member_outputs_from_state(said | {name: changed})
    with pytest.raises(ValueError, match="parts"):
        member_outputs_from_state(said | {"parts": np.full((4, 3, 2), 1.5)})


# The experts of semantics 6 follow with the first labels, and are less sure of it later.
@pytest.mark.parametrize(("semantics", "first", "last"), [(5, 650, 800), (6, 550, 650)])
def test_where_labels_are_late_the_headline_of_a_feed_follows_a_change_and_no_call_shows(
    semantics, first, last
):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 2))
    labels = np.where((X[:, 0] > 0) ^ (np.arange(800) >= 500), "b", "a").tolist()
    config = PredictorConfig(
        classes=("a", "b"),
        horizon=30,
        window=400,
        refit_every=200,
        monitors="off",
        semantics=semantics,
    )
    points, snapshots = [], []
    for size in (800, 170):
        predictor, found = OnlinePredictor(config), []
        for begin in range(0, 800, size):
            rows = slice(begin, begin + size)
            found += predictor.step_many(X[rows], labels[rows])
            other = OnlinePredictor(config)
            other.restore(predictor.snapshot())
            predictor = other
        blocks = [block for block in found if getattr(block, "status", "") == "ok"]
        points.append(np.concatenate([block.point[:, 1] for block in blocks]))
        venn = np.concatenate([block.venn_point[:, 1] for block in blocks])
        snapshots.append(predictor.snapshot())
    np.testing.assert_array_equal(*points)
    assert snapshots[0] == snapshots[1]
    asked = slice(first - 800, last - 800 or None)
    is_second = np.array(labels[asked]) == "b"
    right, of_venn = (((p[asked] > 0.5) == is_second).mean() for p in (points[0], venn))
    assert right > of_venn + 0.2
