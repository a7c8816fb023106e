"""The cost of the decisions of a configuration, and comparisons of configurations by cost.

Costs are summed over blocks of the history, so that results stay small, and differences of two
configurations are taken block by block. The standard error comes from the sums of blocks: examples
within a block may depend on each other (batch means).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from pydantic import BaseModel, ConfigDict

from online_svm.types import Floats
from workers.offline.backtest.prequential import HEADLINE, HistoryOutcome

N_BLOCKS = 100  # blocks of equally many learned examples
_MIN_BLOCKS = 10  # common blocks needed for an interval
_LEVEL = 0.95  # joint confidence of the intervals of all comparisons


class MoneyResult(BaseModel):
    """Cost of the decisions of one configuration, in the unit of the setting `costs`."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    mean: float  # cost of an example, by the actions of least expected cost
    by_label: float  # by the most probable label as the action
    always: dict[str, float]  # by always the same action
    taken: dict[str, int]  # number of decisions for each action
    sums: list[float]  # cost of the decisions in each block
    counts: list[int]  # scored examples in each block


@dataclass(frozen=True, slots=True)
class Saving:
    """Cost of the base minus the cost of another configuration, a scored example."""

    mean: float
    lower: float
    upper: float


def money_of(answered: HistoryOutcome) -> MoneyResult | None:
    """Return the cost of the headline's decisions; None without costs."""
    matrix, headline = answered.costs, answered.methods.get(HEADLINE)
    if matrix is None or headline is None:
        return None
    if None in answered.classes:
        return None
    actions = matrix.decide(headline.probabilities).action
    costs, labels = matrix.costs[answered.truth], headline.probabilities.argmax(axis=1)
    rows = np.arange(len(actions))
    spent = costs[rows, actions]
    size = max(1, math.ceil(answered.n_learned / N_BLOCKS))
    block = np.minimum(answered.learned // size, N_BLOCKS - 1)
    counts = np.bincount(actions, minlength=len(matrix.actions)).tolist()
    return MoneyResult(
        mean=float(spent.mean()),
        by_label=float(costs[rows, labels].mean()),
        always=dict(zip(matrix.actions, costs.mean(axis=0).tolist(), strict=True)),
        taken=dict(zip(matrix.actions, counts, strict=True)),
        sums=np.bincount(block, weights=spent, minlength=N_BLOCKS).tolist(),
        counts=np.bincount(block, minlength=N_BLOCKS).tolist(),
    )


def saving(base: MoneyResult, other: MoneyResult, comparisons: int = 1) -> Saving | None:
    """Return what a configuration saves on the examples that both scored; None for too few blocks.

    `comparisons`: number of intervals that hold together with 95 % (Bonferroni). Blocks in which
    the two scored a different number of examples, as while one warms up, are left out.
    """
    first, second = np.array(base.counts), np.array(other.counts)
    both = (first == second) & (first > 0)
    if int(both.sum()) < _MIN_BLOCKS:
        return None
    gains: Floats = (np.array(base.sums) - np.array(other.sums))[both]
    counts = first[both].astype(np.float64)
    mean, blocks = float(gains.sum() / counts.sum()), len(gains)
    rest = gains - counts * mean
    error = math.sqrt(blocks / (blocks - 1) * float(rest @ rest)) / float(counts.sum())
    reach = NormalDist().inv_cdf(1.0 - (1.0 - _LEVEL) / 2.0 / comparisons) * error
    return Saving(mean, mean - reach, mean + reach)


def best_by_money(results: Sequence[MoneyResult | None]) -> tuple[int, list[Saving | None]]:
    """Return the index of the configuration to take, the base being 0, and the saving of each.

    It is the one that saves most among those whose interval is above 0; else the base.
    """
    base = results[0]
    others = [each for each in results[1:] if each is not None]
    found = [
        None if base is None or each is None else saving(base, each, max(1, len(others)))
        for each in results
    ]
    sure = [i for i, each in enumerate(found) if i and each is not None and each.lower > 0.0]
    return max(sure, key=lambda i: _mean(found[i]), default=0), found


def _mean(saved: Saving | None) -> float:
    return -math.inf if saved is None else saved.mean
