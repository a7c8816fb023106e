"""The memory's stacks against scipy's minimum of the same loss."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax

from online_svm.predictor.memory_experts import STACK_RIDGE, MemoryStacks, StackedLabels


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
    odds = odds_of(said)
    odds = np.concatenate([np.zeros((*odds.shape[:2], 1)), odds], axis=2)
    if said[0].shape[1] > 2:
        return odds
    constant = np.zeros((len(odds), 1, 2))
    constant[:, :, 1] = 1.0
    return np.concatenate([odds, constant], axis=1)


def odds_of(said):
    return np.stack([np.log(p[:, 1:]) - np.log(p[:, :1]) for p in said], axis=1)


def learned(stack, said, columns):
    """Let a stack learn labels in one room."""
    odds, at, labels = odds_of(said), 0, stack.room(len(columns))
    while at < len(columns):
        stop = at + min(len(columns) - at, stack.next_stop - stack.n)
        labels.odds[at:stop], labels.columns[at:stop] = odds[at:stop], columns[at:stop]
        stack.learned(StackedLabels(labels.odds[:stop], labels.columns[:stop]), stop - at)
        at = stop
    stack.drop_old()
    return stack


@pytest.mark.parametrize("n_classes", [2, 4])
def test_weights_are_the_minimum_of_the_penalised_loss(n_classes):
    said, columns = experts(900, n_classes)
    stack = learned(MemoryStacks(3, n_classes, [100, 700]), said, columns)
    inputs, newest = inputs_of(said)[-700:], columns[-700:]
    centre = np.zeros(inputs.shape[1])
    centre[0] = 1.0

    def loss(weights):
        logs = log_softmax(np.einsum("j,njk->nk", weights, inputs), axis=1)
        return (
            -logs[np.arange(700), newest].sum() + STACK_RIDGE / 2 * ((weights - centre) ** 2).sum()
        )

    expected = minimize(loss, centre, method="BFGS", options={"gtol": 1e-6}).x
    np.testing.assert_allclose(stack.weights[1], expected, atol=1e-3)
    assert stack.n_held == 700


def test_without_enough_labels_a_stack_weighs_the_first_expert_alone():
    stack = learned(MemoryStacks(3, 3, [1000]), *experts(99, 3))
    assert stack.weights.tolist() == [[1.0, 0.0, 0.0]]
    assert stack.next_stop == 100
