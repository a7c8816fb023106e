"""Over 500 simulated runs a promised error rate is exceeded in at most 5 %.

A run exceeds the promise if a threshold is ever in force whose true error rate is above it.
"""

import numpy as np
import pytest
from scipy.stats import binom

from online_svm.config import PredictorConfig
from online_svm.metrics.promised_error import CANDIDATES, NEVER, PromisedErrorRate, SettledAnswers

pytestmark = pytest.mark.slow
RUNS, ROWS, RATE, CONFIDENCE = 500, 4000, 0.05, 0.95


def calibrated(generator):
    """Right probabilities, often close to 1."""
    p = 1.0 - 0.5 * generator.random(ROWS) ** 2
    return p, 1.0 - p


def overconfident(generator):
    """Errors are 1.6 times as frequent as the probabilities say."""
    p, error = calibrated(generator)
    return p, np.minimum(0.5, 1.6 * error)


def blind(generator):
    """Errors are a little too frequent, at every probability alike."""
    return calibrated(generator)[0], np.full(ROWS, 1.01 * RATE)


def at_the_edge(generator):
    """Nothing is wrong from .97 on, and below it each threshold is just above the promise."""
    p = 1.0 - 0.2 * generator.random(ROWS)
    # Above .95 are 25 % of the cases: 15 % without an error and 10 % with 2.55 times the promise.
    return p, np.where(p >= 0.97, 0.0, np.where(p >= 0.95, 2.55 * RATE, 1.02 * RATE))


def learning(generator):
    """Errors fall from twice their last frequency."""
    p, error = calibrated(generator)
    return p, np.minimum(0.5, error * (1.0 + np.exp(-np.arange(ROWS) / 500.0)))


def run(world, seed):
    """Return whether a run exceeds the promise, and the share of decided cases in its last third.

    The true error rate of a threshold is the mean over the cases so far that reach it.
    """
    generator = np.random.default_rng(seed)
    p, error = world(generator)
    n, label = np.arange(ROWS), np.ones(ROWS, dtype=np.int64)
    truth = (generator.random(ROWS) >= error).astype(np.int64)
    promise = PromisedErrorRate(
        PredictorConfig(classes=("a", "b"), promise={"error": RATE, "confidence": CONFIDENCE})
    )
    found = promise.follow(SettledAnswers(n, p, label, truth, n), n, [])[:, 0]
    above = p[:, None] >= CANDIDATES
    counts = np.maximum(np.cumsum(above, axis=0), 1)
    true_rates = np.cumsum(above * error[:, None], axis=0) / counts
    place = np.minimum(np.searchsorted(-CANDIDATES, -found), len(CANDIDATES) - 1)
    in_force = true_rates[n - 1, place]
    exceeds = (found < NEVER) & (in_force > RATE) & (n > 0)
    return bool(exceeds.any()), float((p >= found)[-ROWS // 3 :].mean())


@pytest.mark.parametrize("world", [calibrated, overconfident, blind, at_the_edge, learning])
def test_the_promise_is_exceeded_in_at_most_a_twentieth_of_the_runs(world):
    exceeded, shares = zip(*(run(world, seed) for seed in range(RUNS)), strict=True)
    print(f"{world.__name__}: exceeded in {sum(exceeded)} of {RUNS}, decided {np.mean(shares):.3f}")
    assert binom.sf(sum(exceeded) - 1, RUNS, 1 - CONFIDENCE) > 0.01
    assert sum(exceeded) <= 0.05 * RUNS
