"""Detectors of packages that are installed for a comparison alone."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from typing_extensions import override

from online_svm.types import Floats
from scripts.bench.monitors.detectors import Detector, Path
from scripts.bench.monitors.worlds import BURNT, Stream
from scripts.bench.packages import peer_package, unwarned


class OnlineCpJumper(Path):
    """The simple jumper of online-cp on conformal p-values of 1 - P(true label)."""

    is_slow = True

    @override
    def path(self, stream: Stream, begin: int) -> Floats:
        jumper: Any = peer_package("monitors", "online_cp", "pip install online-cp").SimpleJumper(
            store_p_values=False
        )
        rows, rng = stream.rows.part(begin, len(stream.rows)), np.random.default_rng(0)
        strange = 1.0 - rows.point[np.arange(len(rows)), rows.columns]
        found = np.empty(len(rows))
        for i in range(len(rows)):
            above = np.count_nonzero(strange[: i + 1] > strange[i])
            equal = np.count_nonzero(strange[: i + 1] == strange[i])
            jumper.update((above + rng.random() * equal) / (i + 1))
            found[i] = jumper.logM
        return found


class GlideRisk(Detector):
    """glide-py's prediction-powered monitor of the error rate, above what it was before.

    Batches of 100: half of them labelled, the announced error beside all, since it needs answers
    without a label. At its default confidence; the sensitivity is how far above the error rate of
    the examples before its threshold lies. An alarm is one of its running mean.
    """

    _MARGINS = (0.2, 0.14, 0.1, 0.07, 0.05, 0.035, 0.025, 0.018, 0.01, 0.005, 0.0, -0.005, -0.01)
    _BATCH = 100

    @override
    def first(self, stream: Stream, begin: int, sensitivity: float) -> int | None:
        monitors: Any = peer_package("monitors", "glide.monitors", "pip install glide-py")
        rows = stream.rows
        wrong = (np.argmax(rows.point, axis=1) != rows.columns).astype(float)
        before = wrong[max(0, begin - BURNT) : begin]
        stop = begin + (len(wrong) - begin) // self._BATCH * self._BATCH
        if stop == begin or not len(before):
            return None
        labelled = np.where(np.arange(begin, stop) % 2, wrong[begin:stop], np.nan)
        with unwarned():
            found = monitors.AsymptoticPPRM().detect(
                labelled,
                1.0 - rows.point[begin:stop].max(axis=1),
                np.arange(stop - begin) // self._BATCH,
                higher_is_better=False,
                threshold=before.mean() + self._MARGINS[int(sensitivity)],
            )
        if not found.drift_detected:
            return None
        return begin + (int(found.first_alarm_index) + 1) * self._BATCH - 1

    @property
    @override
    def sensitivities(self) -> Sequence[float]:
        return range(len(self._MARGINS))
