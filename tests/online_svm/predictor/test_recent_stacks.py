"""Neighbours and recent stacks, against the method written out; and what they gain and leave."""

import numpy as np
import pytest
from scipy.special import expit, softmax

from online_svm.errors import InvalidSnapshot
from online_svm.predictor.pending_examples import AnswerTimeOutputs, member_outputs_from_state
from online_svm.predictor.recent_stacks import STACK_SIZES, MemberOutputs, RecentStacks
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

    def says(self, odds, row):
        """Return all inputs of the stacks, and the probabilities of each; NaN before a fit."""
        odds = np.concatenate([odds, votes(self.points, self.labels, row, self.classes)])
        if self.weights and self.classes == 2:
            p = [expit(odds[:, 0] @ w[:-1] + w[-1]) for w in self.weights]
            return odds, [np.array([1.0 - q, q]) for q in p]
        if self.weights:
            return odds, [softmax(odds.T @ w[:-1]) for w in self.weights]
        return odds, np.full((len(STACK_SIZES), self.classes), np.nan)

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


def written_out(given, columns, classes, delay=0):
    """Answer each row in turn, and learn it so many rows later; shape (stacks, n, classes)."""
    stacks, words, answers = WrittenOut(classes), [], []
    for i in range(len(columns)):
        odds, each = stacks.says(given.odds[i], given.rows[i])
        words.append(odds)
        answers.append(each)
        k = i - delay
        if k >= 0 and 0 <= columns[k] < classes:
            stacks.learn(given.rows[k], columns[k], words[k])
    return np.array(answers).swapaxes(0, 1)


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
    stacks = RecentStacks(3, classes, is_delayed=is_delayed)
    if stacks.restore(state):
        stacks.scale(Scaling.identity(2))
    return stacks


def late_answers(stacks, given, rest, columns, each_call, reopened=lambda stacks: stacks):
    """Answer rows, and learn each later."""
    kept, found = {}, []
    for rows, learns in each_call:
        stacks = reopened(stacks)
        here = {row: i for i, row in enumerate(rows) if not learns[i]}
        at = [here.get(row, -1) if of else -1 for row, of in zip(rows, learns, strict=True)]
        before = [kept.get(row) for row in rows]
        columns_of = np.where(learns, columns[rows], -1)
        earlier = AnswerTimeOutputs(learns, np.array(at), before, np.zeros(len(rows)))
        parts, said = stacks.answer(part(given, rows), rest[rows], columns_of, earlier)
        assert np.isnan(parts[:, learns]).all()
        found.append(parts[:, ~learns])
        kept |= {row: {name: v[i] for name, v in said.items()} for row, i in here.items()}
    return np.concatenate(found, axis=1), stacks


@pytest.mark.parametrize(("classes", "n"), [(2, 1300), (3, 320)])
def test_each_answer_is_that_of_the_method_written_out(classes, n):
    given, rest, columns = given_rows(n, classes)
    found, outputs = RecentStacks(3, classes).answer(given, rest, columns)
    np.testing.assert_allclose(found, written_out(given, columns, classes), rtol=1e-8)
    assert outputs == {}


@pytest.mark.parametrize("classes", [2, 4])
def test_the_bytes_are_the_same_whatever_the_batches_and_after_a_restart(classes):
    given, rest, columns = given_rows(2600, classes)
    whole, parts = RecentStacks(3, classes), RecentStacks(3, classes)
    expected = whole.answer(given, rest, columns)[0]
    found, begin = [], 0
    for size in [1, 3, 49, 60, 700, 1, 900, 886]:
        rows = slice(begin, begin + size)
        parts = restored(parts.state(), classes)
        found.append(parts.answer(part(given, rows), rest[rows], columns[rows])[0])
        begin += size
    np.testing.assert_array_equal(np.concatenate(found, axis=1), expected)
    for name, value in whole.state().items():
        np.testing.assert_array_equal(parts.state()[name], value, err_msg=name)


def test_rows_that_are_held_are_scaled_by_the_model_that_answers():
    given, point, columns = given_rows(300, 2)
    scaling = Scaling(np.ones(2), np.array([2.0, 0.25]), np.ones(2))
    one, other = RecentStacks(3, 2), RecentStacks(3, 2)
    one.answer(part(given, slice(200)), point[:200], columns[:200])
    other.answer(
        part(given._replace(rows=scaling.transform(given.X)), slice(200)),
        point[:200],
        columns[:200],
    )
    moved = RecentStacks(3, 2)
    moved.follow(one, scaling)
    points = moved._points[:, : moved._size]
    np.testing.assert_array_equal(points, other._points[:, : other._size])


def test_with_another_number_of_classes_it_begins_anew():
    given, point, columns = given_rows(80, 2)
    before, ensemble = RecentStacks(3, 2), RecentStacks(3, 3)
    before.answer(given, point, columns)
    ensemble.follow(before, Scaling.identity(2))
    assert ensemble.state()["columns"].size == 0


def test_labels_that_are_not_known_keep_their_share_and_are_not_learned():
    given, rest, columns = given_rows(200, 2)
    rest = np.column_stack([0.9 * rest, np.full(200, 0.1)])
    columns[::7] = 2
    found = RecentStacks(3, 2).answer(given, rest, columns)[0]
    fitted = ~np.isnan(found[0, :, 0])
    assert 0 < np.count_nonzero(fitted) < 150
    np.testing.assert_allclose(found[:, fitted, 2], 0.1, rtol=1e-12)
    np.testing.assert_allclose(found[:, fitted].sum(axis=2), 1.0, rtol=1e-12)
    known = written_out(given, columns, 2)[:, fitted]
    np.testing.assert_allclose(found[:, fitted, :2], 0.9 * known, rtol=1e-8)


@pytest.mark.parametrize(("classes", "n"), [(2, 700), (3, 350)])
def test_where_labels_are_late_each_answer_is_that_of_the_method_written_out(classes, n):
    given, rest, columns = given_rows(n, classes)
    each_call = calls(60, n, [10] * ((2 * n - 60) // 10))
    found, _ = late_answers(
        RecentStacks(3, classes, is_delayed=True), given, rest, columns, each_call
    )
    np.testing.assert_allclose(found, written_out(given, columns, classes, 60), rtol=1e-8)


@pytest.mark.parametrize("classes", [2, 4])
def test_where_labels_are_late_calls_and_restarts_change_no_byte(classes):
    given, rest, columns = given_rows(1300, classes)

    def reopened(stacks):
        return restored(stacks.state(), classes, is_delayed=True)

    late = RecentStacks(3, classes, is_delayed=True)
    expected, whole = late_answers(late, given, rest, columns, calls(90, 1300, [2600]))
    sizes = [1, 3, 149, 60, 700, 1, 900, 1000]
    late = RecentStacks(3, classes, is_delayed=True)
    found, parts = late_answers(late, given, rest, columns, calls(90, 1300, sizes), reopened)
    np.testing.assert_array_equal(found, expected)
    for name, value in whole.state().items():
        np.testing.assert_array_equal(parts.state()[name], value, err_msg=name)


def test_an_example_of_which_nothing_was_said_is_a_neighbour_and_no_more():
    given, rest, columns = given_rows(200, 2)
    late, every = RecentStacks(3, 2, is_delayed=True), np.ones(200, dtype=bool)
    earlier = AnswerTimeOutputs(every, np.full(200, -1), [None] * 200, np.zeros(200))
    parts, _ = late.answer(given, rest, columns, earlier)
    assert np.isnan(parts).all()
    state = late.state()
    assert np.isnan(state["odds"]).all()
    np.testing.assert_array_equal(state["columns"], columns[columns >= 0])
    assert len(state["weights"]) == 0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("columns", [2]), ("columns", []), ("since", [50]),
        ("odds", [[[np.inf]] * 6]), ("odds", [[[np.nan]] * 5 + [[0.0]]]),
        ("weights", [[0.0] * 6] * 2), ("weights", [[1e7] * 7] * 2), ("weights", [[0.0] * 7]),
        ("X", np.empty((1, 100_001))),
        ("X", np.empty((0, 10**12))),
    ],
)  # fmt: skip
def test_a_state_that_does_not_fit_is_refused(name, value):
    state = RecentStacks(3, 2, is_delayed=True).state()
    state |= {"columns": np.array([0]), "X": np.ones((1, 2)), "odds": np.full((1, 6, 1), np.nan)}
    state["weights"] = np.zeros((2, 7))
    restored(state, 2, is_delayed=True)
    with pytest.raises((InvalidSnapshot, ValueError)):
        restored(state | {name: np.array(value, dtype=state[name].dtype)}, 2, is_delayed=True)


@pytest.mark.parametrize("name", ["odds", "experts", "forecasts"])
def test_what_was_said_of_waiting_examples_is_refused_if_it_does_not_fit(name):
    said = {
        "odds": np.zeros((4, 6, 1)), "experts": np.full((4, 7, 2), 0.5),
        "forecasts": np.full((4, 3, 2), 0.5), "history": np.zeros((4, 2, 7)),
    }  # fmt: skip
    said["experts"][0, 2] = np.nan  # it was asleep
    assert member_outputs_from_state(said)["forecasts"].shape == (4, 3, 2)
    partly = said[name].copy()
    partly[0, 0, 0] = np.nan
    for changed in (said[name][:-1], said[name][0], partly, said[name].astype("<f4")):
        with pytest.raises((InvalidSnapshot, ValueError)):
            member_outputs_from_state(said | {name: changed})


@pytest.mark.parametrize(
    ("name", "change"),
    [("experts", 1.0), ("experts", -0.6), ("experts", np.nan), ("forecasts", 1.0),
     ("forecasts", np.nan)],
)  # fmt: skip
def test_probabilities_of_waiting_examples_are_some_experts_probabilities(name, change):
    said = {
        "experts": np.full((4, 7, 2), 0.5), "forecasts": np.full((4, 3, 2), 0.5),
        "history": np.zeros((4, 2, 7)),
    }  # fmt: skip
    member_outputs_from_state(said)
    with pytest.raises(ValueError, match=name):
        member_outputs_from_state(said | {name: said[name] + change})
