"""The logistic function, with bits that depend on its argument alone."""

from online_svm.compiled.elementary import exp_nonpositive
from online_svm.compiled.jit import jit


@jit
def logistic(value: float) -> float:
    """Return 1 / (1 + exp(-value)), without overflow.

    Examples
    --------
    >>> logistic(0.0), logistic(-800.0)
    (0.5, 0.0)
    """
    e = exp_nonpositive(-abs(value))
    return 1.0 / (1.0 + e) if value >= 0.0 else e / (1.0 + e)
