"""MemoryFits: the rows of the memory, and when the long and the mid trees are fitted to them.

The schedule depends only on the number of learned rows. The trees are fitted at 1,000 rows, and
again when the rows have grown 1.4-fold; beyond the bound of the memory the long trees are fitted at
every quarter of it, and the mid trees at least at every 2,500 rows. A fit takes effect a quarter of
the distance to the next one later: long enough that another process finishes it meanwhile, without
a wait, while a feed learns at full speed.

A snapshot does not wait for a fit: what a pending fit needs can be computed again from the rows.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from online_svm.config import PredictorConfig
from online_svm.memory.encoder import BinnedRows, MemoryEncoder
from online_svm.memory.rows import LabelledRows, MemoryChunk, MemoryRows, stored_rows
from online_svm.predictor.memory_experts import FittedTrees
from online_svm.refit.committee.forest import BINS
from online_svm.refit.memory_trees import LONG, MID, FitTask, ForestKind, MemoryTrees, trees_of
from online_svm.refit.task import ForestFit, Refitter
from online_svm.storage.state import require
from online_svm.storage.state_schema import StateSchema, Stored, floats, number, part
from online_svm.types import Bytes, Floats, Ints

FIRST_FIT = 1_000  # rows
NEVER = 1 << 60  # more than any number of rows
GROWTH = 0.4  # of the rows until the next fit
BOUND_SHARE = 4  # fits of the long trees while the rows of the bound are replaced
MID_DISTANCE = 2_500  # rows between two fits of the mid trees
LAG_SHARE = 4  # a fit takes effect after this part of the distance to the next one

MAX_BYTES = 16_000_000
"""Bound on the raw cells of a feed, which also bounds the rows."""


class MemoryStatus(NamedTuple):
    """The memory of a feed at one moment."""

    rows: int
    bytes: int  # of the raw cells
    bound: int  # rows that a fit takes at most
    fitted_at: int  # rows that were learned before the fit of the long trees; 0 before the first
    weights: dict[str, float]  # part of each expert in the answers


class PendingFit(Stored):
    """A fit that has not taken effect."""

    _stored = StateSchema(
        number("first"), number("stop"), number("activation"), number("n_classes"),
        floats("edges", f"width {BINS - 1}"),
    )  # fmt: skip

    def __init__(self, kind: ForestKind) -> None:
        self.kind = kind
        self.first = self.stop = 0  # numbers of its first row, and of the row after its last
        self.activation = 0  # number of the row from which on its trees answer
        self.n_classes = 2
        self.edges: Floats = np.empty((0, BINS - 1))
        self.fit: ForestFit | None = None  # None until it is submitted

    @property
    def is_ready(self) -> bool:
        """Whether the trees can be taken without a wait."""
        return self.fit is not None and self.fit.is_ready

    def trees(self) -> MemoryTrees:
        """Return the trees; wait for them if needed."""
        assert self.fit is not None
        return trees_of(self.fit.result())


class MemoryFits(Stored):
    """The rows of the memory and the fits of its trees.

    `rows`: numbered by the rows that were learned before.
    `is_named`: whether rows are cells of named features.
    """

    _stored = StateSchema(
        number("_stop"), number("_since"), number("_offset"), number("_width"), number("_first"),
        number("_count"), number("_next_long"), number("_next_mid"),
        part("_binned", stored_as="bins"), part("_long", of="_new_long"),
        part("_mid", of="_new_mid"),
    )  # fmt: skip

    def __init__(self, config: PredictorConfig, refitter: Refitter) -> None:
        self._config, self._refitter = config, refitter
        self.rows, self.is_named = MemoryRows(), False
        self._offset = 0  # number of the next row less the learned examples
        self._widest = 0  # largest number of features of the dropped rows
        self._begin(0)
        # Of a restored state, until `take_rows`.
        self._restored_first = self._restored_count = 0

    def _begin(self, since: int) -> None:
        self._since = since  # number of the first row that fits may use
        self._next_long = self._next_mid = since + FIRST_FIT
        self._long: PendingFit | None = None
        self._mid: PendingFit | None = None
        self._binned = BinnedRows(MemoryEncoder(self._config.declared_kinds))

    @property
    def _pending(self) -> list[PendingFit]:
        return [fit for fit in (self._long, self._mid) if fit is not None]

    @property
    def stop(self) -> int:
        """Number of the next row."""
        return self.rows.stop

    @property
    def changes(self) -> list[int]:
        """Counts of learned examples at which answering must stop for the memory."""
        due = [self._next_long, self._next_mid, *(fit.activation for fit in self._pending)]
        return [number - self._offset for number in due]

    @property
    def is_waiting(self) -> bool:
        """Whether the next answer needs trees that were not taken yet."""
        return any(fit.activation == self.stop for fit in self._pending)

    @property
    def is_ready(self) -> bool:
        """Whether the next answer needs no trees that are still being computed."""
        return all(fit.is_ready for fit in self._pending if fit.activation == self.stop)

    @property
    def until_wait(self) -> int:
        """Lower bound on the examples to learn until an answer needs trees."""
        due = [fit.activation for fit in self._pending if fit.activation > self.stop]
        for kind, at in ((LONG, self._next_long), (MID, self._next_mid)):
            due.append(at + self._distance(kind, at) // LAG_SHARE)
        return min(due) - self.stop

    @property
    def bound(self) -> int:
        """Rows that a fit takes at most, given the width of the rows."""
        return max(1, min(self._config.memory, MAX_BYTES // (8 * max(1, self._width))))

    def learn(self, X: Floats, codes: Ints, ids: Sequence[str | None]) -> None:
        """Add learned rows with the codes of their labels and the ids of their examples."""
        self.rows.append(X, codes, ids)

    def due(self) -> list[FittedTrees]:
        """Return the trees that take effect now; wait for them if needed."""
        found = [fit for fit in self._pending if fit.activation == self.stop]
        self._long, self._mid = (
            None if fit in found else fit for fit in (self._long, self._mid)
        )  # fmt: skip
        return [self._fitted(fit) for fit in found]

    def fit_if_due(self) -> None:
        """Submit the fits that are due after the last row."""
        kinds = [LONG] * (self._next_long == self.stop) + [MID] * (self._next_mid == self.stop)
        if kinds:
            self._submit(kinds)

    def fit_now(self, *, needs_many: bool) -> list[FittedTrees]:
        """Forget all fits, and fit the trees to the rows anew; wait for them.

        `needs_many`: whether there are no trees until there are as many rows as for a first fit.
        """
        self._begin(self._since)
        lacking = FIRST_FIT - len(self.rows)
        if needs_many and lacking > 0:
            self._next_long = self._next_mid = self.stop + lacking
            return []
        self._submit([LONG, MID])
        found, self._long, self._mid = self._pending, None, None
        return [self._fitted(fit) for fit in found]

    def recall(self, X: Floats, codes: Ints) -> None:
        """Take rows that came before the first example; no fit is due until `fit_now`."""
        assert not self.stop
        self.rows.append(X, codes, ())
        self._offset = self.stop
        self._next_long = self._next_mid = NEVER

    def restart(self) -> None:
        """Use only the rows that follow from now on; the fits under way are dropped."""
        self._begin(self.stop)
        self.rows.drop_before(self.stop)

    def erase(self, ids: Collection[str]) -> int:
        """Delete the rows of these ids; return their number. `fit_now` must follow."""
        return self.rows.erase(ids)

    def adopt(self, chunks: Iterable[bytes], ids: Collection[str], labels: Sequence[str]) -> int:
        """Take the rows of stored chunks in place of the own ones; return how many are left out.

        Left out are the rows of `ids`, and those of labels that are not in `labels`. `fit_now` must
        follow.
        """
        n, stored = self.stop - self._offset, stored_rows(chunks)
        given = sum(len(one.rows.numbers) for one in stored)
        rows = LabelledRows.joined([one.with_codes(labels) for one in stored])
        self.rows, self._widest, self._since = MemoryRows(), 0, 0
        self.rows.extend(rows)
        self.rows.erase(ids)
        kept = self.rows.between(0, 1 + max(rows.numbers, default=0))
        # Numbers follow each other without the gaps of erased rows.
        self.rows = MemoryRows()
        self.rows.extend(kept._replace(numbers=np.arange(len(kept.numbers))))
        self.rows.stop = len(kept.numbers)
        self._offset = self.rows.stop - n
        return given - len(kept.numbers)

    @property
    def first_chunk(self) -> int:
        """Index of the first chunk that a later fit, or a pending one, needs."""
        return MemoryRows.chunk_of(self.first)

    @property
    def first(self) -> int:
        """Number of the first row that a later fit, or a pending one, needs."""
        oldest = min([self.stop, *(fit.stop for fit in self._pending)])
        return max(self._since, self.rows.newest(self.bound, oldest))

    def chunks(self, labels: Sequence[str], since: int) -> list[MemoryChunk]:
        """Return the chunks with rows numbered `since` or higher; `labels`: in order of codes."""
        self.rows.drop_before(self.first)
        return self.rows.chunks(labels, since)

    def take_rows(self, chunks: Iterable[bytes], labels: Sequence[str]) -> None:
        """Take the rows of a restored state from stored chunks.

        Raises ValueError if a row is missing.
        """
        stop, first = self.stop, self._restored_first
        self.rows = MemoryRows()
        for one in stored_rows(chunks):
            rows = one.with_codes(labels)
            self.rows.extend(rows.chosen((rows.numbers >= first) & (rows.numbers < stop)))
        self.rows.stop = stop
        require(len(self.rows) == self._restored_count, "memory: the rows of the chunks")

    def continue_fits(self) -> None:
        """Submit the pending fits of a restored state again."""
        for fit in self._pending:
            rows = self.rows.between(fit.first, fit.stop)
            self._start(fit, rows, self._binned.of(rows, fit.edges))

    @property
    def _stop(self) -> int:
        return self.rows.stop

    @_stop.setter
    def _stop(self, stop: int) -> None:
        self.rows.stop = stop

    @property
    def _width(self) -> int:
        """Largest number of features of the rows so far."""
        self._widest = max(self._widest, self.rows.width)
        return self._widest

    @_width.setter
    def _width(self, width: int) -> None:
        self._widest = width

    @property
    def _first(self) -> int:
        return self.first

    @_first.setter
    def _first(self, first: int) -> None:
        self._restored_first = first

    @property
    def _count(self) -> int:
        return len(self.rows.between(self.first, self.stop).numbers)

    @_count.setter
    def _count(self, count: int) -> None:
        self._restored_count = count

    def _new_long(self) -> PendingFit:
        return PendingFit(LONG)

    def _new_mid(self) -> PendingFit:
        return PendingFit(MID)

    def _distance(self, kind: ForestKind, at: int) -> int:
        """Return the number of rows from a fit, before row `at`, to the next one."""
        longest = self.bound // BOUND_SHARE if kind is LONG else MID_DISTANCE
        return max(1, min(int(GROWTH * (at - self._since)), longest))

    def _submit(self, kinds: Sequence[ForestKind]) -> None:
        """Submit fits to the rows so far."""
        stop = self.stop
        self.rows.drop_before(self.first)
        rows = self.rows.between(max(self._since, self.rows.newest(self.bound, stop)), stop)
        self._binned.encoder.is_named = self.is_named
        bins = self._binned.update(rows, stop)
        declared = len(self._config.classes or ())
        for kind in kinds:
            newest = slice(len(rows.codes) - kind.size(len(rows.codes)), None)
            distance = self._distance(kind, stop)
            fit = PendingFit(kind)
            fit.first, fit.stop = int(rows.numbers[newest][0]), stop
            fit.n_classes = declared or int(rows.codes[newest].max()) + 1
            fit.activation = stop + max(1, distance // LAG_SHARE)
            fit.edges = self._binned.edges
            can_fit = len(np.unique(rows.codes[newest])) > 1
            if can_fit:
                self._start(fit, rows.chosen(newest), bins[newest])
            if kind is LONG:
                self._next_long, self._long = stop + distance, fit if can_fit else None
            else:
                self._next_mid, self._mid = stop + distance, fit if can_fit else None

    def _start(self, fit: PendingFit, rows: LabelledRows, bins: Bytes) -> None:
        are_categories = self._binned.encoder.are_categories[: len(fit.edges)]
        task = FitTask(
            fit.kind, bins, fit.edges, are_categories, rows.codes, fit.n_classes,
            self._config.seed, fit.stop,
        )  # fmt: skip
        fit.fit = self._refitter.fit(task.state())

    def _fitted(self, fit: PendingFit) -> FittedTrees:
        return FittedTrees(fit.kind.name, fit.trees(), self._binned.copied_encoder(), fit.stop)
