"""Neighbours and recent stacks, against the method written out; and what they gain and leave."""

import numpy as np
import pytest
from scipy.special import expit, softmax

from online_svm.config import PredictorConfig
from online_svm.errors import InvalidSnapshot
from online_svm.predictor.lately import SHARE, Given, Lately
from online_svm.predictor.mixture import Mixture
from online_svm.predictor.online_predictor import OnlinePredictor
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


def written_out(given, point, columns, classes):
    """Answer each row in turn from lists."""
    points, labels, said = [], [], []
    weights, since = [], 0
    answers = []
    for i, column in enumerate(columns.tolist()):
        odds = np.concatenate([given.odds[i], votes(points, labels, given.rows[i], classes)])
        each = [point[i], point[i]]
        if weights and classes == 2:
            p = [expit(odds[:, 0] @ w[:-1] + w[-1]) for w in weights]
            each = [np.array([1.0 - q, q]) for q in p]
        elif weights:
            each = [softmax(odds.T @ w[:-1]) for w in weights]
        answers.append(each)
        if not 0 <= column < classes:
            continue
        points.append(given.rows[i])
        labels.append(column)
        said.append(odds)
        since += 1
        if since == 50:
            since = 0
            inputs = len(odds)
            weights = weights or [np.append(np.full(inputs, 1.0 / inputs), 0.0) for _ in range(2)]
            for size, fitted in zip((250, 1000), weights, strict=True):
                held, of = np.array(said[-size:]), np.array(labels[-size:])
                if classes == 2:
                    fit_two(held[:, :, 0], of == 1, fitted, 1e-2)
                else:
                    fit_more(held, of, fitted[:-1], 1e-2)
    said = np.array(answers).swapaxes(0, 1)
    return Mixture(3, SHARE).answer([point, *said], columns)


def given_rows(n, classes, seed=0):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, classes, n)
    X = np.round(4.0 * (rng.normal(size=(n, 2)) + codes[:, None])) / 4.0  # some are equally far
    decisions = 1 if classes == 2 else classes
    odds = rng.normal(size=(n, 3, decisions))
    point = rng.dirichlet(np.ones(classes), size=n)
    columns = np.where(rng.uniform(size=n) < 0.1, -1, codes)
    return Given(X, X, odds), point, columns


def part(given, rows):
    return Given(*(values[rows] for values in given))


@pytest.mark.parametrize(("classes", "n"), [(2, 1300), (3, 320)])
def test_each_answer_is_that_of_the_method_written_out(classes, n):
    given, point, columns = given_rows(n, classes)
    found = Lately(3, classes).answer(given, point, columns)
    np.testing.assert_allclose(found, written_out(given, point, columns, classes), rtol=1e-8)


@pytest.mark.parametrize("classes", [2, 4])
def test_the_bytes_are_the_same_whatever_the_batches_and_after_a_restart(classes):
    given, point, columns = given_rows(2600, classes)
    whole, parts = Lately(3, classes), Lately(3, classes)
    expected = whole.answer(given, point, columns)
    identity, found, begin = Scaling.identity(2), [], 0
    for size in [1, 3, 49, 60, 700, 1, 900, 886]:
        rows = slice(begin, begin + size)
        parts = Lately.from_state(parts.state(), 3, classes, identity)
        found.append(parts.answer(part(given, rows), point[rows], columns[rows]))
        begin += size
    np.testing.assert_array_equal(np.concatenate(found), expected)
    for name, value in whole.state().items():
        np.testing.assert_array_equal(parts.state()[name], value, err_msg=name)


def test_rows_that_are_held_are_scaled_by_the_model_that_answers():
    given, point, columns = given_rows(300, 2)
    scaling = Scaling(np.ones(2), np.array([2.0, 0.25]), np.ones(2))
    one, other = Lately(3, 2), Lately(3, 2)
    one.answer(part(given, slice(200)), point[:200], columns[:200])
    other.answer(
        part(given._replace(rows=scaling.transform(given.X)), slice(200)),
        point[:200],
        columns[:200],
    )
    moved = Lately(3, 2)
    moved.follow(one, scaling)
    points = moved._points[:, : moved._size]
    np.testing.assert_array_equal(points, other._points[:, : other._size])


def test_with_another_number_of_classes_it_begins_anew():
    given, point, columns = given_rows(80, 2)
    before, lately = Lately(3, 2), Lately(3, 3)
    before.answer(given, point, columns)
    lately.follow(before, Scaling.identity(2))
    assert lately.state()["columns"].size == 0


def test_labels_that_are_not_known_keep_what_the_headline_gives_them():
    given, point, columns = given_rows(200, 2)
    point = np.column_stack([0.9 * point, np.full(200, 0.1)])
    columns[::7] = 2
    found = Lately(3, 2).answer(given, point, columns)
    np.testing.assert_allclose(found[:, 2], 0.1, rtol=1e-12)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)


@pytest.mark.parametrize("name", ["columns", "odds", "since", "250.weights", "mixture.logs"])
def test_a_state_that_does_not_fit_is_refused(name):
    given, point, columns = given_rows(120, 2)
    lately = Lately(3, 2)
    lately.answer(given, point, columns)
    state = lately.state()
    for changed in (state[name][:-1], state[name].astype("<f4"), np.full_like(state[name], 99)):
        if (
            name not in ("odds", "250.weights", "mixture.logs")
            or changed.shape != state[name].shape
        ):
            with pytest.raises((InvalidSnapshot, ValueError)):
                Lately.from_state(state | {name: changed}, 3, 2, Scaling.identity(2))


@pytest.mark.parametrize("width", [100_001, 10**12])
def test_a_state_of_no_examples_that_names_too_many_features_is_refused(width):
    state = Lately(3, 2).state()
    with pytest.raises(ValueError, match="X"):
        Lately.from_state(state | {"X": np.empty((0, width))}, 3, 2, Scaling.identity(2))


def turned_round():
    """The accuracy after the labels of a stream changed places, and its blocks."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 2))
    is_second = (X[:, 0] > 0) ^ (np.arange(900) >= 600)
    config = PredictorConfig(classes=("a", "b"), window=500, refit_every=250, monitors="off")
    predictor = OnlinePredictor(config)
    answers = predictor.step_many(X, np.where(is_second, "b", "a").tolist())
    blocks = [block for block in answers if getattr(block, "status", "") == "ok"]
    n = np.concatenate([block.n for block in blocks])
    right = np.concatenate([block.point[:, 1] for block in blocks]) > 0.5
    return (right == is_second[n])[n >= 700].mean(), blocks


def test_after_a_sudden_change_the_headline_is_right_again_within_a_hundred_examples():
    accuracy, blocks = turned_round()
    assert accuracy > 0.85
    # What is exact knows nothing of it: the pair is the Venn predictor's own.
    venn = np.concatenate([block.venn_point[:, 1] for block in blocks]) > 0.5
    point = np.concatenate([block.point[:, 1] for block in blocks]) > 0.5
    assert (venn != point)[-200:].mean() > 0.3
    assert blocks[-1].guarantee == "exact"


def test_where_labels_are_late_the_headline_is_that_of_the_committee_alone():
    predictor = OnlinePredictor(PredictorConfig(classes=("a", "b"), horizon=20))
    X = np.random.default_rng(0).normal(size=(200, 2))
    predictor.step_many(X, np.where(X[:, 0] > 0, "a", "b").tolist())
    assert predictor.active.lately is None
