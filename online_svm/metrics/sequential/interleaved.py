"""Bets on labels that come late.

Where the label of an example is known only h examples later, the y - p of the h examples before it
were not known when p was announced. A product of bets over all examples is then no supermartingale
under |E[y - p | what was known]| <= tolerance: neighbours may fail together (Henzi & Ziegel 2022,
"Valid sequential inference on probability forecast performance", and its erratum). Each h-th
example alone is well behaved. So there are h processes in turn, each with threshold h / level. The
mean of their wealths would be a smaller hurdle, but it is no supermartingale either.
"""

from typing import Self

import numpy as np

from online_svm.compiled.elementary import log, logs
from online_svm.compiled.jit import jit
from online_svm.errors import InvalidInput, InvalidSnapshot
from online_svm.metrics.sequential.bets import BETS, bet_on, share_of_start
from online_svm.storage.arrays import check_floats, check_indices
from online_svm.types import Arrays, Bools, Floats, Ints


class InterleavedBets:
    """One test of |E[y_t - p_t | what was known when p_t was announced]| <= tolerance.

    Parameters
    ----------
    horizon : int
        Rows after which a label is known, >= 1; 1 is the test without delay.
    tolerance, level : float

    Raises
    ------
    InvalidInput
        If a parameter is out of range.

    Examples
    --------
    >>> test = InterleavedBets(horizon=2, tolerance=0.02, level=0.01)
    >>> test.update(np.full(100, 0.5))
    >>> test.rejected
    array([ True])
    """

    def __init__(self, horizon: int, tolerance: float, level: float) -> None:
        if not (horizon >= 1 and 0.0 <= tolerance < 1.0 and 0.0 < level < 1.0):
            raise InvalidInput(
                "horizon, tolerance, level: must be >= 1, in [0, 1) and in (0, 1), got "
                f"{horizon}, {tolerance} and {level}"
            )
        self.horizon, self.tolerance = horizon, tolerance
        self.threshold = log(horizon / level)
        self._stakes = np.zeros((horizon, 2, len(BETS)))
        self._waiting = np.ones(horizon)
        self._greatest = np.ones(1)
        self._rows = np.zeros(1, dtype=np.int64)

    def update(self, values: Floats) -> None:
        """Add y - p of rows, in the order in which they were announced, shape (m,)."""
        _in_turn(values, self.tolerance, self._stakes, self._waiting, self._greatest, self._rows)

    @property
    def log_wealth(self) -> Floats:
        """Natural logarithm of the greatest wealth that any process ever had, shape (1,)."""
        return logs(self._greatest)

    @property
    def rejected(self) -> Bools:
        """Whether any process has ever reached horizon / level, shape (1,)."""
        return np.asarray(self.log_wealth >= self.threshold)

    def state(self) -> Arrays:
        """Return the stakes of all processes."""
        names = ("stakes", "waiting", "greatest", "rows")
        return {name: getattr(self, f"_{name}").copy() for name in names}

    @classmethod
    def from_state(cls, state: Arrays, horizon: int, tolerance: float, level: float) -> Self:
        """Return the test that `state` describes.

        Raises
        ------
        InvalidSnapshot
            If an array is absent or does not fit.
        """
        restored = cls(horizon, tolerance, level)
        try:
            for name, array in restored.state().items():
                if name != "rows":
                    check_floats(state, name, array.shape)
            check_indices(state, "rows", (1,), 1 << 62)
        except (KeyError, ValueError) as error:
            raise InvalidSnapshot(f"interleaved: {error}") from error
        for name in restored.state():
            setattr(restored, f"_{name}", state[name].copy())
        return restored


@jit
def _in_turn(
    values: Floats,
    tolerance: float,
    stakes: Floats,
    waiting: Floats,
    greatest: Floats,
    rows: Ints,
) -> None:
    for i in range(len(values)):
        j, turn = rows[0] % len(stakes), rows[0] // len(stakes)
        rows[0] += 1
        start = share_of_start(turn + 1)
        waiting[j] -= start
        begun = bet_on(values[i], tolerance, start / (2 * len(BETS)), stakes[j])
        greatest[0] = max(greatest[0], max(waiting[j], 0.0) + begun)
