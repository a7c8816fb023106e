"""LabelBudget: which labels to buy, each with a known probability, and how their figures weigh.

The probability is proportional to the standard deviation of the label under the announced
probabilities, sqrt(1 - sum p^2): for a given number of labels this makes the variance of an
inverse-probability mean of y - p smallest if the probabilities are right (Neyman 1934). They may be
wrong, so each answer has at least a quarter of the budget. A scale follows the answers, so that the
mean probability is the budget.

Probabilities are 1 / k for whole numbers k: a wanted label stands for k examples. So a figure over
examples that each occur k times is the Horvitz-Thompson estimate (1952) of the figure over all. A
label that came without being wanted has no known probability. It is learned, but counts in no
figure.
"""

from dataclasses import replace
from typing import Self

import numpy as np

from online_svm.config import PredictorConfig
from online_svm.metrics.label_weights import most_examples
from online_svm.predictor.batch import LearningOrder
from online_svm.predictor.pending_examples import PendingExample
from online_svm.storage.state import require
from online_svm.storage.state_schema import StateSchema, StoredHeader, number, real
from online_svm.stream.prediction import PredictionBlock
from online_svm.stream.split import label_draws
from online_svm.stream.validity_report import LabelBudgetReport
from online_svm.types import Floats

MEMORY_ANSWERS = 256
"""The scale follows about so many answers."""

MIN_UNCERTAINTY = 0.01
"""Keeps the scale above zero; without effect where probabilities are below .99995."""


class LabelBudget(StoredHeader):
    """Gives each answer the probability that its label is wanted, and draws whether it is.

    The draw is a hash of the seed and of the example's number. So the result depends on the answers
    alone, not on batches.

    Examples
    --------
    >>> budget = LabelBudget(0.1, seed=0)
    >>> [budget.examples_for(u) for u in (0.3, 0.3, 0.9, 0.01)]
    [10, 10, 3, 37]
    """

    _stored = StateSchema(number("_answers"), real("_scale"))

    def __init__(self, budget: float, seed: int) -> None:
        self._budget, self._seed = budget, seed
        self._most = most_examples(budget)
        self._answers = 0  # answers of a model so far
        self._scale = 0.0  # uncertainty of an answer whose probability is the budget

    @classmethod
    def of(cls, config: PredictorConfig) -> Self | None:
        """Return the budget of a configuration, or None without one."""
        return None if config.label_budget is None else cls(config.label_budget, config.seed)

    def marked(self, block: PredictionBlock, first: int) -> PredictionBlock:
        """Return a block with `label_probability` and `label_draw`; `first` is its first number.

        While warming the probability is the budget.
        """
        if block.status == "ok":
            examples = [self.examples_for(u) for u in uncertainty(block.point).tolist()]
        else:
            examples = [int(1.0 / self._budget)] * len(block)
        return replace(
            block,
            label_probability=1.0 / np.array(examples, dtype=np.float64),
            label_draw=label_draws(first, first + len(block), self._seed),
        )

    def examples_for(self, uncertainty: float) -> int:
        """Return k for the next answer of a model; its label is wanted with probability 1 / k."""
        budget, floor = self._budget, 1.0 / self._most
        if not self._answers:
            self._scale = uncertainty
        wanted = floor + (budget - floor) * uncertainty / self._scale
        k = max(1, min(self._most, int(1.0 / wanted)))
        # Where no bound and no rounding applies, this is an exponentially weighted mean of the
        # uncertainties; otherwise it still holds the mean probability at the budget.
        rate = max(1.0 / MEMORY_ANSWERS, 1.0 / (self._answers + 2.0))
        self._scale *= 1.0 + rate * (1.0 / k - budget) / (budget - floor)
        self._answers += 1
        return k

    def _on_restored(self) -> None:
        require(self._scale > 0.0 or self._answers == 0, "label_budget")


def uncertainty(point: Floats) -> Floats:
    """Return sqrt(1 - sum p^2) of each row of probabilities, at least `MIN_UNCERTAINTY`.

    Columns are added in order: the bits do not depend on the number of rows.
    """
    squares = np.zeros(len(point))
    for k in range(point.shape[1]):
        squares += point[:, k] * point[:, k]
    return np.maximum(MIN_UNCERTAINTY, np.sqrt(np.maximum(0.0, 1.0 - squares)))


def is_marked(example: PendingExample, config: PredictorConfig) -> bool:
    """Return whether the answer of a restored example has a probability that the budget allows."""
    block, _, row = example.original
    if block.label_probability is None or block.label_draw is None:
        return False
    return 1.0 / most_examples(config.label_budget) <= float(block.label_probability[row]) <= 1.0


class LabelBudgetCounts(StoredHeader):
    """Counts of wanted, labelled and missing labels, in the order of the answers and labels."""

    _stored = StateSchema(
        number("answers"), number("wanted"), number("labelled"), number("missing"),
        number("unasked"), real("expected"),
    )  # fmt: skip

    def __init__(self) -> None:
        self.answers = self.wanted = 0
        self.labelled = self.missing = self.unasked = 0
        self.expected = 0.0  # sum of the probabilities

    def add(self, rows: LearningOrder) -> None:
        """Add rows that were answered or settled."""
        for i, example in enumerate(rows.examples):
            block, _, row = example.original
            assert block.label_probability is not None
            assert block.label_draw is not None
            probability = float(block.label_probability[row])
            is_wanted = bool(block.label_draw[row] < probability)
            if rows.answers[i]:
                self.answers += 1
                self.wanted += is_wanted
                self.expected += probability
            elif rows.learns[i] and example.label is not None:
                self.labelled += is_wanted
                self.unasked += not is_wanted
            elif rows.gaps[i] or rows.learns[i]:  # learned from a probability: no label either
                self.missing += is_wanted

    def report(self) -> LabelBudgetReport:
        """Return the counts for a report."""
        mean = self.expected / self.answers if self.answers else None
        return LabelBudgetReport(mean, self.wanted, self.labelled, self.missing, self.unasked)
