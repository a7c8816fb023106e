"""Columns of a time: sine and cosine of hour, weekday and day of the year, and days since 1970."""

from online_svm.compiled.kernel import kernel
from online_svm.types import Floats

WAVES = 6  # number of sine and cosine columns of a time; the column of days follows


@kernel
def fill_times(cells: Floats, times: Floats) -> None:
    """Write the milliseconds since 1970 of cells, shape (n,), to `times`; NaN for other cells."""
