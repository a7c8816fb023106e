"""Sets of labels: the classes that cannot be excluded, with a long-run coverage.

A class is in the set of an answer if the classes ahead of it, those more probable and, of equal
ones, the first, have together at most the threshold t as probability. Nothing is ahead of the most
probable class, so no set is empty. A set misses if the label is not in it, and each label moves t
by the subgradient of the quantile loss,

    t <- max(0, t + step (miss - (1 - coverage))).

As t >= 0 never lowers coverage, and t + step > 1 misses nothing, the misses of any T labels in a
row are at most (1 - coverage) T + (1 + step) / step, for every sequence of examples (Gibbs & Candes
2021, "Adaptive conformal inference under distribution shift"; the threshold itself is followed as
in Angelopoulos, Candes & Tibshirani 2023, "Conformal PID control for time series prediction").
With late labels a miss is by the threshold in force before the label, and the bound is on these. As
the answers given between a change and its first labels miss more often, the threshold then aims at
three quarters of the misses.
Where the most probable label alone is right more often than `coverage`, sets cover more.
"""

from dataclasses import replace
from typing import Self

import numpy as np

from online_svm.config import PredictorConfig
from online_svm.metrics.label_weights import most_examples
from online_svm.storage.state import require
from online_svm.storage.state_schema import StateSchema, Stored, number, numbers, real
from online_svm.stream.prediction import PredictionBlock, SettledRows
from online_svm.stream.validity_report import SetReport
from online_svm.types import Bools, Floats, Ints

STEP = 0.04
"""Step of the threshold; larger ones follow a change sooner, and give wider sets."""

LATE_MISSES = 0.75
"""Share of 1 - coverage that the threshold aims at if labels may come late."""

RECENT_LABELS = 1000  # labels after which the counts of recent labels are halved

_UNCOUNTED = -1.0


def mass_ahead(point: Floats) -> Floats:
    """Return for each class the probability of the classes ahead of it, shape (m, K).

    `point`, shape (m, K): probabilities of the classes.

    Examples
    --------
    >>> mass_ahead(np.array([[0.25, 0.5, 0.25]])).tolist()
    [[0.5, 0.0, 0.75]]
    """
    ahead = np.zeros_like(point)
    order = np.argsort(-point, axis=1, kind="stable")
    sums = np.cumsum(np.take_along_axis(point, order, axis=1)[:, :-1], axis=1)
    np.put_along_axis(ahead, order[:, 1:], sums, axis=1)
    return ahead


def members(point: Floats, thresholds: Floats) -> Bools:
    """Return whether each class is in the set, shape (m, K).

    `thresholds`, shape (m,) or (1,): thresholds of the rows, at least 0.
    """
    found: Bools = mass_ahead(point) <= thresholds[:, None]
    return found


def settled_masses(rows: SettledRows, most: int) -> Floats:
    """Return the probability ahead of each label, shape (m,); -1 for a row that does not count.

    Answers of no model do not count. With a label budget those alone do whose draw is below
    1 / `most`: their labels were wanted independently of the answers.
    """
    block = rows.block
    counted = rows.columns >= 0
    if block.label_draw is not None:
        counted &= block.label_draw < 1.0 / most
    found = np.full(len(block), _UNCOUNTED)
    if block.status == "ok" and counted.any():
        column = rows.columns[counted, None]
        found[counted] = np.take_along_axis(mass_ahead(block.point[counted]), column, axis=1)[:, 0]
    return found


class LabelSets(Stored):
    """The threshold of the sets, and counts of answers and labels.

    Examples
    --------
    >>> sets = LabelSets(PredictorConfig(set_coverage=0.8))
    >>> sets.learn(np.array([0.9, 0.0]), np.array([0, 1, 2])).round(3).tolist()
    [0.8, 0.832, 0.824]
    """

    _stored = StateSchema(
        real("_threshold"), number("_labels"), number("_covered"), numbers("_recent"),
        number("_answers"), number("_members"),
    )  # fmt: skip

    def __init__(self, config: PredictorConfig) -> None:
        assert config.set_coverage is not None
        self._misses = 1.0 - config.set_coverage  # share of labels that may miss their set
        if config.takes_delayed_labels:
            self._misses *= LATE_MISSES
        self.most = most_examples(config.label_budget)
        self._threshold = config.set_coverage
        self._labels = self._covered = 0
        self._recent = [0, 0]  # recent labels, and those in their sets
        self._answers = self._members = 0  # answers of a model, and the classes in their sets

    @classmethod
    def of(cls, config: PredictorConfig) -> Self | None:
        """Return the sets of a configuration, or None without `set_coverage`."""
        return None if config.set_coverage is None else cls(config)

    @property
    def threshold(self) -> float:
        """The threshold in force."""
        return self._threshold

    def learn(self, ahead: Floats, asked: Ints) -> Floats:
        """Learn from settled rows in order; return the thresholds of m answers, shape (m,).

        `ahead`: probability ahead of each label; see `settled_masses`.
        `asked`, shape (m,): number of settled rows before each answer.
        """
        threshold, thresholds = self._threshold, [self._threshold]
        hit, miss = -STEP * self._misses, STEP * (1.0 - self._misses)
        for mass in ahead.tolist():
            if mass >= 0.0:
                covers = mass <= threshold
                threshold = max(0.0, threshold + (hit if covers else miss))
                self._count(covers)
            thresholds.append(threshold)
        self._threshold = threshold
        found: Floats = np.array(thresholds)[asked]
        return found

    def _count(self, covers: bool) -> None:
        self._labels += 1
        self._covered += covers
        labels, covered = self._recent
        if labels == RECENT_LABELS:
            labels, covered = labels // 2, covered // 2
        self._recent = [labels + 1, covered + covers]

    def added_to(self, block: PredictionBlock, thresholds: Floats) -> PredictionBlock:
        """Return the block with its sets, and count them if a model answered."""
        block = with_sets(block, thresholds)
        if block.status == "ok" and block.sets is not None:
            self._answers += len(block)
            self._members += int(np.count_nonzero(block.sets))
        return block

    def report(self) -> SetReport:
        """Return coverage and size so far."""
        labels, covered = self._recent
        return SetReport(
            labels=self._labels,
            coverage=self._covered / self._labels if self._labels else None,
            recent_labels=labels,
            recent_coverage=covered / labels if labels else None,
            size=self._members / self._answers if self._answers else None,
        )

    def _on_restored(self) -> None:
        check_threshold(self._threshold)
        require(len(self._recent) == 2 and 0 <= self._recent[1] <= self._recent[0], "recent")
        require(self._covered <= self._labels, "covered")


def check_threshold(threshold: float) -> None:
    """Raise InvalidSnapshot if a stored number is no threshold."""
    require(isinstance(threshold, float) and 0.0 <= threshold <= 1.0 + STEP, "threshold of sets")


def with_sets(block: PredictionBlock, thresholds: Floats) -> PredictionBlock:
    """Return the block with the sets of these thresholds, shape (m,) or (1,)."""
    return replace(block, sets=members(block.point, thresholds))
