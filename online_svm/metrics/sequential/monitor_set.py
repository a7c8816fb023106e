"""MonitorSet: the sequential tests that watch a feed, under one level."""

from typing import Any, Self

import numpy as np

from online_svm.metrics.sequential.bet_processes import BetProcesses
from online_svm.metrics.sequential.finding import Finding
from online_svm.monitor_config import MonitorConfig
from online_svm.storage.arrays import nest, under
from online_svm.stream.scored_rows import ScoredRows
from online_svm.types import Arrays, Floats


class MonitorSet:
    """Watches scored rows, and says what it finds.

    While all nulls hold, it ever finds anything with probability at most `config.alarm_level`.

    Parameters
    ----------
    config : MonitorConfig

    Examples
    --------
    >>> monitors, label = MonitorSet(MonitorConfig()), np.ones(60, dtype=np.int64)
    >>> said = np.tile([0.6, 0.4], (60, 1))
    >>> rows = ScoredRows(np.arange(60), ("a", "b"), label, said, said, said, said,
    ...                   np.zeros((60, 1)), label, model=1)
    >>> [(finding.row, finding.scope) for finding in monitors.update(rows)]
    [(18, 'overall'), (39, 'overall')]
    """

    def __init__(self, config: MonitorConfig) -> None:
        self._config = config
        self._bets = BetProcesses([config.tolerance], [config.alarm_level])
        self._since = np.full(len(self._bets), -1, dtype=np.int64)

    def update(self, rows: ScoredRows) -> list[Finding]:
        """Add rows, in order; return what was found, in order."""
        values, found, begin = _misses(rows)[:, None], [], 0
        while begin < len(rows):
            self._since[self._since < 0] = rows.n[begin]
            begin = self._bets.update(values, begin)
            found += self._found(begin - 1)
        return found

    def _found(self, row: int) -> list[Finding]:
        found = []
        for j in np.flatnonzero(self._bets.rejected):
            found.append(
                Finding(
                    row,
                    "calibration",
                    "overall",
                    None,
                    "tolerant-bets",
                    float(self._bets.log_wealth[j]),
                    float(self._bets.thresholds[j]),
                    int(self._since[j]),
                )
            )
            self._bets.restart(int(j))
            self._since[j] = -1
        return found

    def report(self) -> dict[str, Any]:
        """Return how near each test is to a finding, as JSON has it."""
        names = ["overall"]
        logs, limits = self._bets.log_wealth, self._bets.thresholds
        return {
            name: {"log_wealth": float(logs[j]), "threshold": float(limits[j])}
            for j, name in enumerate(names)
        }

    def state(self) -> Arrays:
        """Return the wealth of all tests."""
        return nest("bets", self._bets.state()) | {"since": self._since.copy()}

    @classmethod
    def from_state(cls, state: Arrays, config: MonitorConfig) -> Self:
        """Return the monitors that `state` describes.

        Raises
        ------
        InvalidSnapshot, LookupError
            If an array is absent or does not fit.
        """
        restored = cls(config)
        tests = [config.tolerance], [config.alarm_level]
        restored._bets = BetProcesses.from_state(under("bets", state), *tests)
        restored._since = state["since"].copy()
        return restored


def _misses(rows: ScoredRows) -> Floats:
    """Return, for each row, whether the predicted label is the true one less its probability."""
    m = len(rows)
    predicted = np.argmax(rows.point, axis=1)
    return np.asarray((predicted == rows.columns) - rows.point[np.arange(m), predicted])
