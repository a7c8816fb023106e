"""The simulations of Niaf et al.: their data, both machines, and one measured trial of each."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, log_expit

from online_svm import PlattScaling
from online_svm.svm.probabilistic_svc import ProbabilisticSVC
from online_svm.types import Floats

Result = dict[str, Any]

N_TRAINING, N_TEST = 200, 1000  # section 5.1; section 5.2 does not say how many train
PENALTY = 100.0  # C and C~
LINE_VARIANCE, PLANE_VARIANCE = 0.3, 0.7
LINE_MEAN, PLANE_MEAN = np.array([0.5]), np.array([0.3, 0.5])


@dataclass(frozen=True, slots=True, eq=False)
class DrawnSample:
    """Points of two Gaussians, equally many on average, about +mean and -mean.

    Attributes
    ----------
    X : ndarray of shape (n, d)
    odds : ndarray of shape (n,)
        Log odds of the class +1.
    """

    X: Floats
    odds: Floats

    @property
    def probability(self) -> Floats:
        """P(y = +1 | x), shape (n,)."""
        return np.asarray(expit(self.odds))


def sample(random: np.random.Generator, n: int, mean: Floats, variance: float) -> DrawnSample:
    """Draw n points.

    Examples
    --------
    >>> drawn = sample(np.random.default_rng(0), 5, np.array([0.5]), 0.3)
    >>> drawn.X.shape, drawn.probability.shape
    ((5, 1), (5,))
    """
    side = np.where(random.random(n) < 0.5, 1.0, -1.0)
    X = random.normal(scale=np.sqrt(variance), size=(n, len(mean))) + side[:, np.newaxis] * mean
    return DrawnSample(X, np.asarray(2.0 / variance * (X * mean).sum(axis=1)))


def plane(seed: int, n: int, noise: float) -> tuple[DrawnSample, Floats]:
    """Return points of section 5.2, and their probabilities with uniform noise of +-`noise`.

    Examples
    --------
    >>> points, noisy = plane(0, 100, 0.1)
    >>> bool(np.abs(noisy - points.probability).max() <= 0.1)
    True
    """
    random = np.random.default_rng(seed)
    points = sample(random, n, PLANE_MEAN, PLANE_VARIANCE)
    return points, points.probability + random.uniform(-noise, noise, n)


def targets(probability: Floats, eta: float) -> tuple[Floats, Floats]:
    """Return labels y (0 where a probability is kept) and probabilities (NaN where a label is).

    Their eq. 6: beyond 1 - eta or eta a probability becomes a class.

    Examples
    --------
    >>> targets(np.array([0.02, 0.3, 0.95]), 0.1)
    (array([-1.,  0.,  1.]), array([nan, 0.3, nan]))
    """
    y = np.where(probability > 1.0 - eta, 1.0, np.where(probability < eta, -1.0, 0.0))
    return y, np.where(y == 0.0, probability, np.nan)


def machine(sigma: float, eta: float) -> ProbabilisticSVC:
    """Return the unfitted P-SVM with k = exp(-|u - v|^2 / (2 sigma^2)) and C = C~ = 100."""
    return ProbabilisticSVC(C=PENALTY, C_prob=PENALTY, gamma=0.5 / sigma**2, eta=eta)


class SigmoidSVC:
    """The paper's C-SVM: classes by the threshold 1/2 (eq. 5), then Platt scaling of its scores.

    Parameters
    ----------
    sigma : float
    """

    def __init__(self, sigma: float) -> None:
        self.svm = machine(sigma, eta=0.1)  # without tubes eta only names a scale for the score
        self.sigmoid = PlattScaling()

    def fit(self, X: Floats, probability: Floats) -> "SigmoidSVC":
        """Fit the machine to the thresholded probabilities, and the sigmoid to its own scores."""
        positive = probability > 0.5
        self.svm.fit(X, np.where(positive, 1, -1))
        self.sigmoid.fit(self.svm.decision_function(X), positive)
        return self

    def log_odds(self, X: Floats) -> Floats:
        """Return the log odds of the class +1, shape (n,)."""
        return -(self.sigmoid.A_ * self.svm.decision_function(X) + self.sigmoid.B_)


def tube_log_odds(fitted: ProbabilisticSVC, X: Floats) -> Floats:
    """Return the log odds of the class +1 by a P-SVM, a f(x), shape (n,)."""
    return fitted.a_ * fitted.decision_function(X)


def divergence(truth: DrawnSample, odds: Floats) -> tuple[float, float]:
    """Return the paper's Kullback-Leibler sum, over class +1 only, and the one over both.

    Logarithms of probabilities come from log odds, so that none is log 0.

    Examples
    --------
    >>> exact = DrawnSample(np.zeros((2, 1)), np.array([-1.0, 3.0]))
    >>> divergence(exact, exact.odds)
    (0.0, 0.0)
    >>> one, both = divergence(exact, np.array([2.0, 3.0]))
    >>> one < 0 < both
    True
    """
    p = truth.probability
    for_it = p * (log_expit(truth.odds) - log_expit(odds))
    against = (1.0 - p) * (log_expit(-truth.odds) - log_expit(-odds))
    one = float(for_it.sum())
    return one, one + float(against.sum())


@dataclass(frozen=True, slots=True)
class LineTrial:
    """One simulation of section 5.1: C-SVM once, P-SVM for each eta.

    The paper gives neither sigma nor eta.
    """

    seed: int
    sigma: float
    etas: tuple[float, ...]
    variance: float = LINE_VARIANCE

    def __str__(self) -> str:
        return f"line, sigma {self.sigma:g}, seed {self.seed}"


def line_trial(trial: LineTrial) -> Result:
    """Return both divergences of the C-SVM and of each P-SVM."""
    random = np.random.default_rng(trial.seed)
    training = sample(random, N_TRAINING, LINE_MEAN, trial.variance)
    test = sample(random, N_TEST, LINE_MEAN, trial.variance)
    plain = SigmoidSVC(trial.sigma).fit(training.X, training.probability)
    tubes = {}
    for eta in trial.etas:
        fitted = machine(trial.sigma, eta).fit(training.X, *targets(training.probability, eta))
        tubes[f"{eta:g}"] = divergence(test, tube_log_odds(fitted, test.X))
    return {
        "seed": trial.seed,
        "sigma": trial.sigma,
        "csvm": divergence(test, plain.log_odds(test.X)),
        "psvm": tubes,
    }


@dataclass(frozen=True, slots=True)
class PlaneTrial:
    """One simulation of section 5.2."""

    seed: int
    noise: float
    sigma: float = 1.0
    eta: float = 0.1

    def __str__(self) -> str:
        return f"plane, noise {self.noise:g}, seed {self.seed}"


def plane_trial(trial: PlaneTrial) -> Result:
    """Return accuracy (agreement with the Bayes class) and divergences of both machines."""
    training, noisy = plane(2 * trial.seed, N_TRAINING, trial.noise)
    test, _ = plane(2 * trial.seed + 1, N_TEST, 0.0)
    plain = SigmoidSVC(trial.sigma).fit(training.X, noisy)
    tube = machine(trial.sigma, trial.eta).fit(training.X, *targets(noisy, trial.eta))
    bayes = test.odds > 0.0
    found = {
        # The C-SVM classifies by its own sign; the sigmoid's threshold may lie elsewhere.
        "csvm": (plain.svm.decision_function(test.X), plain.log_odds(test.X)),
        "psvm": (tube.decision_function(test.X), tube_log_odds(tube, test.X)),
    }
    return {
        "seed": trial.seed,
        "noise": trial.noise,
        **{
            name: {
                "accuracy": float(((scores > 0.0) == bayes).mean()),
                "divergence": divergence(test, odds),
            }
            for name, (scores, odds) in found.items()
        },
    }
