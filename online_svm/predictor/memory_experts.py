"""The experts with long memory beside the primary prediction of a feed.

Five experts are averaged: the *present* answer, which is that of `ExpertEnsemble` without a memory;
the *long* and the *mid* trees (`online_svm.refit.memory_trees`); and two logistic stacks of these
three, of the newest 1,000 and 3,000 labels. Weights follow the likelihood with a fixed share. Until
the long trees have been fitted, all five give the present answer.

A stack is a softmax regression on the log-odds of its experts, for two classes with an intercept.
Every `STACK_FIT_EVERY` labels it is fitted on its newest labels, with a penalty centred at the
present answer alone: without evidence the stack gives the present answer.

A class that the trees did not learn keeps the probability of the present answer.

With delayed labels, the experts learn an example with their answers of the time when it was
answered, and there are two rules more:

- The answer averages two forecasts by trust: the present answer alone, and the average of the
  experts. A label that is five labels late moves the trust at half the rate, as in
  `expert_average`, because the weights that it judges are as old. The answer is the present answer
  until 50 answers with trees have been labelled: with labels 2,000 late, trees without a labelled
  answer were too certain of a rare class.
- The stacks begin with almost no weight. They fit the labels before a change best, and lose most
  after it.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from online_svm.compiled.kernel import kernel
from online_svm.memory.encoder import MemoryEncoder
from online_svm.predictor.ensemble import Ensemble, MixtureArrays, WeightUpdate
from online_svm.predictor.expert import RowsToLearn
from online_svm.refit.committee.ridge_logistic import Regression, fit_ridge_logistic
from online_svm.refit.committee.stack import SoftmaxStack, fit_softmax
from online_svm.refit.memory_trees import LONG, MID, MemoryTrees
from online_svm.storage.state import require
from online_svm.storage.state_schema import (
    StateSchema,
    Stored,
    StoredArrays,
    floats,
    ints,
    number,
    one,
    part,
    record,
)
from online_svm.stream.available_examples import SlidingArray
from online_svm.stream.labels import ClassView
from online_svm.types import Floats, Ints

STACK_FIT_EVERY = 100  # labels
STACK_RIDGE = 5.0
STACK_TOLERANCE = 0.05  # largest entry of the gradient, a sum over the examples
MAX_STACK_STEPS = 12


class StackedLabels(NamedTuple):
    """Labels, and the answers of the experts to their rows."""

    odds: Floats  # shape (n, n_experts, n_classes - 1); log-odds of the classes against the first
    columns: Ints  # shape (n,); class columns


class MemoryStacks(StoredArrays):
    """Stacks of the same experts, one for each number of labels in `sizes`.

    Examples
    --------
    >>> stacks = MemoryStacks(2, 2, [200, 1_000])
    >>> labels = stacks.room(100)
    >>> labels.odds[:], labels.columns[:] = [[0.0], [1.4]], 1
    >>> stacks.learned(labels, 100)
    >>> stacks.weights[0].round(1).tolist(), stacks.next_stop
    ([1.0, 1.4, 1.0], 200)
    """

    _stored = StateSchema(
        one("n"), floats("_odds.held", "n ._n_experts ._n_odds", stored_as="odds"),
        ints("_columns.held", "n", below="._n_classes", stored_as="columns"), floats("weights"),
    )  # fmt: skip

    def __init__(self, n_experts: int, n_classes: int, sizes: Sequence[int]) -> None:
        self._sizes, self._n_experts, self._n_classes = sizes, n_experts, n_classes
        self._n_odds = n_classes - 1
        self._odds = SlidingArray(np.empty((0, n_experts, self._n_odds)))
        self._columns = SlidingArray(np.empty(0, dtype=np.int64))
        self.n = 0  # learned labels
        self._centre = np.zeros(n_experts + (n_classes == 2))
        self._centre[0] = 1.0
        self.weights = np.tile(self._centre, (len(sizes), 1))

    @property
    def n_held(self) -> int:
        """Number of newest labels that are held."""
        return len(self._columns)

    @property
    def next_stop(self) -> int:
        """Number of learned labels up to which the weights do not change."""
        return self.n - self.n % STACK_FIT_EVERY + STACK_FIT_EVERY

    def room(self, count: int) -> StackedLabels:
        """Return what is held of the newest labels, with room for `count` more at the end."""
        self._odds.extend(count)
        self._columns.extend(count)
        return StackedLabels(self._odds.held, self._columns.held)

    def learned(self, labels: StackedLabels, count: int) -> None:
        """Count labels that were written to their room, up to `next_stop`, and fit if it is due.

        `labels`: all that are held, these `count` last.
        """
        self.n += count
        if count and self.n % STACK_FIT_EVERY == 0:
            for weights, size in zip(self.weights, self._sizes, strict=True):
                newest = slice(-size, None)
                self._fit(weights, self._inputs(labels.odds[newest]), labels.columns[newest])

    def drop_old(self) -> None:
        """Drop the labels that no fit needs."""
        for held in (self._odds, self._columns):
            held.drop_before(held.stop - max(self._sizes))

    def _fit(self, weights: Floats, inputs: Floats, columns: Ints) -> None:
        """Fit the weights of a stack, in place, from where they are."""
        if self._n_classes > 2:
            examples = SoftmaxStack(inputs, columns, self._centre, STACK_RIDGE)
            fit_softmax(examples, weights, STACK_TOLERANCE)
            return
        odds, ridge = np.ascontiguousarray(inputs[:, :, 1].T), np.full(len(weights), STACK_RIDGE)
        targets, costs = columns.astype(np.float64), np.ones(len(columns))
        problem = Regression(odds, targets, costs, self._centre, ridge)
        fit_ridge_logistic(problem, weights, MAX_STACK_STEPS, STACK_TOLERANCE)

    def _on_restored(self) -> None:
        require(len(self._columns) == min(self.n, max(self._sizes)), "n")

    def _inputs(self, odds: Floats) -> Floats:
        """Return the inputs of the regressions, shape (m, n_inputs, n_classes)."""
        found = np.zeros((len(odds), len(self._centre), self._n_classes))
        found[:, : self._n_experts, 1:] = odds
        if self._n_classes == 2:
            found[:, -1, 1] = 1.0
        return found


MEMORY_STACK_SIZES = (1_000, 3_000)  # labels of each stack
PRESENT = "present"
EXPERTS = (PRESENT, LONG.name, MID.name, *(f"memory_stack_{size}" for size in MEMORY_STACK_SIZES))
N_STACKED = 3  # the first of the experts, which the stacks weigh

MEMORY_UPDATE = WeightUpdate(0.001, first=0.5)
"""Update of the experts. Shares from .0005 to .002 give nearly the same loss, .005 costs .002."""


STACK_FIRST = 1e-9
DELAYED_UPDATE = MEMORY_UPDATE._replace(
    first=(0.5, *[0.25 - STACK_FIRST] * 2, *[STACK_FIRST] * len(MEMORY_STACK_SIZES))
)
"""Update with delayed labels: a stack has to earn its weight by 20 nats."""

TRUST_UPDATE = WeightUpdate(0.0005)
"""Update of the trust with delayed labels; its rate depends on the age of the label.

With labels 250 late, equal stacks at a tenth of the rate and no trust lost .0045 to the present
answer on the mean of eleven streams, and .047 where classes change places every 800 examples; now
nothing on the mean, and .004 there."""

N_MEMORY_EXPERTS = len(EXPERTS)
N_STORED = N_MEMORY_EXPERTS + 1
"""Numbers of each class that are stored until a label comes: the experts, and their average."""

MIN_CREDITED_LABELS = 50  # labels of answers with trees, before the experts get weight


class FittedTrees(NamedTuple):
    """Trees that take effect, and what they were fitted on."""

    name: str  # of their kind
    trees: MemoryTrees
    encoder: MemoryEncoder  # has the columns of the trees; nothing changes it
    number: int  # rows that were learned before the fit


class MemoryExperts(Stored):
    """The average of the present answer and the experts with long memory.

    `view`: the classes of the answers.
    `is_delayed`: whether labels come after their examples.
    """

    _stored = StateSchema(
        number("fitted_at"), number("_credited"), part("_encoder"),
        record("long", of=MemoryTrees, optional=True), record("mid", of=MemoryTrees, optional=True),
        part("_stacks"), part("_average"), part("_trust"),
    )  # fmt: skip

    def __init__(self, view: ClassView, *, is_delayed: bool) -> None:
        self._encoder = MemoryEncoder()
        self.long: MemoryTrees | None = None
        self.mid: MemoryTrees | None = None
        self.fitted_at = 0  # rows that were learned before the fit of the long trees
        self._average = Ensemble(N_MEMORY_EXPERTS, DELAYED_UPDATE if is_delayed else MEMORY_UPDATE)
        # Of the present answer and of the average; None: only the average is heard.
        self._trust = Ensemble(2, TRUST_UPDATE) if is_delayed else None
        # Labels of answers with trees, at most.
        self._credited = 0 if is_delayed else MIN_CREDITED_LABELS
        self.adopt(view)

    @property
    def is_awake(self) -> bool:
        """Whether there are trees; without them the average is the present answer."""
        return self.long is not None

    @property
    def weights(self) -> dict[str, float]:
        """Part of each expert in the next answer, by name; they sum to one."""
        alone, of_average = (0.0, 1.0) if self._trust is None else self._trust.weights.tolist()
        if not self.is_awake or self._credited < MIN_CREDITED_LABELS:
            alone, of_average = 1.0, 0.0
        weights = of_average * self._average.weights
        weights[0] += alone
        return dict(zip(EXPERTS, weights.tolist(), strict=True))

    def adopt(self, view: ClassView) -> None:
        """Answer with other classes from now on; the stacks start again."""
        self._view = view
        self._stacks = MemoryStacks(N_STACKED, len(view.classes), MEMORY_STACK_SIZES)

    def take(self, fitted: FittedTrees) -> None:
        """Answer with newly fitted trees from now on."""
        self._encoder = fitted.encoder
        if fitted.name == LONG.name:
            self.long, self.fitted_at = fitted.trees, fitted.number
        else:
            self.mid = fitted.trees

    def answer(self, present: Floats, rows: RowsToLearn) -> Floats:
        """Return the average for rows in order; a labelled row is learned after its answer.

        A row with a source is answered now, and learned with what is stored of its source.

        `present`, shape (m, n_classes): the present answers. `rows.stored`, shape (m, n_classes,
        `N_STORED`), is written for rows without a source.
        """
        asks = rows.sources < 0
        if not self.is_awake:
            if rows.stored is not None:
                rows.stored[asks] = present[asks][:, :, None]
            return present
        m, k = present.shape
        stored = np.empty((0, k, N_STORED)) if rows.stored is None else rows.stored
        ages = np.zeros(m) if rows.at_answer is None else rows.at_answer.ages
        block = _Rows(
            np.ascontiguousarray(present), self._trees_of(rows.X, present), rows.columns,
            rows.sources, ages, stored, np.empty((m, k)),
        )  # fmt: skip
        trust = ALL_AVERAGE if self._trust is None else self._trust.mixture
        experts, parts = np.empty((2, N_MEMORY_EXPERTS, k))
        forecasts, of_forecasts = np.empty((2, 2, k))
        scratch = _Scratch(experts, parts, forecasts, of_forecasts, np.empty((N_STACKED, k - 1)))
        stacks, row = self._stacks, 0
        size = stacks.n_held
        labels = stacks.room(int(np.count_nonzero(rows.columns >= 0)))
        while row < m:
            until = size + stacks.next_stop - stacks.n
            row, stop, self._credited = _answer(
                block, row, self._average.mixture, trust, (stacks.weights, *labels), size, until,
                self._credited, MIN_CREDITED_LABELS, scratch,
            )  # fmt: skip
            stacks.learned(StackedLabels(labels.odds[:stop], labels.columns[:stop]), stop - size)
            size = stop
        stacks.drop_old()
        return block.point

    def _trees_of(self, X: Floats, present: Floats) -> Floats:
        """Return the probabilities of the long and the mid trees, shape (2, m, n_classes)."""
        encoded = self._encoder.encode(X, learn=False)
        found = np.empty((2, *present.shape))
        for answers, trees in zip(found, (self.long, self.mid), strict=True):
            if trees is None:
                answers[:] = present
            else:
                columns = self._view.columns(np.arange(trees.n_classes))
                trees.write(encoded, columns, present, answers)
        return found

    def _on_restored(self) -> None:
        are_categories = self._encoder.are_categories
        for trees in (self.long, self.mid):
            if trees is not None:
                n_classes = self._view.n_known if self._view.declared else trees.n_classes
                trees.check(are_categories, n_classes)
        require(self.mid is None or self.is_awake, "mid")
        require(self._credited <= MIN_CREDITED_LABELS, "credited")


ALL_AVERAGE = MixtureArrays(np.empty(0), np.empty(0), 0.0, 1.0)
"""Trust without a present answer of its own: the forecast is the average of the experts."""


class _Rows(NamedTuple):
    present: Floats  # shape (m, n_classes)
    trees: Floats  # shape (2, m, n_classes)
    columns: Ints  # shape (m,)
    sources: Ints  # shape (m,); see `AnswerTimeOutputs.sources`
    ages: Floats  # shape (m,); examples learned between the answer and the label
    stored: Floats  # shape (m, n_classes, N_STORED); without rows if labels come at once
    point: Floats  # shape (m, n_classes), the averages


class _Scratch(NamedTuple):
    experts: Floats  # shape (N_MEMORY_EXPERTS, n_classes)
    parts: Floats  # shape (N_MEMORY_EXPERTS, n_classes)
    forecasts: Floats  # shape (2, n_classes)
    of_forecasts: Floats  # shape (2, n_classes)
    odds: Floats  # shape (N_STACKED, n_classes - 1)


@kernel
def _answer(
    rows: _Rows,
    row: int,
    average: MixtureArrays,
    trust: MixtureArrays,
    stacks: tuple[Floats, Floats, Ints],
    size: int,
    until: int,
    credited: int,
    needed: int,
    scratch: _Scratch,
) -> tuple[int, int, int]:
    """Write the averages from `row` on, what is stored of the answers, and the weights.

    `trust`: in the present answer and the average; `ALL_AVERAGE` for the average alone.
    `stacks`: weights, and the held labels of which the first `size` are written; a fit is due at
    `until`. Return the next row, the number of labels that are written, and `credited`, the labels
    of answers with trees. Until `needed` of them have come, the averages are the present answers.
    """
