"""The label history against the method written out in NumPy; cuts, sources, classes, states."""

import numpy as np
import pytest
from predictor_answers import corrected
from scipy.special import softmax

from online_svm.predictor.label_history import N_FEATURES, RIDGE, LabelHistory

FREQUENCY_MEMORY = 0.5 ** (1.0 / np.array([1.0, 5.0, 50.0]))
RESIDUAL_MEMORY = FREQUENCY_MEMORY[1:]
MEMORY = 0.999
BEGIN = np.eye(N_FEATURES)[0]


class WrittenOut:
    """The expert as its formulas say."""

    def __init__(self, n_classes):
        self.k = n_classes
        self.frequencies = np.full((3, n_classes), 1.0 / n_classes)
        self.residuals = np.zeros((2, n_classes))
        self.transitions = np.zeros((n_classes, n_classes))
        self.w, self.P, self.last = BEGIN, RIDGE * np.eye(N_FEATURES), None

    def features(self, point):
        smoothed = (self.frequencies + 0.01) / (1.0 + 0.01 * self.k)
        after = np.zeros(self.k) if self.last is None else self.transitions[self.last]
        after = (after + 2.0 * smoothed[2]) / (after.sum() + 2.0)
        return np.column_stack(
            [np.log(np.maximum(point, 1e-6)), *np.log(smoothed), *4.0 * self.residuals,
             np.log(after)]
        )  # fmt: skip

    def learn(self, features, p, y):
        hit, mean = np.eye(self.k)[y], p @ features
        gradient = features[y] - mean + (1.0 - MEMORY) * RIDGE * (BEGIN - self.w)
        hessian = features.T @ (np.diag(p) - np.outer(p, p)) @ features
        self.P = MEMORY * self.P + (1.0 - MEMORY) * RIDGE * np.eye(N_FEATURES) + hessian
        self.w = self.w + np.linalg.solve(self.P, gradient)
        kept = FREQUENCY_MEMORY[:, None]
        self.frequencies = kept * self.frequencies + (1.0 - kept) * hit
        kept = RESIDUAL_MEMORY[:, None]
        error = hit - np.exp(features[:, 0])
        self.residuals = kept * self.residuals + (1.0 - kept) * error
        if self.last is not None:
            self.transitions[self.last] = 0.99 * self.transitions[self.last] + hit
        self.last = y

    def answer(self, points, columns, sources=None, features=None):
        outputs = []
        for i, (point, y) in enumerate(zip(points, columns, strict=True)):
            source = -1 if sources is None else sources[i]
            own = self.features(point) if source < 0 else features[source]
            if features is not None:
                features[i] = own
            outputs.append(softmax(own @ self.w))
            if 0 <= y < self.k:
                self.learn(own, outputs[-1], y)
        return np.array(outputs)


def sample(n, k, seed=0):
    """Return probabilities, and labels that depend on the ones before; some are missing."""
    rng = np.random.default_rng(seed)
    points, columns, y = rng.dirichlet(np.full(k, 0.6), n), np.empty(n, dtype=np.int64), 0
    points[::17] = np.eye(k)[rng.integers(0, k, len(points[::17]))]  # certain, often in error
    for i in range(n):
        y = y if rng.random() < 0.8 else int(rng.integers(k))
        columns[i] = y
    columns[rng.random(n) < 0.1] = -1
    return points, columns


def assert_same(history, written):
    state = history.state().arrays
    for name, expected in (
        ("frequencies", written.frequencies), ("residuals", written.residuals),
        ("transitions", written.transitions), ("weights", written.w), ("precision", written.P),
    ):  # fmt: skip
        np.testing.assert_allclose(state[name], expected, rtol=1e-7, atol=1e-9, err_msg=name)
    assert state["last"].tolist() == [-1 if written.last is None else written.last]


@pytest.mark.parametrize("k", [1, 2, 3, 6])
def test_answers_and_state_are_those_of_the_formulas(k):
    points, columns = sample(700, k)
    history, written = LabelHistory(k), WrittenOut(k)
    expected = written.answer(points, columns)
    np.testing.assert_allclose(corrected(history, points, columns), expected, rtol=1e-7, atol=1e-12)
    assert_same(history, written)


def test_labels_that_follow_each_other_are_predicted():
    points, columns = sample(700, 3)
    found = corrected(LabelHistory(3), points, columns)
    later = np.flatnonzero(columns >= 0)[300:]
    assert np.mean(found[later].argmax(axis=1) == columns[later]) > 0.75
    assert np.mean(points[later].argmax(axis=1) == columns[later]) < 0.4


def test_rows_without_a_label_leave_no_trace():
    points, columns = sample(100, 2)
    history = LabelHistory(2)
    corrected(history, points, columns)
    before = history.state().arrays
    corrected(history, points, np.full(100, -1))
    corrected(history, points, np.full(100, 2))  # no column of these classes
    for name, part in history.state().arrays.items():
        np.testing.assert_array_equal(part, before[name])


def test_a_row_with_a_source_is_learned_with_the_features_of_its_answer():
    points, columns = sample(40, 3)
    sources = np.full(40, -1)
    columns[:20] = -1
    sources[20:30] = np.arange(10)  # answered earlier in the same call
    sources[30:] = np.arange(30, 40)  # answered in an earlier call
    columns[20:] = np.arange(20) % 3
    kept = np.random.default_rng(1).normal(size=(40, 3, N_FEATURES))
    features, theirs = kept.copy(), kept.copy()
    history, written = LabelHistory(3), WrittenOut(3)
    found = corrected(history, points, columns, sources, features)
    np.testing.assert_allclose(
        found, written.answer(points, columns, sources, theirs), rtol=1e-7, atol=1e-12
    )
    np.testing.assert_allclose(features, theirs, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(features[20:30], features[:10])
    np.testing.assert_array_equal(features[30:], kept[30:])
    assert_same(history, written)


def test_another_class_begins_without_labels_and_the_others_keep_theirs():
    history = LabelHistory(3)
    corrected(history, *sample(200, 3))
    old, new = history.state().arrays, history.moved([0, 2, 3], 4).state().arrays
    for name in ("frequencies", "residuals"):
        np.testing.assert_array_equal(new[name][:, [0, 2, 3]], old[name])
        assert not new[name][:, 1].any()
    np.testing.assert_array_equal(
        new["transitions"][np.ix_([0, 2, 3], [0, 2, 3])], old["transitions"]
    )
    assert new["transitions"].sum() == old["transitions"].sum()
    for name in ("weights", "precision"):
        np.testing.assert_array_equal(new[name], old[name])
    assert new["last"] == [0, 2, 3][old["last"][0]]


def test_classes_that_become_unknown_share_the_unseen_slot():
    history = LabelHistory(4)
    corrected(history, *sample(200, 4))
    old, new = history.state().arrays, history.moved([0, 2, 1, 2], 3).state().arrays
    for name in ("frequencies", "residuals"):
        merged = [old[name][:, 0], old[name][:, 2], old[name][:, 1] + old[name][:, 3]]
        np.testing.assert_allclose(new[name], np.stack(merged, axis=1), rtol=1e-14)
    onto = np.eye(3)[[0, 2, 1, 2]]
    np.testing.assert_allclose(new["transitions"], onto.T @ old["transitions"] @ onto, rtol=1e-14)
    np.testing.assert_allclose(new["frequencies"].sum(axis=1), 1.0)


def test_an_expert_that_learned_nothing_moves_to_no_last_label():
    assert LabelHistory(2).moved([0, 2], 3).state().arrays["last"].tolist() == [-1]
