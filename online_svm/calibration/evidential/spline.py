"""The cubic spline through values at knots, by one elimination in a fixed order."""

import numpy as np

from online_svm.compiled.jit import jit
from online_svm.types import Floats


def cubic_spline(knots: Floats, values: Floats) -> Floats:
    """Return the cubic pieces of the spline through values, with no knot after the first and last.

    Its first two pieces are one polynomial, and so are its last two ("not a knot"). At least four
    knots.

    Parameters
    ----------
    knots : ndarray of shape (m,)
        Ascending.
    values : ndarray of shape (m, k)
        Of k functions.

    Returns
    -------
    ndarray of shape (4, m - 1, k)
        Of (x - knot)^3, (x - knot)^2, x - knot and 1, where the knot is that at which the piece
        begins.

    Examples
    --------
    >>> knots = np.arange(5.0)
    >>> cubic_spline(knots, knots[:, None] ** 3)[:, 2, 0].round(9).tolist()
    [1.0, 6.0, 12.0, 8.0]
    """
    found = np.empty((4, len(knots) - 1, values.shape[1]))
    _fit(knots, values, found)
    return found


def evaluate(knots: Floats, coefficients: Floats, x: Floats) -> Floats:
    """Return the values of a spline, shape (n, k); those beyond the knots by the outermost pieces.

    Examples
    --------
    >>> knots = np.arange(5.0)
    >>> found = evaluate(knots, cubic_spline(knots, knots[:, None] ** 3), np.array([1.5, 5.0]))
    >>> found[:, 0].round(9).tolist()
    [3.375, 125.0]
    """
    piece = np.clip(np.searchsorted(knots, x, side="right") - 1, 0, len(knots) - 2)
    at = (x - knots[piece])[:, None]
    a, b, c, d = coefficients[:, piece]
    return np.asarray(((a * at + b) * at + c) * at + d)


@jit
def _fit(knots: Floats, values: Floats, found: Floats) -> None:
    """Find the slopes at the knots from a tridiagonal system, by elimination from the front."""
    m = len(knots)
    h = knots[1:] - knots[:-1]
    diagonal, above, slopes = np.empty(m), np.empty(m), np.empty(m)
    for k in range(values.shape[1]):
        rise = (values[1:, k] - values[:-1, k]) / h
        # 1. At the first knot the third derivative does not jump after the first piece.
        first, last = h[0] + h[1], h[m - 2] + h[m - 3]
        diagonal[0], above[0] = h[1], first
        slopes[0] = ((h[0] + 2.0 * first) * h[1] * rise[0] + h[0] * h[0] * rise[1]) / first
        # 2. At inner knots the second derivative does not jump.
        for i in range(1, m - 1):
            factor = h[i] / diagonal[i - 1]
            diagonal[i] = 2.0 * (h[i - 1] + h[i]) - factor * above[i - 1]
            above[i] = h[i - 1]
            slopes[i] = 3.0 * (h[i] * rise[i - 1] + h[i - 1] * rise[i]) - factor * slopes[i - 1]
        # 3. At the last as at the first; then back.
        end = (2.0 * last + h[m - 2]) * h[m - 3] * rise[m - 2] + h[m - 2] * h[m - 2] * rise[m - 3]
        factor = last / diagonal[m - 2]
        slopes[m - 1] = (end / last - factor * slopes[m - 2]) / (h[m - 3] - factor * above[m - 2])
        for i in range(m - 2, -1, -1):
            slopes[i] = (slopes[i] - above[i] * slopes[i + 1]) / diagonal[i]
        # 4. The pieces, from values and slopes at their ends.
        for i in range(m - 1):
            bend = (slopes[i] + slopes[i + 1] - 2.0 * rise[i]) / h[i]
            found[0, i, k] = bend / h[i]
            found[1, i, k] = (rise[i] - slopes[i]) / h[i] - bend
            found[2, i, k], found[3, i, k] = slopes[i], values[i, k]
