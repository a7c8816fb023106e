"""MonitorSet: the sequential tests that monitor a feed, under one level."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from online_svm.config.groups import MonitorConfig
from online_svm.metrics.sequential.calibration_monitor import CalibrationMonitor, NoticeChange
from online_svm.metrics.sequential.exchangeability import ExchangeabilityMonitor
from online_svm.metrics.sequential.feature_monitor import FeatureMonitor
from online_svm.metrics.sequential.wealth import Finding
from online_svm.storage.state_schema import StateSchema, StoredArrays, part
from online_svm.stream.notice import Notice
from online_svm.stream.prediction import ScoredRows
from online_svm.types import Bools

CALIBRATION_SHARE = 0.5
"""Share of the level for the calibration tests; the exchangeability tests get the rest."""

FEATURE_SHARE = 0.05
"""Share of the notices for those of features."""

LABEL_SHARE = 0.15
"""Share of the notices for those of labels; the calibration tests get the rest."""

ROWS_PER_SCORER = 10_000  # scored examples for which the exchangeability tests keep one scorer


class MonitorSet(StoredArrays):
    """Monitors scored rows and reports findings.

    Under all nulls, the probability of any finding, over an unlimited run, is at most
    `config.alarm_level`. Findings do not depend on how rows are split into calls. Memory is
    bounded.

    `in_order` is whether rows arrive in the order of their examples. In label order, with delayed
    labels, even independent examples are not exchangeable, so the exchangeability tests are
    omitted.

    `features` watches the features of answered rows, without labels.

    `most` is the largest number of examples for which a label may stand, with a label budget. Rows
    whose draw is below 1 / `most` were wanted independently of their answer: the exchangeability
    tests read these alone, because a choice by answers would break the order.
    """

    _stored = StateSchema(part("_calibration"), part("_exchangeability"), part("features"))

    def __init__(
        self,
        config: MonitorConfig,
        seed: int = 0,
        *,
        in_order: bool = True,
        most: int = 1,
        n_slices: int = 0,
    ) -> None:
        self._most = most
        share, level = CALIBRATION_SHARE, config.alarm_level
        every = config.notice_every / (1.0 - FEATURE_SHARE - LABEL_SHARE)
        self._calibration = CalibrationMonitor(
            config.tolerance, share * level, every, most=most, n_slices=n_slices
        )
        self.features = FeatureMonitor(config.notice_every / FEATURE_SHARE, seed)
        self._exchangeability = None
        if in_order:
            self._exchangeability = ExchangeabilityMonitor(
                (1.0 - share) * level, ROWS_PER_SCORER, seed, config.notice_every / LABEL_SHARE
            )

    def update(self, rows: ScoredRows, since: int = 0) -> list[Finding | NoticeChange]:
        """Add rows, in order; return findings and changes of the open notices, in order.

        The calibration tests skip rows answered with fewer than `since` examples learned: with
        delayed labels, these rows belong to a discarded model.
        """
        found = _found(self._calibration.update, rows, rows.n >= since if since else None)
        if self._exchangeability is not None:
            chosen = None if rows.draws is None else rows.draws < 1.0 / self._most
            found += _found(self._exchangeability.update, rows, chosen)
        return sorted(found, key=lambda finding: finding.row)

    def restart(self) -> None:
        """Discard past evidence, because a model of later examples alone takes over.

        Evidence against the old model does not apply to the new one: a test close to its threshold
        would otherwise raise an alarm at once and trigger another restart. The level holds, because
        a test that starts at a time chosen from the past is one more test of its series.
        """
        self._calibration.restart()
        self.features.restart()
        if self._exchangeability is not None:
            self._exchangeability.restart()

    def notices(self) -> tuple[Notice, ...]:
        """Return the open notices: of the probabilities first."""
        order = () if self._exchangeability is None else self._exchangeability.notices()
        return self._calibration.notices() + order

    def close_notices(self) -> None:
        """Close notices of bins, categories and slices; see `CalibrationMonitor`."""
        self._calibration.close_notices()

    def report(self) -> list[dict[str, Any]]:
        """Return the tests closest to a finding, ready for JSON."""
        order = [] if self._exchangeability is None else self._exchangeability.report()
        return self._calibration.report() + order


def _found(
    update: Callable[[ScoredRows], Sequence[Finding | NoticeChange]],
    rows: ScoredRows,
    chosen: Bools | None,
) -> list[Finding | NoticeChange]:
    """Add the chosen rows, or all without `chosen`; return what was found."""
    if chosen is None or chosen.all():
        return [*update(rows)]
    places = np.flatnonzero(chosen)
    return [replace(one, row=int(places[one.row])) for one in update(rows.taken(chosen))]
