"""The average of the experts: one table of weights, which follow what each expert gave the labels.

An expert may be asleep: the experts of a model before there is one, a stack before its first fit.
It has no part in the average then, and its weight follows those of the others (specialists of
Freund et al. 1997).

With labels at once there is one weighting. With late labels an expert is credited in three:

- *then*, with what it said at the answer, which is right where the stream drifts;
- *now*, where experts of a model are credited with what they say just before they learn the label,
  because the model has improved since the answer;
- *hedge*, as *then*, but slowly and with more weight of the base rate and the regressions.

Each weighting makes a forecast, and the answer averages the forecasts by trust, which follows what
they gave the labels: at half the rate for a label that is five labels late, because the weights
that it judges are as old.

References
----------
M. Herbster, M. K. Warmuth (1998), Tracking the best expert.
Y. Freund, R. E. Schapire, Y. Singer, M. K. Warmuth (1997), Using and combining predictors that
specialize.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from online_svm.compiled.kernel import kernel
from online_svm.predictor.calibrators import FIT_EVERY
from online_svm.storage.state import require
from online_svm.storage.state_schema import StateSchema, StoredArrays, floats, one
from online_svm.types import Floats, Ints

GROUPS = ("model", "stack", "labels", "score")
"""Who an expert is of: a model, the recent stacks, the labels alone, or another model's score."""


class Weighting(NamedTuple):
    """How the weights of the experts begin, and how a label moves them."""

    prior: tuple[float, float, float]  # of the experts of a model, of stacks, and of the labels
    share: float  # part of the weights that returns to the prior at each label
    rate: float  # exponent of the probability of the label
    is_present: bool  # whether experts of a model are credited with what they say now
    trust: float  # its first part in the average of forecasts


THEN = Weighting((0.63, 0.27, 0.10), 0.01, 0.1, is_present=False, trust=0.3)
NOW = Weighting((0.70, 0.20, 0.10), 0.005, 1.0, is_present=True, trust=0.6)
HEDGE = Weighting((0.20, 0.40, 0.40), 0.005, 0.03, is_present=False, trust=0.1)

SCORE_PRIOR = 1.0
"""Weight of the experts of a score, beside those of the three groups, which sum to one.

So an answer before the first label is nearly what the score states."""


class AverageRows(NamedTuple):
    """What m rows need for their average, and the arrays that the kernel writes."""

    now: Floats  # shape (K, m, n_classes); NaN where an expert is asleep
    # Of the answers; scratch of one row if labels come at once. Shapes (m, K, n_classes) and
    # (m, M, n_classes).
    then: Floats
    forecasts: Floats
    columns: Ints  # shape (m,); class column of each label; -1 for a row without a label
    sources: Ints  # shape (m,); see `AnswerTimeOutputs.sources`
    ages: Floats  # shape (m,); examples learned between the answer and the label
    mixed: Floats  # shape (m, n_classes), the averages
    # Of what experts say now of a row with a source, shape (m, n_classes), else not written;
    # scratch of one row if labels come at once.
    present: Floats


class ExpertAverage(StoredArrays):
    """The weights of experts by name.

    Parameters
    ----------
    groups : mapping of str to str
        Group of each expert, one of `GROUPS`, by its name.
    is_delayed : bool
        Whether labels come after their examples.

    Examples
    --------
    >>> average = ExpertAverage({"venn": "model", "base-rate": "labels"}, is_delayed=False)
    >>> {name: round(part, 3) for name, part in average.weights.items()}
    {'venn': 0.875, 'base-rate': 0.125}
    """

    _stored = StateSchema(
        floats("_weights"), floats("_trust"), one("_credited", below=FIT_EVERY + 1)
    )

    def __init__(self, groups: Mapping[str, str], *, is_delayed: bool) -> None:
        self.names, self._is_delayed = tuple(groups), is_delayed
        self._groups: Ints = np.array([GROUPS.index(group) for group in groups.values()])
        weightings = (THEN, NOW, HEDGE) if is_delayed else (NOW,)
        self._prior = np.array([self._spread(one.prior) for one in weightings])
        trust = np.array([one.trust for one in weightings])
        self._first = trust / trust.sum()
        self._share, self._rate = (
            np.array([getattr(one, name) for one in weightings]) for name in ("share", "rate")
        )
        self._is_present: Ints = np.array([one.is_present for one in weightings], dtype=np.int64)
        self._weights, self._trust = self._prior.copy(), self._first.copy()
        self._needed = FIT_EVERY if is_delayed else 0
        self._credited = 0

    def _spread(self, prior: Sequence[float]) -> Floats:
        """Return the first weights: each group's part in equal shares to its experts."""
        parts = np.array([*prior, SCORE_PRIOR])
        counts = np.bincount(self._groups, minlength=len(GROUPS))
        weights: Floats = parts[self._groups] / counts[self._groups]
        weights /= weights.sum()
        return weights

    @property
    def shape(self) -> tuple[int, int]:
        """Number of weightings and of experts."""
        return len(self._trust), len(self.names)

    @property
    def weights(self) -> dict[str, float]:
        """Part of each expert in an average in which none is asleep; they sum to one."""
        parts = (self._trust[:, None] * self._weights).sum(axis=0)
        return dict(zip(self.names, (parts / parts.sum()).tolist(), strict=True))

    def of_experts(self, groups: Mapping[str, str]) -> "ExpertAverage":
        """Return the average of other experts; those that remain keep their weight by name.

        Experts that come share the weight of those of their group that go, or have their first
        weight if none goes.
        """
        if tuple(groups) == self.names:
            return self
        other = ExpertAverage(groups, is_delayed=self._is_delayed)
        remain = set(self.names) & set(groups)
        ours, theirs = (
            np.array([name in remain for name in names]) for names in (self.names, groups)
        )
        for group in range(len(GROUPS)):
            go, come = ~ours & (self._groups == group), ~theirs & (other._groups == group)
            if go.any() and come.any():
                whole = self._weights[:, go].sum(axis=1, keepdims=True)
                other._weights[:, come] = whole / np.count_nonzero(come)
        places = [self.names.index(name) for name in groups if name in remain]
        other._weights[:, theirs] = self._weights[:, places]
        other._weights /= other._weights.sum(axis=1, keepdims=True)
        other._trust, other._credited = self._trust.copy(), self._credited
        return other

    def answer(self, rows: AverageRows) -> None:
        """Write the averages of rows in order; a labelled row moves the weights after its own."""
        n_weightings, n_experts = self.shape
        n_classes = rows.now.shape[2]
        weights = _Weights(
            self._weights, self._prior, self._share, self._rate, self._is_present, self._trust,
            self._first,
        )  # fmt: skip
        scratch = _Scratch(
            np.empty((n_experts, n_classes)), np.empty(n_experts),
            np.empty((n_weightings, n_classes)),
        )  # fmt: skip
        self._credited = _answer(rows, weights, self._groups, self._credited, self._needed, scratch)

    def _on_restored(self) -> None:
        """Raise ValueError unless the weights are positive parts of one."""
        for name in ("_weights", "_trust"):
            parts = getattr(self, name)
            require(bool((parts > 0.0).all()), name)
            require(bool((np.abs(parts.sum(axis=-1) - 1.0) < 1e-9).all()), name)


class _Weights(NamedTuple):
    weights: Floats  # shape (M, K)
    prior: Floats  # shape (M, K)
    share: Floats  # shape (M,)
    rate: Floats  # shape (M,)
    is_present: Ints  # shape (M,)
    trust: Floats  # shape (M,)
    first: Floats  # shape (M,)


class _Scratch(NamedTuple):
    clipped: Floats  # shape (K, n_classes)
    credits: Floats  # shape (K,)
    forecasts: Floats  # shape (M, n_classes)


@kernel
def _answer(
    rows: AverageRows,
    weights: _Weights,
    groups: Ints,
    credited: int,
    needed: int,
    scratch: _Scratch,
) -> int:
    """Write the averages, what is stored of the answers, and the weights.

    Return the number of labels that the stacks were credited with, which counts up to `needed`.
    """
