"""Evidential logistic regression against direct maximisation and quadrature; its tables."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate, optimize, special, stats
from scipy.interpolate import CubicSpline

from online_svm import EvidentialLogistic
from online_svm.calibration.evidential.logistic import cubic_spline, evaluate, gauss_legendre
from online_svm.errors import InvalidInput, InvalidSnapshot

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("n", [1, 2, 3, 16])
def test_nodes_and_weights_are_those_of_numpy(n):
    nodes, weights = np.polynomial.legendre.leggauss(n)
    expected = [(nodes + 1.0) / 2.0, weights / 2.0]
    np.testing.assert_allclose(gauss_legendre(n), expected, rtol=0, atol=1e-15)


def test_the_shared_rule_cannot_be_changed():
    with pytest.raises(ValueError, match="read-only"):
        gauss_legendre(4)[0, 0] = 0.0


@pytest.mark.parametrize("m", [4, 5, 7, 140])
def test_the_pieces_are_those_of_scipy(m):
    knots = np.cumsum(RNG.uniform(0.01, 1.0, m))
    values = RNG.normal(size=(m, 2))
    theirs = CubicSpline(knots, values)
    x = np.concatenate([knots, RNG.uniform(knots[0], knots[-1], 500)])
    np.testing.assert_allclose(
        evaluate(knots, cubic_spline(knots, values), x), theirs(x), rtol=1e-9, atol=1e-9
    )


def sample(n, seed, distance=1.5, share=0.5):
    random = np.random.default_rng(seed)
    labels = random.random(n) < share
    return 3.0 + 2.0 * (random.normal(size=n) + distance * labels), labels


def target_values(labels, targets):
    if targets == "raw":
        return labels.astype(float)
    positive, negative = labels.sum(), (~labels).sum()
    return np.where(labels, (positive + 1) / (positive + 2), 1 / (negative + 2))


class Naive:
    """Eqs 22 and 40 as they stand: maximise for each tau."""

    def __init__(self, scores, labels, targets="platt"):
        self.x, self.t = scores, target_values(labels, targets)
        start = [0.0, 0.0]
        self.best = optimize.minimize(
            lambda p: self.loss(p[0] + p[1] * self.x), start, method="BFGS", options={"gtol": 1e-9}
        )

    def loss(self, eta):
        return np.sum(np.logaddexp(0.0, eta) - self.t * eta)

    def contour(self, s, tau):
        if not 0.0 < tau < 1.0:
            return 0.0
        u = math.log(tau / (1.0 - tau))
        along = optimize.minimize_scalar(lambda a: self.loss(u + a * (self.x - s)), tol=1e-9)
        return math.exp(min(self.best.fun - along.fun, 0.0))


@pytest.mark.parametrize("targets", ["platt", "raw"])
@pytest.mark.parametrize("n", [20, 200])
def test_the_contour_is_the_naive_maximum(n, targets):
    scores, labels = sample(n, 6)
    naive = Naive(scores, labels, targets)
    fitted = EvidentialLogistic(targets=targets).fit(scores, labels)
    tau = np.linspace(0.0, 1.0, 33)
    for s in (-4.0, 3.0, 5.0, 12.0):
        expected = [naive.contour(s, t) for t in tau]
        np.testing.assert_allclose(fitted.contour(s, tau), expected, rtol=0, atol=1e-7)


SHAPES = {
    "plain": {}, "three examples": {"n": 3}, "separated": {"distance": 20.0},
    "no signal": {"distance": 0.0}, "wrong way": {"distance": -2.0},
    "rare": {"n": 1000, "share": 0.03}, "one class": {"n": 1000, "share": 0.0}, "many": {"n": 3000},
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_masses_are_the_integrals_of_the_contour(shape):
    scores, labels = sample(**{"n": 60, "seed": 8} | shape)
    fitted = EvidentialLogistic().fit(scores, labels)
    for t in (-6.0, -1.7, 0.0, 0.4, 2.2, 7.0):
        s = fitted.line_.centre + t * fitted.line_.width
        u = fitted.line_.log_odds(t)
        # Over log-odds: quadrature over tau would miss a contour that is narrow near 0 or 1.
        integrand = lambda v, s=s: fitted.contour(s, special.expit(v))[0] * stats.logistic.pdf(v)  # noqa: E731
        deviation = float(fitted.line_.deviation(np.array([t]))[0])
        ends = [u - 60.0, u - 30 * min(deviation, 1.0), u - 6 * min(deviation, 1.0), u]
        below = sum(
            integrate.quad(integrand, a, b, epsabs=1e-9, limit=400)[0] for a, b in pairwise(ends)
        )
        m1 = special.expit(u) - below
        assert fitted.mass([s])[0, 0] == pytest.approx(m1, abs=5e-6)


@pytest.mark.parametrize("model", ["likelihood", "confidence"])
def test_moving_and_scaling_the_scores_changes_nothing(model):
    scores, labels = sample(100, 11)
    first = EvidentialLogistic(model).fit(scores, labels).mass(scores)
    moved = EvidentialLogistic(model).fit(1e-3 * scores + 1e6, labels).mass(1e-3 * scores + 1e6)
    np.testing.assert_allclose(moved, first, atol=1e-6)


def test_far_out_the_slope_alone_is_believed():
    scores, labels = sample(60, 13)
    fitted = EvidentialLogistic().fit(scores, labels)
    naive = Naive(scores, labels)
    flat = optimize.minimize_scalar(lambda u: naive.loss(np.full(60, u)))
    no_slope = math.exp(naive.best.fun - flat.fun)
    low, high = fitted.predict_interval([-1e9, 1e9])
    np.testing.assert_allclose([low, high], [[0.0, no_slope], [1.0 - no_slope, 1.0]], atol=1e-6)


@pytest.mark.parametrize("alpha", [0.05, 0.3])
def test_confidence_masses_are_those_of_the_wald_interval(alpha):
    scores, labels = sample(80, 14)
    fitted = EvidentialLogistic("confidence", alpha=alpha).fit(scores, labels)
    naive = Naive(scores, labels)
    p = special.expit(naive.best.x[0] + naive.best.x[1] * scores)
    design = np.column_stack([np.ones(80), scores])
    covariance = np.linalg.inv(design.T @ (design * (p * (1 - p))[:, None]))
    where = np.array([[1.0, s] for s in (-3.0, 2.0, 5.0, 11.0)])
    u = where @ naive.best.x
    half = stats.norm.ppf(1 - alpha / 2) * np.sqrt(
        np.einsum("ij,jk,ik->i", where, covariance, where)
    )
    expected = np.column_stack(
        [(1 - alpha) * special.expit(u - half), (1 - alpha) * special.expit(-u - half)]
    )
    np.testing.assert_allclose(fitted.mass(where[:, 1])[:, :2], expected, atol=1e-6)
    lower = expected[:2, 0] / (1 - alpha)
    np.testing.assert_array_equal(
        fitted.contour(2.0, [lower[1] - 1e-3, lower[1] + 1e-3]), [alpha, 1]
    )


def test_with_one_distinct_score_every_other_is_vacuous():
    for model in ("likelihood", "confidence"):
        fitted = EvidentialLogistic(model).fit([2.0] * 9, [1] * 6 + [0] * 3)
        at, beside = fitted.mass([2.0, 2.000001])
        assert at[0] > at[1] > 0.0
        np.testing.assert_array_equal(beside, [0.0, 0.0, 1.0])
        np.testing.assert_array_equal(fitted.contour(3.0, [0.0, 0.5]), [1.0, 1.0])
        assert fitted.contour(2.0, 0.999)[0] < 1.0


def test_at_one_distinct_score_the_masses_are_those_of_its_targets():
    fitted = EvidentialLogistic().fit([2.0] * 9, [1] * 6 + [0] * 3)
    mean = (6 * 7 / 8 + 3 / 5) / 9
    likelihood = lambda t: (t**mean * (1 - t) ** (1 - mean)) ** 9  # noqa: E731
    below = integrate.quad(likelihood, 0, mean, epsabs=1e-14)[0] / likelihood(mean)
    above = integrate.quad(likelihood, mean, 1, epsabs=1e-14)[0] / likelihood(mean)
    np.testing.assert_allclose(
        fitted.predict_interval([2.0])[0], [mean - below, mean + above], atol=1e-7
    )


@pytest.mark.parametrize(
    ("scores", "labels"),
    [([0.0, 1.0], [1, 1]), ([0.0, 1.0], [0, 1]), ([0.0, 1.0], [1, 0]), ([1.0, 1.0], [1, 1])],
)
def test_raw_targets_without_an_optimum_are_refused_by_name(scores, labels):
    with pytest.raises(InvalidInput, match='targets="platt"'):
        EvidentialLogistic(targets="raw").fit(scores, labels)


def test_a_restored_map_refuses_a_contour_without_examples():
    scores, labels = sample(50, 16)
    restored = EvidentialLogistic.from_state(EvidentialLogistic().fit(scores, labels).state())
    with pytest.raises(InvalidInput, match="no examples"):
        restored.contour(0.0, [0.5])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("options", np.array([0, 2])), ("options", np.array([1, 0])), ("alpha", np.array([2.0])),
        ("line", np.zeros(0)), ("line", np.zeros(3)), ("knots", np.zeros(0)),
        ("coefficients", np.zeros(8)),
    ],
)  # fmt: skip
def test_a_state_out_of_range_is_refused(name, value):
    state = EvidentialLogistic().fit(*sample(30, 17)).state()
    with pytest.raises(InvalidSnapshot, match="state"):
        EvidentialLogistic.from_state(state | {name: value})
