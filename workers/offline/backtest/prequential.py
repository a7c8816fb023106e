"""Run one configuration over a history; each example is answered before it is learned."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from online_svm.config import PredictorConfig
from online_svm.errors import InvalidExample
from online_svm.metrics.cost_matrix import CostMatrix
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.refit.older_rows import OlderRows, OlderRowsCheck
from online_svm.stream.labels import sorted_labels
from online_svm.stream.prediction import PredictionBlock, SettledRows
from online_svm.types import Floats, Ints
from workers.config.settings import Limits
from workers.offline.backtest.history import Entry
from workers.session.replay import Replay

HEADLINE = "probability"  # name of the primary probability of an answer
VENN = "venn"  # name of the Venn predictor's point probability and interval

Classes = tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Configuration:
    """The settings of one run; `changes` are the settings of its section and of the base."""

    name: str
    predictor: PredictorConfig
    limits: Limits
    changes: dict[str, Any]

    @property
    def settings(self) -> dict[str, Any]:
        """All settings by group, as JSON values."""
        return {
            "predictor": self.predictor.model_dump(mode="json"),
            "limits": self.limits.model_dump(mode="json"),
        }


@dataclass(frozen=True, slots=True)
class Published:
    """The probabilities of one method for some answers."""

    probabilities: Floats  # shape (n, K)
    intervals: Floats | None = None  # shape (n, K, 2); None if the method gives none

    def mapped(self, function: Callable[[Floats], Floats]) -> "Published":
        """Return both arrays after a function of their rows or columns."""
        intervals = None if self.intervals is None else function(self.intervals)
        return Published(function(self.probabilities), intervals)


@dataclass(slots=True)
class HistoryOutcome:
    """The outcome of a history with n scored answers over K classes."""

    # The classes of all answers, sorted; a last None stands for labels that were not seen yet
    classes: Classes = ()
    # Shape (n,): column of the true label; the last column if the model did not know the label
    truth: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    # Shape (n,): examples learned before each scored answer
    learned: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    # `HEADLINE`, `VENN` and each published map; empty if nothing was scored
    methods: dict[str, Published] = field(default_factory=dict)
    n_entries: int = 0
    n_learned: int = 0
    n_repeated: int = 0  # entries with a repeated id
    n_unlabelled: int = 0  # answered examples without a label, also after their horizon
    n_warming: int = 0  # labelled examples that were answered before the first model
    rejected: dict[str, int] = field(default_factory=dict)  # by reason code
    reason: str | None = None  # reason of the first rejection
    seconds: float = 0.0  # processor time of decoding, answering and learning
    older_rows: OlderRows | None = None  # None without a window, or with too few examples
    costs: CostMatrix | None = None  # None without the setting `costs`


def answer(
    configuration: Configuration,
    batches: Iterable[Sequence[Entry]],
    progress: Callable[[int], None] = lambda _: None,
) -> HistoryOutcome:
    """Answer a history from its start; the result does not depend on the batches.

    `progress` is called after each batch with the number of entries so far; an exception in it ends
    the run.
    """
    found, scored = HistoryOutcome(), _Scored()
    check = (
        None if configuration.predictor.window is None else OlderRowsCheck(configuration.predictor)
    )
    replay = Replay(OnlinePredictor(configuration.predictor), configuration.limits)
    for batch in batches:
        began = time.process_time()
        answered = replay.predict(batch)
        found.seconds += time.process_time() - began
        for rows in answered.result.settled:
            found.n_warming += scored.add(rows)
            found.n_unlabelled += int(np.count_nonzero(rows.codes < 0))
            if check is not None:
                labelled, names = rows.codes >= 0, replay.predictor.labels.labels
                learned = [names[code] for code in rows.codes[labelled].tolist()]
                check.learn(rows.X[labelled], learned, is_named=replay.predictor.schema.is_mixed)
        found.n_repeated += len(answered.result.repeats)
        _count_rejected(found, answered.decoded.rejected | answered.result.rejected)
        found.n_entries = replay.position.seq
        progress(found.n_entries)
    found.n_learned = replay.predictor.n
    found.costs = CostMatrix.of(configuration.predictor)
    found.older_rows = None if check is None else check.result()
    scored.finish(found)
    return found


def published(block: PredictionBlock) -> dict[str, Published]:
    """Return the probabilities of each method in a block that is not warming, by name."""
    headline = Published(block.point, np.stack((block.lower, block.upper), axis=-1))
    venn = Published(block.venn_point, np.stack((block.venn_lower, block.venn_upper), axis=-1))
    intervals = block.map_intervals or {}
    maps = {name: Published(values, intervals.get(name)) for name, values in block.maps.items()}
    return {HEADLINE: headline, VENN: venn} | maps


def _count_rejected(found: HistoryOutcome, rejected: Mapping[int, InvalidExample]) -> None:
    for _, error in sorted(rejected.items()):
        found.rejected[error.code] = found.rejected.get(error.code, 0) + 1
        found.reason = found.reason or error.reason


class _Scored:
    """Collects labelled answers block by block, since later blocks may have more classes."""

    def __init__(self) -> None:
        self._blocks: list[tuple[Classes, dict[str, Published]]] = []
        self._columns: list[Ints] = []
        self._learned: list[Ints] = []

    def add(self, settled: SettledRows) -> int:
        """Add the labelled rows of a block; if it is warming, only return their number."""
        block, rows = settled.block, np.flatnonzero(settled.codes >= 0)
        if block.status == "warming":
            return len(rows)
        if len(rows):
            methods = {name: _rows(method, rows) for name, method in published(block).items()}
            self._blocks.append((block.classes, methods))
            self._columns.append(settled.columns[rows])
            self._learned.append(block.n[rows])
        return 0

    def finish(self, found: HistoryOutcome) -> None:
        """Set the scored answers of `found`, over the classes of all blocks."""
        if not self._blocks:
            return
        seen = {name for classes, _ in self._blocks for name in classes}
        known = sorted_labels([name for name in seen if name is not None])
        found.classes = (*known, None) if None in seen else known
        found.learned = np.concatenate(self._learned)
        found.truth = self._truth(found.classes)
        found.methods = {name: self._joined(name, found.classes) for name in self._blocks[0][1]}

    def _truth(self, classes: Classes) -> Ints:
        column = {name: index for index, name in enumerate(classes)}
        places = [np.array([column[name] for name in of_block]) for of_block, _ in self._blocks]
        return np.concatenate([of[at] for of, at in zip(places, self._columns, strict=True)])

    def _joined(self, name: str, classes: Classes) -> Published:
        """Return a method over all classes; a class that a model did not know has 0."""
        column = {label: index for index, label in enumerate(classes)}
        parts = []
        for block_classes, methods in self._blocks:
            spread = partial(_spread, [column[label] for label in block_classes], len(classes))
            parts.append(methods[name].mapped(spread))
        intervals = [part.intervals for part in parts if part.intervals is not None]
        return Published(
            np.concatenate([part.probabilities for part in parts]),
            np.concatenate(intervals) if intervals else None,
        )


def _rows(method: Published, rows: Ints) -> Published:
    return method.mapped(lambda values: values[rows])


def _spread(columns: Sequence[int], n_classes: int, values: Floats) -> Floats:
    """Return an array of `n_classes` columns, with the values in some of them and 0 elsewhere."""
    filled = np.zeros((len(values), n_classes, *values.shape[2:]))
    filled[:, columns] = values
    return filled
