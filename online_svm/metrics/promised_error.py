"""A promised error rate: decide the cases for which matured labels prove it, review the others.

A case is decided if the probability of its label reaches a threshold. The candidates for it are
fixed in advance. Of the matured labels of cases above a candidate, let s of n be errors. For f < 1
the likelihood ratio of the rate f r against r is a supermartingale in every stream whose mean
conditional error rate is at least r (a sub-Bernoulli process: Howard, Ramdas, McAuliffe & Sekhon
2021, "Time-uniform, nonparametric, nonasymptotic confidence sequences"), and so is its mean over
`FRACTIONS`. By Ville's inequality this mean ever reaches 1 / level with probability at most
`level`. A candidate is proven while the mean is there, so it may be looked at after every label.

The candidates share the level by the fallback procedure (Wiens & Dmitrienko 2005), from the
strictest to the loosest: a proven candidate hands its share to the next one. So the strictest have
the largest shares, in proportion K, K - 1, ..., 1. The loosest proven candidate is in force.

A proof is of all labels so far, so a rate that rises later is hidden by them. An e-detector finds
it: on the labels of decided cases each M becomes f (M + 1), with f = m for an error and
(1 - r m) / (1 - r) for none. While the rate is at most r, their mean reaches L after L labels on
average or later (Shin, Ramdas & Rinaldo 2022, "E-detectors"). Then the promise is withdrawn, all
counts begin anew, and it is earned by the same proof as at first.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, Self

import numpy as np

from online_svm.compiled.elementary import exps, logs
from online_svm.compiled.ordered_sums import in_turn
from online_svm.config import PredictorConfig
from online_svm.config.groups import REVIEW, Promised
from online_svm.metrics.label_weights import most_examples
from online_svm.storage.state import require
from online_svm.storage.state_schema import StateSchema, Stored, flag, floats, ints, number
from online_svm.stream.labels import LabelIndex
from online_svm.stream.prediction import PredictionBlock
from online_svm.stream.validity_report import PromiseReport
from online_svm.types import Bools, Floats, Ints

CANDIDATES: Floats = np.array(
    [0.998, 0.995, 0.99, 0.98, 0.97, 0.96, 0.95, 0.94, 0.92, 0.9, 0.88, 0.85, 0.8, 0.7, 0.0]
)
"""Thresholds of the probability, the strictest first; the last decides every case."""

NEVER = 2.0  # threshold that no probability reaches: every case is reviewed
FRACTIONS = (0.25, 0.5, 0.8)  # error rates bet on, as fractions of the promised rate
EXCESSES = (1.15, 1.4, 2.0, 3.5)  # error rates that the detector bets on, over the promised rate
MAX_EXCESS_RATE = 0.9  # largest error rate that is bet on
RUN_LENGTH = 100_000.0  # decided cases to a false withdrawal, on average and at least

RECENT_EXAMPLES = 1000  # examples after which the counts of recent examples are halved
MIN_LACK = 20  # labels that one side of the threshold must lack before the promise is withdrawn

MAX_Z_SQUARED = 20  # squared standard errors by which labelled shares of the two sides may differ

MAX_LABELS_NEEDED = 10**9

_NONE = len(CANDIDATES)
_SHARES: Ints = np.arange(_NONE, 0, -1)  # of the level, by candidate


def log_evidence(n: Floats, errors: Floats, rate: float) -> Floats:
    """Return the logarithm of the evidence that an error rate is below `rate`, in (0, 1).

    `n` and `errors`, of the same shape, are labels and the errors among them.

    Examples
    --------
    >>> n, errors = np.array([100.0, 500.0, 500.0]), np.array([0.0, 0.0, 30.0])
    >>> log_evidence(n, errors, 0.03).round(1).tolist()
    [1.7, 10.4, -4.9]
    """
    of_errors = logs(np.array(FRACTIONS))
    of_others = logs(1.0 - rate * np.array(FRACTIONS)) - logs(np.array([1.0 - rate]))
    terms = [errors * e + (n - errors) * o for e, o in zip(of_errors, of_others, strict=True)]
    most = np.maximum.reduce(terms)
    total = sum((exps(term - most) for term in terms), np.zeros_like(most))
    found: Floats = most + logs(total / len(FRACTIONS))
    return found


class _Test(NamedTuple):
    """One promised rate, tested for the decisions of one group."""

    kind: str
    group: int
    truth: int  # the rate is among the labels of this class; -1: among the decided cases
    rate: float


def _tests(promise: Mapping[Promised, float]) -> list[_Test]:
    """Return the tests: of all decisions together, or by decided class for a rate by class."""
    kinds: dict[Promised, tuple[int, int]] = {"miss": (0, 1), "false_alarm": (1, 0)}
    tests = [_Test(kind, *at, promise[kind]) for kind, at in kinds.items() if kind in promise]
    if "error" in promise:
        tests += [_Test("error", g, -1, promise["error"]) for g in range(2 if tests else 1)]
    return tests


class SettledAnswers(NamedTuple):
    """Answers whose label matured or will never come, in this order; each has shape (m,)."""

    n: Ints  # examples learned before the answer; -1 for an answer that is not counted
    point: Floats  # probability of the predicted label
    label: Ints  # index of the predicted label
    truth: Ints  # index of the true label; -1 if it will never come
    before: Ints  # examples learned before the label matured

    @classmethod
    def of(cls, block: PredictionBlock, truth: Ints, before: Ints, most: int = 1) -> Self:
        """Return the rows of a block, with their true labels.

        Answers of no model are not counted. With a label budget, those alone are counted whose
        draw is below 1 / `most`: their labels were wanted independently of the answers.
        """
        if block.status != "ok":
            none = np.full(len(block), -1)
            return cls(none, np.zeros(len(block)), none, truth, before)
        n = block.n
        if block.label_draw is not None:
            n = np.where(block.label_draw < 1.0 / most, n, -1)
        return cls(n, _of_label(block), block.label, truth, before)

    @classmethod
    def joined(cls, parts: Iterable[Self]) -> Self:
        """Return the rows of all parts, in order."""
        none = np.empty(0, dtype=np.int64)
        empty = cls(none, np.empty(0), none, none, none)
        return cls(*map(np.concatenate, zip(empty, *parts, strict=True)))

    def part(self, begin: int, stop: int) -> Self:
        """Return rows begin ... stop - 1."""
        return type(self)._make(column[begin:stop] for column in self)


class PromisedErrorRate(Stored):
    """Counts of matured labels above each candidate, and the thresholds that they prove.

    Rates by class (`miss`, `false_alarm`) give each of two classes its own threshold. A miss is an
    example of the second class that is decided as the first; its rate is among all labels of the
    second class, decided or reviewed. A false alarm is the reverse.
    """

    _stored = StateSchema(
        ints("_labelled"), ints("_errors"), ints("_truths"), ints("_recent"), number("_answered"),
        number("_decided"), number("_since"), flag("_is_open"), floats("_excess"),
        number("_broken_at", optional=True),
    )  # fmt: skip

    def __init__(self, config: PredictorConfig) -> None:
        assert config.promise is not None
        assert config.classes is not None
        self.most = most_examples(config.label_budget)
        self._classes = tuple(map(str, LabelIndex(config.classes).view().classes))
        self._tests = _tests(config.promise)
        self._tested = sorted({test.group for test in self._tests})
        self._groups = 2 if any(test.kind != "error" for test in self._tests) else 1
        level = (1.0 - config.promise["confidence"]) / len(self._tests)
        # Bound of the log evidence, by the shares of the level that a candidate has.
        self._bounds = -logs(level / _SHARES.sum() * np.arange(_SHARES.sum() + 1.0))
        self._labelled, self._errors = np.zeros((2, self._groups, _NONE), dtype=np.int64)
        self._truths = np.zeros(2, dtype=np.int64)  # labels of the first class, and of the others
        # Recent examples without and with a label: all, then those above each candidate.
        self._recent = np.zeros((2, 1 + self._groups * _NONE), dtype=np.int64)
        self._answered = self._decided = 0
        self._since = 0  # examples learned at the last alarm
        self._is_open = False  # whether that alarm is open
        self._excess = np.zeros((len(self._tests), len(EXCESSES)))  # evidence that a rate is higher
        self._broken_at: int | None = None  # examples learned when a higher rate was found last

    @classmethod
    def of(cls, config: PredictorConfig) -> Self | None:
        """Return empty counts for a configuration, or None without a promise."""
        return None if config.promise is None else cls(config)

    def follow(self, rows: SettledAnswers, asked: Ints, alarms: Sequence[int]) -> Floats:
        """Count rows in order; return the thresholds in force at m answers, shape (m, n_groups).

        `asked`, shape (m,): number of rows before each answer.
        `alarms`: examples learned at each alarm, which drops all counts until then.
        """
        found = np.full((len(asked), self._groups), NEVER)
        begin = 0
        for n in (*alarms, None):
            stop = len(rows.n) if n is None else int(np.searchsorted(rows.before, n))
            while begin < stop:
                last = min(stop, begin + RECENT_EXAMPLES - int(self._recent[:, 0].sum()))
                part = rows.part(begin, last)
                in_force = self._count(part)
                broken = self._until_broken(part, in_force)
                last = last if broken is None else begin + broken + 1
                is_here = (asked >= begin) & (asked < last)
                found[is_here] = in_force[asked[is_here] - begin]
                if broken is not None:
                    self._broken_at = int(rows.before[last - 1]) + 1
                    self._restart(self._broken_at)
                elif self._recent[:, 0].sum() >= RECENT_EXAMPLES:
                    self._recent //= 2
                begin = last
            if n is not None:
                self._restart(n)
                self._is_open = True
        found[asked >= begin] = self.thresholds()
        return found

    def _restart(self, n: int) -> None:
        """Drop all counts; answers from `n` learned examples on count."""
        for counts in (self._labelled, self._errors, self._truths, self._recent, self._excess):
            counts[:] = 0
        self._since = n

    def _until_broken(self, rows: SettledAnswers, thresholds: Floats) -> int | None:
        """Return the row at which decided cases have more errors than promised; None if none.

        A case counts as decided if the threshold in force before its label decides it.
        """
        has_label = (rows.n >= self._since) & (rows.truth >= 0)
        group = np.minimum(rows.label, self._groups - 1)
        is_decided = has_label & (rows.point >= thresholds[np.arange(len(group)), group])
        limit, first = RUN_LENGTH * len(self._tests), len(rows.n)
        for j, test in enumerate(self._tests):
            counts = is_decided & (group == test.group)
            is_wrong = counts & (rows.label != rows.truth)
            if test.truth >= 0:  # the rate is among all labels of a class, while any is decided
                counts = has_label & (rows.truth == test.truth)
                counts &= thresholds[:, test.group] < NEVER
            excesses = [min(m, MAX_EXCESS_RATE / test.rate) for m in EXCESSES]
            factors = [((1.0 - test.rate * m) / (1.0 - test.rate), m) for m in excesses]
            held = self._excess[j].tolist()
            for i in np.flatnonzero(counts).tolist():
                wrong = bool(is_wrong[i])
                held = [f[wrong] * (h + 1.0) for f, h in zip(factors, held, strict=True)]
                if in_turn(held) >= limit * len(held):
                    first = min(first, i)
                    break
            self._excess[j] = held
        return first if first < len(rows.n) else None

    def decided(self, block: PredictionBlock, thresholds: Floats) -> PredictionBlock:
        """Return the block with actions by `decided`, and count them if a model answered."""
        block = decided(block, thresholds)
        if block.status == "ok" and block.action is not None:
            self._answered += len(block)
            self._decided += int(np.count_nonzero(block.action < len(block.classes)))
        return block

    def thresholds(self) -> Floats:
        """Return the thresholds in force now, shape (n_groups,)."""
        found: Floats = self._in_force(*self._now())[0]
        return found

    def close(self, since: int) -> None:
        """Close the alarm if model and calibration use no example before `since`."""
        self._is_open = self._is_open and self._since > since

    def report(self) -> PromiseReport:
        """Return what holds now, or what is missing."""
        candidate, shares = self._proven(*self._now()[:3])
        in_force = self.thresholds()
        holds = bool((in_force[self._tested] < NEVER).any())
        side = int(self._one_sided(candidate, self._recent[None])[0])
        why = _ONE_SIDED[side] if side else None
        if self._is_open:
            why = f"an alarm at example {self._since:,} is open; labels count from there on"
        elif self._broken_at is not None and not holds and why is None:
            why = (
                f"decided cases had more errors than promised at example {self._broken_at:,}; "
                "labels count from there on"
            )
        total, above = self._recent[:, 0].sum(), self._above(candidate, self._recent[None]).sum()
        by_class = [in_force[min(g, self._groups - 1)] for g in range(len(self._classes))]
        return PromiseReport(
            holds=holds,
            withdrawn=why,
            thresholds={
                c: float(t) for c, t in zip(self._classes, by_class, strict=True) if t < NEVER
            },
            bounds=self._upper_bounds(candidate[0], shares[0]) if holds else {},
            decided_share=float(above / total) if holds and total else 0.0,
            labels=int(self._truths.sum()),
            labels_needed=self._needed(candidate[0]),
            answered=self._answered,
            decided=self._decided,
        )

    def _on_restored(self) -> None:
        require(int(self._recent[:, 0].sum()) < RECENT_EXAMPLES, "recent")
        require(bool((self._errors <= self._labelled).all()), "errors")

    def _now(self) -> tuple[Ints, Ints, Ints, Ints]:
        return self._labelled[None], self._errors[None], self._truths[None], self._recent[None]

    def _count(self, rows: SettledAnswers) -> Floats:
        """Count rows; return the thresholds before each of them, shape (m, n_groups)."""
        is_counted = rows.n >= self._since
        has_label = is_counted & (rows.truth >= 0)
        group = np.minimum(rows.label, self._groups - 1)
        above = (rows.point[:, None] >= CANDIDATES)[:, None, :]
        above = above & (group[:, None] == np.arange(self._groups))[:, :, None]
        is_wrong = has_label & (rows.label != rows.truth)
        sides = np.stack([is_counted & ~has_label, has_label], axis=1)
        columns = np.column_stack([np.ones(len(group), bool), above.reshape(len(group), -1)])
        truths = (rows.truth[:, None] > 0) == np.array([False, True])
        return self._in_force(
            _running(self._labelled, above & has_label[:, None, None]),
            _running(self._errors, above & is_wrong[:, None, None]),
            _running(self._truths, truths & has_label[:, None]),
            _running(self._recent, sides[:, :, None] & columns[:, None, :]),
        )

    def _in_force(self, labelled: Ints, errors: Ints, truths: Ints, recent: Ints) -> Floats:
        """Return the thresholds in force after each of m counts, shape (m, n_groups)."""
        candidate, _ = self._proven(labelled, errors, truths)
        found = np.append(CANDIDATES, NEVER)[candidate]
        found[(self._one_sided(candidate, recent) != 0) | self._is_open] = NEVER
        return found

    def _proven(self, labelled: Ints, errors: Ints, truths: Ints) -> tuple[Ints, Ints]:
        """Return the loosest proven candidate, or `_NONE`, and its shares: (m, n_groups) each."""
        candidate = np.full((len(labelled), self._groups), _NONE, dtype=np.int64)
        shares = np.zeros_like(candidate)
        for group in range(self._groups):
            evidence = np.full(labelled[:, group].shape, np.inf)
            for test in self._of_group(group):
                n, s = _of_test(test, labelled, errors, truths)
                evidence = np.minimum(evidence, log_evidence(n, s, test.rate))
            run = np.zeros(len(labelled), dtype=np.int64)
            for j in range(_NONE):
                run += _SHARES[j]
                is_proven = evidence[:, j] >= self._bounds[run]
                run[~is_proven] = 0
                candidate[is_proven, group], shares[is_proven, group] = j, run[is_proven]
        return candidate, shares

    def _of_group(self, group: int) -> list[_Test]:
        return [test for test in self._tests if test.group == group]

    def _above(self, candidate: Ints, recent: Ints) -> Ints:
        """Return the recent examples above the proven candidates, without and with a label."""
        rows, above = np.arange(len(recent)), np.zeros((len(recent), 2), dtype=np.int64)
        for group, place in enumerate(candidate.T):
            found = recent[rows, :, 1 + group * _NONE + np.minimum(place, _NONE - 1)]
            above += np.where((place < _NONE)[:, None], found, 0)
        return above

    def _one_sided(self, candidate: Ints, recent: Ints) -> Ints:
        """Return a key of `_ONE_SIDED` where the sides are labelled unlike, else 0; shape (m,)."""
        above = self._above(candidate, recent)
        below = recent[:, :, 0] - above
        n, n_below, labels = above.sum(axis=1), below.sum(axis=1), above[:, 1] + below[:, 1]
        total = n + n_below
        # Difference of the labelled shares, times both counts.
        lack = n * below[:, 1] - n_below * above[:, 1]
        is_large = np.abs(lack) >= MIN_LACK * np.where(lack > 0, n_below, n)
        is_sure = lack * lack * total >= MAX_Z_SQUARED * n * n_below * labels * (total - labels)
        return np.where(is_large & is_sure, np.sign(lack), 0)

    def _upper_bounds(self, candidate: Ints, shares: Ints) -> dict[str, float]:
        """Return an upper confidence bound of each promised rate at the proven candidates."""
        found: dict[str, float] = {}
        for test in self._tests:
            j, bound = candidate[test.group], self._bounds[shares[test.group]]
            if j < _NONE:
                n, errors = (c[0, j : j + 1] for c in _of_test(test, *self._now()[:3]))
                low, high = float(errors[0] / n[0]), test.rate
                for _ in range(30):
                    middle = 0.5 * (low + high)
                    is_proven = log_evidence(n, errors, middle)[0] >= bound
                    low, high = (low, middle) if is_proven else (middle, high)
                found[test.kind] = max(high, found.get(test.kind, 0.0))
        return found

    def _needed(self, candidate: Ints) -> int | None:
        """Return the labels until a threshold is proven at the present error rates; 0 if one is.

        None if no candidate has a low enough error rate.
        """
        if (candidate[self._tested] < _NONE).any():
            return 0
        total, least = int(self._truths.sum()) + 1, np.inf
        for group in self._tested:
            most = np.zeros(_NONE)
            for test in self._of_group(group):
                n, errors = (counts[0] for counts in _of_test(test, *self._now()[:3]))
                wanted = _until(n, errors, test.rate, self._bounds[_SHARES])
                most = np.maximum(most, (wanted - n) * (total / (n + 1)))
            least = min(least, float(most.min()))
        return int(np.ceil(least)) if least <= MAX_LABELS_NEEDED else None


_ONE_SIDED = {
    1: "decided cases get fewer labels than reviewed ones; label both alike",
    -1: "reviewed cases get fewer labels than decided ones; label both alike",
}


def decided(block: PredictionBlock, thresholds: Floats) -> PredictionBlock:
    """Return the block with the actions at thresholds of shape (m, n_groups) or (n_groups,).

    The actions are the labels and `review`. Before there is a model, every case is reviewed.
    """
    action = np.full(len(block), len(block.classes), dtype=np.int64)
    if block.status == "ok":
        found = np.broadcast_to(thresholds, (len(block), thresholds.shape[-1]))
        group = np.minimum(block.label, found.shape[1] - 1)
        is_decided = _of_label(block) >= found[np.arange(len(block)), group]
        action[is_decided] = block.label[is_decided]
    return replace(block, actions=(*map(str, block.classes), REVIEW), action=action)


def _of_label(block: PredictionBlock) -> Floats:
    found: Floats = block.point[np.arange(len(block)), block.label]
    return found


def _of_test(test: _Test, labelled: Ints, errors: Ints, truths: Ints) -> tuple[Floats, Floats]:
    """Return the labels and errors that a test counts, both of shape (m, n_candidates)."""
    s = errors[:, test.group].astype(np.float64)
    n = labelled[:, test.group] if test.truth < 0 else truths[:, test.truth, None]
    return n + np.zeros_like(s), s


def _running(counts: Ints, rows: Bools) -> Ints:
    """Add rows to counts in place; return the counts before each row, shape (m, ...)."""
    before: Ints = counts + np.cumsum(rows, axis=0, dtype=np.int64) - rows
    counts += rows.sum(axis=0)
    return before


def _until(n: Floats, errors: Floats, rate: float, bounds: Floats) -> Floats:
    """Return the labels at which the evidence at the present error rates reaches the bounds."""
    share = np.divide(errors, n, out=np.zeros_like(n), where=n > 0)
    low, high = n.copy(), np.full_like(n, 4.0 * MAX_LABELS_NEEDED)
    for _ in range(40):
        middle = 0.5 * (low + high)
        is_enough = log_evidence(middle, share * middle, rate) >= bounds
        low, high = np.where(is_enough, low, middle), np.where(is_enough, middle, high)
    return np.ceil(high)
