"""MonitorSet: the sequential tests that watch a feed, under one level."""

from dataclasses import replace
from typing import Any, Self

import numpy as np

from online_svm.config.groups import MonitorConfig
from online_svm.metrics.sequential.calibration_monitor import CalibrationMonitor
from online_svm.metrics.sequential.exchangeability import ExchangeabilityMonitor
from online_svm.metrics.sequential.families import Finding
from online_svm.storage.arrays import nest, under
from online_svm.stream.scored_rows import ScoredRows
from online_svm.types import Arrays

CALIBRATION_SHARE = 0.7
"""Share of the level; the exchangeability tests have the rest."""

SCORER_KEPT = 10_000
"""Scored examples for which the exchangeability tests keep the scorer that they compare with."""


class MonitorSet:
    """Watches scored rows, and says what it finds.

    While all nulls hold, it ever finds anything with probability at most `config.alarm_level`,
    however long the feed is. It finds the same however rows are cut into calls, and its memory
    does not grow with them.

    Parameters
    ----------
    config : MonitorConfig
    seed : int
        Of the ranks of equal scores.
    in_order : bool
        Whether rows come in the order of their examples. In the order in which labels come, even
        independent examples are not exchangeable: those tests are left out then.

    Examples
    --------
    >>> import numpy as np
    >>> monitors, label = MonitorSet(MonitorConfig()), np.ones(60, dtype=np.int64)
    >>> said = np.tile([0.6, 0.4], (60, 1))
    >>> rows = ScoredRows(np.arange(9000, 9060), ("a", "b"), label, said, said, said, said,
    ...                   np.zeros((60, 1)), label, model=1)
    >>> [(finding.row, finding.scope, finding.name) for finding in monitors.update(rows)]
    [(37, 'overall', None), (40, 'class', 'b'), (42, 'category', '1'), (46, 'bin', '0.4-0.6')]
    """

    def __init__(self, config: MonitorConfig, seed: int = 0, *, in_order: bool = True) -> None:
        self._set(
            CalibrationMonitor(*_calibration(config)),
            ExchangeabilityMonitor(*_exchangeability(config), seed) if in_order else None,
        )

    def _set(
        self, calibration: CalibrationMonitor, exchangeability: ExchangeabilityMonitor | None
    ) -> None:
        self._calibration, self._exchangeability = calibration, exchangeability

    def update(self, rows: ScoredRows, since: int = 0) -> list[Finding]:
        """Add rows, in order; return what was found, in order.

        Parameters
        ----------
        rows : ScoredRows
        since : int
            The calibration tests look only at rows answered with at least so many examples learned:
            where labels come late, those before are of a model that was given up.
        """
        found = self._calibrated(rows, since)
        if self._exchangeability is not None:
            found += self._exchangeability.update(rows)
        return sorted(found, key=lambda finding: finding.row)

    def _calibrated(self, rows: ScoredRows, since: int) -> list[Finding]:
        if not since or (later := rows.n >= since).all():
            return self._calibration.update(rows)
        places = np.flatnonzero(later)
        found = self._calibration.update(rows.taken(later))
        return [replace(one, row=int(places[one.row])) for one in found]

    def begin_anew(self) -> None:
        """Give up all evidence so far, where a model of later examples alone is to take over.

        The evidence against the model of before says nothing of the one that follows: another test
        that was near its threshold would else raise an alarm at once, and begin the next one. The
        level holds: a test that begins at a time chosen by the past is one more of its series.
        """
        self._calibration.begin_anew()
        if self._exchangeability is not None:
            self._exchangeability.begin_anew()

    def report(self) -> dict[str, Any]:
        """Return the tests that are nearest to a finding, as JSON has it."""
        order = [] if self._exchangeability is None else self._exchangeability.report()
        return {"tests": self._calibration.report() + order}

    def state(self) -> Arrays:
        """Return the state of all tests."""
        state = nest("calibration", self._calibration.state())
        if self._exchangeability is not None:
            state |= nest("exchangeability", self._exchangeability.state())
        return state

    @classmethod
    def from_state(
        cls, state: Arrays, config: MonitorConfig, seed: int = 0, *, in_order: bool = True
    ) -> Self:
        """Return the monitors that `state` describes.

        Raises
        ------
        InvalidSnapshot, LookupError
            If an array is absent or does not fit.
        """
        calibration = CalibrationMonitor.from_state(
            under("calibration", state), *_calibration(config)
        )
        exchangeability = None
        if in_order:
            exchangeability = ExchangeabilityMonitor.from_state(
                under("exchangeability", state), *_exchangeability(config), seed
            )
        restored = cls.__new__(cls)
        restored._set(calibration, exchangeability)
        return restored


def _calibration(config: MonitorConfig) -> tuple[float, float]:
    return config.tolerance, CALIBRATION_SHARE * config.alarm_level


def _exchangeability(config: MonitorConfig) -> tuple[float, int]:
    return (1.0 - CALIBRATION_SHARE) * config.alarm_level, SCORER_KEPT
