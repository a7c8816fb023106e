"""Functions of statistics, made of those in `elementary.py`: the same bits on any machine."""

import math

import numpy as np

from online_svm.compiled.elementary import exp, log, log1p
from online_svm.compiled.intrinsics import fma
from online_svm.compiled.jit import jit

LOG_ROOT_TWO_PI = 0.9189385332046728
ROOT_PI = 1.772453850905516
STIRLING = 10.0  # from there on Stirling's series is exact to the last place
TINY = 1e-300
SMALLEST_TERM = 1e-17  # of a sum: less is not added
MOST_TERMS = 1_000_000
STEPS = 200


@jit
def log_gamma(x: float) -> float:
    """Return ln Gamma(x), x > 0: within 1e-15 of the larger of it and 10.

    Examples
    --------
    >>> round(log_gamma(5.0), 12), round(log_gamma(0.5), 12)
    (3.178053830348, 0.572364942925)
    """
    product = 1.0
    while x < STIRLING:
        product *= x
        x += 1.0
    return (x - 0.5) * log(x) - x + LOG_ROOT_TWO_PI + stirling_rest(x) - log(product)


@jit
def stirling_rest(x: float) -> float:
    """Return ln Gamma(x) - (x - 1/2) ln x + x - ln(2 pi)/2 for x >= `STIRLING`."""
    z = 1.0 / (x * x)
    p = fma(z, 1.0 / 156.0, -691.0 / 360360.0)
    p = fma(z, p, 1.0 / 1188.0)
    p = fma(z, p, -1.0 / 1680.0)
    p = fma(z, p, 1.0 / 1260.0)
    p = fma(z, p, -1.0 / 360.0)
    return fma(z, p, 1.0 / 12.0) / x


@jit
def log_beta(a: float, b: float) -> float:
    """Return ln B(a, b), for a and b > 0.

    By Stirling's series for all three gamma functions at once: their large terms cancel on paper.

    Examples
    --------
    >>> round(log_beta(2.0, 3.0), 12)
    -2.484906649788
    """
    # 1. B(a, b) = B(a + 1, b) (a + b) / a.
    ratio = 1.0
    while a < STIRLING:
        ratio *= (a + b) / a
        a += 1.0
    while b < STIRLING:
        ratio *= (a + b) / b
        b += 1.0
    # 2. Stirling's series; the smaller share by its logarithm, the larger one by log1p.
    a, b = min(a, b), max(a, b)
    share = a / (a + b)
    rest = stirling_rest(a) + stirling_rest(b) - stirling_rest(a + b)
    powers = (a - 0.5) * log(share) + b * log1p(-share)
    return powers - 0.5 * log(b) + LOG_ROOT_TWO_PI + rest + log(ratio)


@jit
def incomplete_beta(a: float, b: float, x: float, log_beta: float) -> tuple[float, float]:
    """Return the regularised incomplete beta function I_x(a, b), given ln B(a, b), and its slope.

    Examples
    --------
    >>> value, slope = incomplete_beta(2.0, 3.0, 0.5, log_beta(2.0, 3.0))
    >>> round(value, 12), round(slope, 12)
    (0.6875, 1.5)
    """
    front = exp(a * log(x) + b * log1p(-x) - log_beta)
    slope = front / (x * (1.0 - x))
    if x < (a + 1.0) / (a + b + 2.0):
        return front * beta_fraction(a, b, x) / a, slope
    return 1.0 - front * beta_fraction(b, a, 1.0 - x) / b, slope


@jit
def beta_quantile(a: float, b: float, p: float) -> float:
    """Return x with I_x(a, b) = p, by Halley's method inside a bracket.

    Examples
    --------
    >>> round(beta_quantile(1.0, 2.0, 0.75), 12), beta_quantile(1.0, 2.0, 0.0)
    (0.5, 0.0)
    """
    if not 0.0 < p < 1.0:
        return min(max(p, 0.0), 1.0)
    scale = log_beta(a, b)
    low, high = 0.0, 1.0
    x = _near_quantile(a, b, p) if a >= 1.0 and b >= 1.0 else a / (a + b)
    for _ in range(STEPS):
        # 1. Where x lies: narrow the bracket.
        value, slope = incomplete_beta(a, b, x, scale)
        if value > p:
            high = x
        else:
            low = x
        # 2. Newton's step, bent by the curvature.
        step = (value - p) / slope
        bend = step * ((a - 1.0) / x - (b - 1.0) / (1.0 - x))
        step /= 1.0 - 0.5 * min(max(bend, -1.0), 1.0)
        # 3. What is left is about the cube of the step, in deviations of the distribution.
        is_small = step * step * (a + b) <= 1e-11 * x * (1.0 - x)
        if is_small and abs(step) <= 1e-5 * min(x, 1.0 - x):
            return x - step
        # 4. Half the bracket where the step leaves it.
        following = x - step
        if not low < following < high:
            following = 0.5 * (low + high)
            if following in (low, high):
                return following
        x = following
    return x


@jit
def _near_quantile(a: float, b: float, p: float) -> float:
    """Return what the quantile of a beta distribution is near to, inside (0, 1), for a, b >= 1.

    Abramowitz and Stegun, 26.5.22, with the normal quantile of 26.2.22.
    """
    t = math.sqrt(-2.0 * log(min(p, 1.0 - p)))
    z = t - (2.30753 + 0.27061 * t) / (1.0 + t * (0.99229 + 0.04481 * t))
    z = z if p < 0.5 else -z
    of_a, of_b = 1.0 / (2.0 * a - 1.0), 1.0 / (2.0 * b - 1.0)
    width, third = 2.0 / (of_a + of_b), (z * z - 3.0) / 6.0
    bend = (of_b - of_a) * (third + 5.0 / 6.0 - 2.0 / (3.0 * width))
    w = z * math.sqrt(width + third) / width - bend
    x = a / (a + b * exp(2.0 * w))
    return x if 0.0 < x < 1.0 else a / (a + b)


@jit
def beta_fraction(a: float, b: float, x: float) -> float:
    """Return the continued fraction in I_x(a, b) = x^a (1 - x)^b / (a B(a, b)) times it.

    By Lentz's method, which converges fast up to (a + 1) / (a + b + 2) and a little beyond.

    Examples
    --------
    >>> round(beta_fraction(2.0, 3.0, 0.5) * 0.5**5 * 12.0 / 2.0, 12)
    0.6875
    """
    c, d = 1.0, 1.0 / _away_from_zero(1.0 - (a + b) * x / (a + 1.0))
    value = d
    for m in range(1, 10_000):
        even = m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m))
        d = 1.0 / _away_from_zero(1.0 + even * d)
        c = _away_from_zero(1.0 + even / c)
        value *= d * c
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0))
        d = 1.0 / _away_from_zero(1.0 + odd * d)
        c = _away_from_zero(1.0 + odd / c)
        value *= d * c
        if abs(d * c - 1.0) < 1e-15:
            break
    return value


@jit
def _away_from_zero(value: float) -> float:
    return value if abs(value) > TINY else TINY


@jit
def log_lower_gamma(a: float, s: float) -> float:
    """Return the logarithm of x^-a e^x gamma(a, x), with the lower incomplete gamma function.

    Here x = a + s, which is given by s since that decides.

    Examples
    --------
    >>> round(log_lower_gamma(1.0, 1.0), 12)  # exp(2) (1 - exp(-2)) / 2
    1.161439361571
    """
    x = a + s
    if s <= 30.0 + 4.0 * math.sqrt(a):
        # 1. Its series, sum of x^n / (a (a + 1) ... (a + n)).
        term = total = 1.0 / a
        for n in range(1, MOST_TERMS):
            term *= x / (a + n)
            total += term
            if term < SMALLEST_TERM * total:
                break
        return log(total)
    # 2. Far above a: the whole gamma function less the upper one.
    if a < STIRLING:
        whole = x - a * log(x) + log_gamma(a)
    else:
        whole = s - a * log1p(s / a) - 0.5 * log(a) + LOG_ROOT_TWO_PI + stirling_rest(a)
    return whole + log1p(-_upper_gamma(a, x) * exp(-whole))


@jit
def _upper_gamma(a: float, x: float) -> float:
    """Return x^-a e^x times the upper incomplete gamma function, x > a + 1, by Lentz's method."""
    b = x + 1.0 - a
    c, d = 1.0 / TINY, 1.0 / b
    value = d
    for n in range(1, MOST_TERMS):
        step = -n * (n - a)
        b += 2.0
        d = 1.0 / _away_from_zero(step * d + b)
        c = _away_from_zero(b + step / c)
        value *= d * c
        if abs(d * c - 1.0) < 1e-15:
            break
    return value


@jit
def erfc(x: float) -> float:
    """Return 1 - erf(x), x >= 0.

    Examples
    --------
    >>> erfc(0.0), round(erfc(1.0), 12)
    (1.0, 0.15729920705)
    """
    square = x * x
    power = exp(-square) * (1.0 - fma(x, x, -square))  # of the square with all its bits
    if x < 1.0:
        # 1. The series of erf: the sum of 2^n x^(2n+1) / (1 3 5 ... (2n+1)).
        term = total = x
        for n in range(1, MOST_TERMS):
            term *= 2.0 * square / (2 * n + 1)
            total += term
            if term <= SMALLEST_TERM * total:
                break
        return 1.0 - 2.0 / ROOT_PI * power * total
    # 2. The upper incomplete gamma function at 1/2.
    return power * x * _upper_gamma(0.5, square) / ROOT_PI if x < 27.3 else 0.0


@jit
def normal_quantile(p: float) -> float:
    """Return the quantile of the standard normal distribution, for p <= 1/2.

    By Newton's method on the logarithm of the distribution function, which is concave: from a
    start below the quantile every step stays below it.

    Examples
    --------
    >>> round(normal_quantile(0.025), 12), normal_quantile(0.0)
    (-1.95996398454, -inf)
    """
    if not 0.0 < p < 0.5:
        return -np.inf if p <= 0.0 else 0.0
    wanted = log(p)
    x = -math.sqrt(-2.0 * wanted)
    for _ in range(STEPS):
        tail = 0.5 * erfc(-x * math.sqrt(0.5))
        density = exp(-0.5 * x * x - LOG_ROOT_TWO_PI)
        step = (wanted - log(tail)) * tail / density
        x += step
        if not step > 1e-15 * abs(x):
            break
    return x
