"""MonitorSet: the sequential tests that monitor a feed, under one level."""

from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np

from online_svm.config.groups import MonitorConfig
from online_svm.config.semantics import SEMANTICS
from online_svm.metrics.sequential.calibration_monitor import CalibrationMonitor
from online_svm.metrics.sequential.exchangeability import ExchangeabilityMonitor
from online_svm.metrics.sequential.families import Finding
from online_svm.storage.state import nest, under
from online_svm.stream.scored_rows import ScoredRows
from online_svm.types import Arrays, Bools

CALIBRATION_SHARE, CALIBRATION_SHARE_BEFORE_6 = 0.5, 0.7
"""Share of the level for the calibration tests; the exchangeability tests get the rest."""

ROWS_PER_SCORER = 10_000  # scored examples for which the exchangeability tests keep one scorer


class MonitorSet:
    """Monitors scored rows and reports findings.

    Under all nulls, the probability of any finding, over an unlimited run, is at most
    `config.alarm_level`. Findings do not depend on how rows are split into calls. Memory is
    bounded.

    `in_order` is whether rows arrive in the order of their examples. In label order, with delayed
    labels, even independent examples are not exchangeable, so the exchangeability tests are
    omitted. `semantics` is of the feed: the shares of the labels are tested since semantics 6.

    `most` is the largest number of examples for which a label may stand, with a label budget. Rows
    whose draw is below 1 / `most` were wanted independently of their answer: the exchangeability
    tests read these alone, because a choice by answers would break the order.
    """

    def __init__(
        self,
        config: MonitorConfig,
        seed: int = 0,
        *,
        in_order: bool = True,
        semantics: int = SEMANTICS,
        most: int = 1,
    ) -> None:
        self._most = most
        levels = _Levels.of(config, semantics)
        self._calibration = CalibrationMonitor(config.tolerance, levels.calibration, most)
        self._exchangeability = None
        if in_order:
            self._exchangeability = ExchangeabilityMonitor(
                levels.exchangeability, ROWS_PER_SCORER, seed, tests_labels=semantics >= 6
            )

    def update(self, rows: ScoredRows, since: int = 0) -> list[Finding]:
        """Add rows, in order; return the findings, in order.

        The calibration tests skip rows answered with fewer than `since` examples learned: with
        delayed labels, these rows belong to a discarded model.
        """
        found = _found(self._calibration, rows, rows.n >= since if since else None)
        if self._exchangeability is not None:
            chosen = None if rows.draws is None else rows.draws < 1.0 / self._most
            found += _found(self._exchangeability, rows, chosen)
        return sorted(found, key=lambda finding: finding.row)

    def restart(self) -> None:
        """Discard past evidence, because a model of later examples alone takes over.

        Evidence against the old model does not apply to the new one: a test close to its threshold
        would otherwise raise an alarm at once and trigger another restart. The level holds, because
        a test that starts at a time chosen from the past is one more test of its series.
        """
        self._calibration.restart()
        if self._exchangeability is not None:
            self._exchangeability.restart()

    def report(self) -> dict[str, Any]:
        """Return the tests closest to a finding, ready for JSON."""
        order = [] if self._exchangeability is None else self._exchangeability.report()
        return {"tests": self._calibration.report() + order}

    def state(self) -> Arrays:
        """Return the state of all tests as arrays."""
        state = nest("calibration", self._calibration.state())
        if self._exchangeability is not None:
            state |= nest("exchangeability", self._exchangeability.state())
        return state

    @classmethod
    def from_state(
        cls, state: Arrays, config: MonitorConfig, seed: int = 0, **options: Any
    ) -> Self:
        """Restore monitors that were made with these arguments.

        Raises InvalidSnapshot or LookupError if an array is absent or does not fit.
        """
        restored = cls(config, seed, **options)
        restored._calibration.restore(under("calibration", state))
        if restored._exchangeability is not None:
            restored._exchangeability.restore(under("exchangeability", state))
        return restored


def _found(
    tests: CalibrationMonitor | ExchangeabilityMonitor, rows: ScoredRows, chosen: Bools | None
) -> list[Finding]:
    """Add the chosen rows, or all without `chosen`; return the findings."""
    if chosen is None or chosen.all():
        return tests.update(rows)
    places = np.flatnonzero(chosen)
    return [replace(one, row=int(places[one.row])) for one in tests.update(rows.taken(chosen))]


class _Levels(NamedTuple):
    """The level of each family of tests."""

    calibration: float
    exchangeability: float

    @classmethod
    def of(cls, config: MonitorConfig, semantics: int) -> Self:
        share = CALIBRATION_SHARE if semantics >= 6 else CALIBRATION_SHARE_BEFORE_6
        return cls(share * config.alarm_level, (1.0 - share) * config.alarm_level)
