"""Compute statistical functions from those in `elementary.py`: the same bits on any machine."""

from online_svm.compiled.kernel import kernel


@kernel
def log_gamma(x: float) -> float:
    """Return ln Gamma(x), x > 0, with an error below 1e-15 max(|ln Gamma(x)|, 10)."""


@kernel
def stirling_rest(x: float) -> float:
    """Return ln Gamma(x) - (x - 1/2) ln x + x - ln(2 pi)/2 for x >= 10."""


@kernel
def log_beta(a: float, b: float) -> float:
    """Return ln B(a, b), for a and b > 0.

    Stirling's series of the three gamma functions are combined: their large terms cancel
    analytically.
    """


@kernel
def incomplete_beta(a: float, b: float, x: float, log_beta: float) -> tuple[float, float]:
    """Return the regularised incomplete beta function I_x(a, b) and its slope in x."""


@kernel
def beta_quantile(a: float, b: float, p: float) -> float:
    """Return x with I_x(a, b) = p, by Halley's method inside a bracket."""


@kernel
def beta_fraction(a: float, b: float, x: float) -> float:
    """Return the continued fraction I_x(a, b) / (x^a (1 - x)^b / (a B(a, b))), by Lentz's method.

    It converges fast for x up to a little beyond (a + 1) / (a + b + 2).
    """


@kernel
def log_lower_gamma(a: float, s: float) -> float:
    """Return ln(x^-a e^x gamma(a, x)) at x = a + s, with the lower incomplete gamma function.

    For x near a, s carries digits that the rounded x would lose.
    """


@kernel
def erfc(x: float) -> float:
    """Return 1 - erf(x), x >= 0."""


@kernel
def normal_quantile(p: float) -> float:
    """Return the quantile of the standard normal distribution, for p <= 1/2.

    Newton's method on the logarithm of the distribution function. It is concave, so that all
    iterates stay below the quantile if the first one is.
    """
