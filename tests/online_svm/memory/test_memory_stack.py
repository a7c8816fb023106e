"""The memory's stacks against scipy's minimum of the same loss."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax

from online_svm.memory.stack import RIDGE, MemoryStacks


def experts(n, n_classes, seed=0):
    """Return three experts, the second of which is right, and labels."""
    rng = np.random.default_rng(seed)
    truth = rng.dirichlet(np.ones(n_classes), n)
    noise = [rng.dirichlet(np.ones(n_classes), n), truth, truth]
    mixed = [0.8 * p + 0.2 / n_classes for p in noise]
    mixed[2] = mixed[2] ** 3 / (mixed[2] ** 3).sum(axis=1, keepdims=True)
    columns = np.array([rng.choice(n_classes, p=p) for p in truth])
    return mixed, columns


def inputs_of(said):
    odds = np.stack([np.log(p) - np.log(p[:, :1]) for p in said], axis=1)
    if said[0].shape[1] > 2:
        return odds
    constant = np.zeros((len(odds), 1, 2))
    constant[:, :, 1] = 1.0
    return np.concatenate([odds, constant], axis=1)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_weights_are_the_minimum_of_the_penalised_loss(n_classes):
    said, columns = experts(900, n_classes)
    stack = MemoryStacks(3, n_classes, [100, 700])
    for i in range(0, 900, 100):
        part = slice(i, i + 100)
        stack.learn([p[part] for p in said], columns[part])
    inputs, newest = inputs_of(said)[-700:], columns[-700:]
    centre = np.zeros(inputs.shape[1])
    centre[0] = 1.0

    def loss(weights):
        logs = log_softmax(np.einsum("j,njk->nk", weights, inputs), axis=1)
        return -logs[np.arange(700), newest].sum() + RIDGE / 2 * ((weights - centre) ** 2).sum()

    expected = minimize(loss, centre, method="BFGS", options={"gtol": 1e-6}).x
    np.testing.assert_allclose(stack.weights[1], expected, atol=1e-3)
    own = np.exp(log_softmax(np.einsum("j,njk->nk", stack.weights[1], inputs), axis=1))
    np.testing.assert_allclose(stack.answer([p[-700:] for p in said])[1], own, atol=1e-9)


def test_without_labels_the_stack_says_what_the_first_expert_says():
    said, columns = experts(99, 3)
    stack = MemoryStacks(3, 3, [1000])
    stack.learn(said, columns)
    np.testing.assert_allclose(stack.answer(said)[0], said[0], atol=1e-12)
    assert stack.next_stop == 100


def test_answers_do_not_depend_on_how_rows_are_cut():
    said, columns = experts(1000, 2)
    found = []
    for size in (100, 7):
        stack, at = MemoryStacks(3, 2, [600]), 0
        while at < 1000:
            stop = min(1000, at + size, stack.next_stop)
            stack.learn([p[at:stop] for p in said], columns[at:stop])
            at = stop
        found.append((stack.weights, stack.answer(said)))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_array_equal(found[0][1], found[1][1])
    one = [stack.answer([p[i : i + 1] for p in said])[0] for i in range(30)]
    np.testing.assert_array_equal(np.concatenate(one), found[1][1][0, :30])


def test_a_restored_stack_goes_on_as_the_original():
    said, columns = experts(400, 3)
    stack = MemoryStacks(3, 3, [100, 250])
    for i in range(0, 390, 30):
        stack.learn([p[i : i + 30] for p in said], columns[i : i + 30])
    copy = MemoryStacks(3, 3, [100, 250]).restore(stack.state())
    for one in (stack, copy):
        one.learn([p[390:400] for p in said], columns[390:400])
    np.testing.assert_array_equal(stack.weights, copy.weights)
    np.testing.assert_array_equal(stack.answer(said), copy.answer(said))
