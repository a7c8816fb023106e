"""German credit by a bank of machines, by Platt scaling and by the raw score."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from online_svm import IsotonicMap, PlattScaling
from online_svm.calibration.platt_data import cross_validated_scores
from online_svm.metrics.scores import auc, brier, log_loss
from online_svm.svm.implied.class_path import Weighting
from online_svm.svm.implied_posterior import ImpliedPosterior
from online_svm.svm.online_svc import OnlineSVC
from online_svm.types import Bools, Floats
from workers.push.datasets import load

Result = dict[str, Any]

GAMMA = 0.001
N_MODELS = 199  # z = .005, .010, ..., .995; the two fictitious models make 201
N_TRAINING = 500
PRINTED_PENALTY = 10.0
BANK_PENALTY = 20.0  # with it the middle machine has z C = 10, and the printed figures are met
REFERENCE_PENALTY = 0.5 * PRINTED_PENALTY  # z C of the paper's reference machine


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """Training and test examples; positive is the class "2", bad credit."""

    X: Floats
    y: Bools
    X_test: Floats
    y_test: Bools

    @classmethod
    def german(cls, data_dir: Path | str | None, seed: int | None = None) -> "Split":
        """Return the first 500 examples and the last 500, or a random half each."""
        data = load("german-numeric", data_dir)
        order = np.arange(len(data))
        if seed is not None:
            order = np.random.default_rng(seed).permutation(len(data))
        train, test = order[:N_TRAINING], order[N_TRAINING:]
        positive = data.y == "2"
        return cls(data.X[train], positive[train], data.X[test], positive[test])


def calibration_score(p: Floats, positive: Bools) -> float:
    """Return mean |p - isotonic fit of p on the same labels|, the paper's measure.

    Examples
    --------
    >>> calibration_score(np.array([0.25, 0.75]), np.array([False, True]))
    0.25
    """
    return float(np.abs(p - IsotonicMap().fit(p, positive).predict(p)).mean())


def measures(p: Floats, positive: Bools) -> Result:
    """Return calibration score, AUC, log loss and Brier score of P(positive)."""
    both = np.column_stack((1.0 - p, p))
    codes = positive.astype(np.int64)
    return {
        "calibration": calibration_score(p, positive),
        "auc": auc(p, positive),
        "log_loss": log_loss(both, codes),
        "brier": brier(both, codes),
    }


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """Scores of the reference machine on the test part, and what is made of them.

    Attributes
    ----------
    scores : ndarray of shape (n_test,)
    raw : ndarray of shape (n_test,)
        Scores moved and scaled to [0, 1].
    platt : ndarray of shape (n_test,)
        By a sigmoid fitted on three-fold cross-validated scores.
    """

    scores: Floats
    raw: Floats
    platt: Floats


def reference(split: Split, penalty: float, seed: int) -> Reference:
    """Fit the single machine, with `seed` for the folds of its sigmoid."""
    machine = OnlineSVC(C=penalty, gamma=GAMMA).fit(split.X, split.y)
    scores = machine.decision_function(split.X_test)
    validated = cross_validated_scores(machine, split.X, split.y, seed=seed)
    sigmoid = PlattScaling().fit(validated.scores, validated.labels)
    raw = (scores - scores.min()) / (scores.max() - scores.min())
    return Reference(scores, raw, sigmoid.predict(scores))


def bank(
    split: Split, C: float, weighting: Weighting = "balanced", n_models: int = N_MODELS
) -> ImpliedPosterior:
    """Return the fitted bank, of 199 machines as in the paper."""
    return ImpliedPosterior(n_models, C=C, gamma=GAMMA, weighting=weighting).fit(split.X, split.y)


def bank_scores(fitted: ImpliedPosterior, X: Floats) -> Floats:
    """Return the decision values of every machine of a two-class bank, shape (n, n_models)."""
    return fitted._banks[0].decisions(X)


def looked_up(scores: Floats) -> Floats:
    """Return the posterior read off where the vote first turns positive, by eq. 11 as printed.

    The equation says the surface of machine z is where P(+) = z. The vote turns positive between
    two values of z; that between them is returned.

    Examples
    --------
    >>> looked_up(np.array([[-1.0, 1.0, 1.0]]))
    array([0.375])
    """
    n, m = scores.shape
    padded = np.column_stack((scores > 0.0, np.ones(n, dtype=bool)))
    first = padded.argmax(axis=1)  # machine index, from 0; m where none is positive
    return np.asarray((first + 0.5) / (m + 1))


def random_split(data_dir: Path | str | None, seed: int) -> Result:
    """Return the measures of the three methods on one random half against the other."""
    split = Split.german(data_dir, seed)
    single = reference(split, REFERENCE_PENALTY, seed)
    fitted = bank(split, BANK_PENALTY)
    shares = fitted.vote_shares(split.X_test)
    return {
        "seed": seed,
        "raw": measures(single.raw, split.y_test),
        "platt": measures(single.platt, split.y_test),
        "implied": measures(shares, split.y_test),
        "degenerate": float((fitted.crossings(split.X_test) > 1).mean()),
    }
