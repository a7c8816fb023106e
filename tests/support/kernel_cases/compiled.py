"""Inputs of the other kernels of `online_svm.compiled`, and of `stream`: sums, text of answers."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from kernel_cases._inputs import flag, positive, powers_of_ten, whole
from kernel_cases.elementary import numbers
from online_svm.compiled import elementary, ordered_sums, special
from online_svm.compiled.kernels import Kernel
from online_svm.stream import answer_text, split


def _kernel(rng: np.random.Generator) -> Kernel:
    name = ("linear", "poly", "rbf")[rng.integers(3)]
    return Kernel(
        name,
        gamma=float(rng.exponential()),
        degree=whole(rng, 1, 6),
        coef0=float(rng.exponential()),
        wide=flag(rng, 2),
    )


def _gram(rng: np.random.Generator) -> Any:
    m, n, d = whole(rng, 0, 4), whole(rng, 1, 300), whole(rng, 1, 10)
    return _kernel(rng)(rng.normal(size=(m, d)), rng.normal(size=(n, d)))


def _terms(rng: np.random.Generator) -> Any:
    n = whole(rng, 0, 300)
    return rng.normal(size=n) * powers_of_ten(rng.integers(-8, 8, n))


def _dot(rng: np.random.Generator) -> Any:
    terms = _terms(rng)
    weights = rng.normal(size=len(terms))
    return ordered_sums.dot(terms, weights), ordered_sums.dot(terms.astype(np.float32), weights)


def _answer_text(rng: np.random.Generator) -> Any:
    m, k, distributions = whole(rng, 1, 5), whole(rng, 1, 4), whole(rng, 1, 4)
    points = rng.dirichlet(np.ones(k), (m, distributions)).reshape(m, -1)
    others = rng.normal(size=(m, 3)) * powers_of_ten(rng.integers(-9, 9, (m, 3)))
    numbers = np.hstack([points, rng.random((m, 2 * k)), others])
    if flag(rng, 3):
        numbers[0, -1] = answer_text.FIRST_TEXT + whole(rng, 0, 2)
    wholes = np.stack([rng.integers(0, k, m), rng.integers(-1, 2**62, m), rng.integers(-1, 2, m)])
    kinds = answer_text.Value
    values = [(kinds.NUMBER, i, 0) for i in range(numbers.shape[1])]
    values += [(kinds.OWN_NUMBER, 0, 0), (kinds.WHOLE, 1, 0), (kinds.TEXT, 2, 0)]
    plan = np.array(
        [(3 * i + 1, *value) for i, value in enumerate([*values, (kinds.NOTHING, 0, 0)])]
    )
    fixed = rng.integers(32, 127, plan[-1, 0]).astype(np.uint8)
    texts = rng.integers(32, 127, 9).astype(np.uint8), np.array([0, 4, 9])
    out, ends = np.zeros(m * (len(fixed) + 25 * len(plan)), np.uint8), np.empty(m, np.int64)
    answer_text.write_rows(plan, fixed, texts, k, distributions, numbers, wholes, out, ends)
    return out, ends, numbers


def _beta(rng: np.random.Generator) -> Any:
    a, b = positive(rng, 2).tolist()
    x = float(rng.uniform())
    x_8 = math.prod([x] * 8)  # a power of the C library has other last bits elsewhere
    scale = special.log_beta(a, b)
    return (
        scale,
        special.incomplete_beta(a, b, x, scale),
        special.beta_fraction(a, b, x),
        [special.beta_quantile(a, b, p) for p in (0.0, 1.0, x, x_8, 1.0 - x_8)],
    )


def _gamma(rng: np.random.Generator) -> Any:
    a, s = positive(rng, 2).tolist()
    lower = [special.log_lower_gamma(a, t) for t in (0.0, s, 30.0 + s, -a * float(rng.uniform()))]
    return special.log_gamma(a), special.stirling_rest(10.0 + a), lower


def _normal(rng: np.random.Generator) -> Any:
    p = float(rng.uniform(0.0, 0.5))
    quantiles = [special.normal_quantile(q) for q in (p, p**9, 0.0, 0.5, -1.0)]
    return quantiles, [special.erfc(float(x)) for x in rng.uniform(0.0, 30.0, 5)]


def _each(function: Callable[[float], float]) -> Callable[[np.random.Generator], Any]:
    return lambda rng: [function(x) for x in numbers(rng)]


CASES = {
    "answer_text": _answer_text,
    "beta": _beta,
    "diagonal": lambda rng: _kernel(rng).diagonal(rng.normal(size=(7, whole(rng, 1, 9)))),
    "dot": _dot,
    "gamma": _gamma,
    "gram": _gram,
    "logistic": _each(elementary.logistic),
    "logistics": lambda rng: elementary.logistics(np.array(numbers(rng))),
    "logit": lambda rng: [elementary.logit(p) for p in (*rng.uniform(size=20).tolist(), 0.0, 1.0)],
    "logits": lambda rng: elementary.logits(np.append(rng.uniform(size=20), [0.0, 1.0, 0.5])),
    "normal": _normal,
    "sum_rows": lambda rng: ordered_sums.sum_rows(rng.normal(size=rng.integers(1, 9, 2))),
    "total": lambda rng: ordered_sums.total(_terms(rng)),
    "uniform": lambda rng: split._uniform(whole(rng, 2**63), 3, 9),
}
