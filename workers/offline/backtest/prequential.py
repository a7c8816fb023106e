"""One configuration over a history: each example is answered before it is learned."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from online_svm.errors import InvalidExample
from online_svm.predictor.batch import BatchResult
from online_svm.predictor.delayed_labels import DelayedLabels
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.predictor.pending_examples import answer_runs
from online_svm.refit.older_rows import OlderRows, OlderRowsCheck
from online_svm.stream.cells import stacked
from online_svm.stream.labels import sorted_labels
from online_svm.stream.prediction import PredictionBlock
from online_svm.types import Floats, Ints
from workers.offline.backtest.configurations import Configuration
from workers.offline.backtest.history import Entry
from workers.session.answer import AnsweredBatch
from workers.session.replay import Replay

HEADLINE = "probability"  # name of the probability that stands first in an answer
VENN = "venn"  # name of the Venn predictor's point probability, with its hull

Classes = tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Published:
    """One published probability of some answers."""

    probabilities: Floats  # shape (n, K)
    intervals: Floats | None = None  # shape (n, K, 2), where the method gives them

    def changed(self, change: Callable[[Floats], Floats]) -> "Published":
        """Return what a change of the rows or the columns makes of both arrays."""
        intervals = None if self.intervals is None else change(self.intervals)
        return Published(change(self.probabilities), intervals)


@dataclass(slots=True)
class HistoryOutcome:
    """The outcome of a history; n answers are scored."""

    # All K that an answer had, sorted; a last None is the slot of labels not seen yet
    classes: Classes = ()
    # Shape (n,): column of the true label, the last one where the model did not know the label
    truth: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    # Shape (n,): examples learned before each scored answer
    learned: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    # `HEADLINE`, `VENN` and each published map; empty where nothing was scored
    methods: dict[str, Published] = field(default_factory=dict)
    n_entries: int = 0
    n_learned: int = 0
    n_repeated: int = 0  # repeats of an id
    n_unlabelled: int = 0  # answered without a label, or given up without one
    n_warming: int = 0  # with a label, but answered before there was a model
    rejected: dict[str, int] = field(default_factory=dict)  # by the code of the reason
    reason: str | None = None  # why the first one was refused
    seconds: float = 0.0  # processor time of decoding, answering and learning
    older_rows: OlderRows | None = None  # None without a window, or with too few examples


def answer(
    configuration: Configuration,
    batches: Iterable[Sequence[Entry]],
    told: Callable[[int], None] = lambda _: None,
) -> HistoryOutcome:
    """Answer a history from its start; the result does not depend on how it is cut into batches.

    `told` is called with the number of entries so far after each batch; what it raises ends the
    run.
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
        if replay.predictor.delayed_labels is None:
            _score(answered, scored, found)
        else:
            _score_late(answered.result, replay.predictor.delayed_labels, scored, found)
        if check is not None:
            X, learned = _learned(answered, replay.predictor.delayed_labels)
            if learned:
                check.learn(X, learned, is_named=replay.predictor.schema.is_mixed)
        found.n_repeated += len(answered.result.repeats)
        _count_rejected(found, answered.decoded.rejected | answered.result.rejected)
        found.n_entries = replay.position.seq
        told(found.n_entries)
    found.n_learned = replay.predictor.n
    found.older_rows = None if check is None else check.result()
    scored.finish(found)
    return found


def published(block: PredictionBlock) -> dict[str, Published]:
    """Return the published probabilities of a block that is not warming, by name."""
    own = Published(block.point, np.stack((block.lower, block.upper), axis=-1))
    venn = Published(block.venn_point, np.stack((block.venn_lower, block.venn_upper), axis=-1))
    intervals = block.map_intervals or {}
    maps = {name: Published(values, intervals.get(name)) for name, values in block.maps.items()}
    return {HEADLINE: own, VENN: venn} | maps


def _score(answered: AnsweredBatch, scored: "_Scored", found: HistoryOutcome) -> None:
    """Score the answers of a batch by the labels that came with it."""
    decoded, result = answered
    labels = dict(zip(decoded.accepted, decoded.labels, strict=True))
    for indices, block in result.answers:
        found.n_warming += scored.add(block, [labels[i] for i in indices])
    found.n_unlabelled += sum(labels[i] is None for i in result.answered)


def _score_late(
    result: BatchResult, late: DelayedLabels, scored: "_Scored", found: HistoryOutcome
) -> None:
    """Score the examples that a batch learned, by the answers they got."""
    for block, begin, stop in answer_runs(result.learned):
        labels = [example.label for example in result.learned[begin:stop]]
        found.n_warming += scored.add(block, labels)
    found.n_unlabelled = late.counts.censored + late.counts.dropped


def _learned(answered: AnsweredBatch, late: DelayedLabels | None) -> tuple[Floats, list[str]]:
    """Return the rows with a label that a batch let be learned, and their labels."""
    decoded, result = answered
    if late is not None:
        told = [(one.x, one.label) for one in result.learned if one.label is not None]
        return stacked([x for x, _ in told]), [label for _, label in told]
    taken, labels = set(result.answered), decoded.labels
    rows = [
        row for row, at in enumerate(decoded.accepted) if at in taken and labels[row] is not None
    ]
    return decoded.X[rows], [label for row in rows if (label := labels[row]) is not None]


def _count_rejected(found: HistoryOutcome, rejected: Mapping[int, InvalidExample]) -> None:
    for _, error in sorted(rejected.items()):
        found.rejected[error.code] = found.rejected.get(error.code, 0) + 1
        found.reason = found.reason or error.reason


class _Scored:
    """Labelled answers of models, block by block: their classes may become more."""

    def __init__(self) -> None:
        self._blocks: list[tuple[Classes, dict[str, Published]]] = []
        self._labels: list[str] = []
        self._learned: list[Ints] = []

    def add(self, block: PredictionBlock, labels: Sequence[str | None]) -> int:
        """Add the labelled rows of a block; return how many it has if it is warming."""
        rows = [i for i, label in enumerate(labels) if label is not None]
        if block.status == "warming":
            return len(rows)
        if rows:
            methods = {name: _rows(one, rows) for name, one in published(block).items()}
            self._blocks.append((block.classes, methods))
            self._labels += [label for label in labels if label is not None]
            self._learned.append(block.n[rows])
        return 0

    def finish(self, found: HistoryOutcome) -> None:
        """Set the scored answers of `found`, over all classes that any of them had."""
        if not self._blocks:
            return
        met = {name for classes, _ in self._blocks for name in classes}
        known = sorted_labels([name for name in met if name is not None])
        found.classes = (*known, None) if None in met else known
        found.learned = np.concatenate(self._learned)
        found.truth = self._truth(found.classes)
        found.methods = {name: self._joined(name, found.classes) for name in self._blocks[0][1]}

    def _truth(self, classes: Classes) -> Ints:
        column = {name: place for place, name in enumerate(classes)}
        truth, begin = [], 0
        for (of_block, _), learned in zip(self._blocks, self._learned, strict=True):
            labels = self._labels[begin : begin + len(learned)]
            begin += len(learned)
            truth += [column[name if name in of_block else None] for name in labels]
        return np.array(truth, dtype=np.int64)

    def _joined(self, name: str, classes: Classes) -> Published:
        """Return one method over all classes: 0 where a model did not know a class."""
        column = {label: place for place, label in enumerate(classes)}
        parts = []
        for of_block, methods in self._blocks:
            spread = partial(_spread, [column[label] for label in of_block], len(classes))
            parts.append(methods[name].changed(spread))
        intervals = [part.intervals for part in parts if part.intervals is not None]
        return Published(
            np.concatenate([part.probabilities for part in parts]),
            np.concatenate(intervals) if intervals else None,
        )


def _rows(method: Published, rows: Sequence[int]) -> Published:
    return method.changed(lambda values: values[rows])


def _spread(places: Sequence[int], n_classes: int, values: Floats) -> Floats:
    """Return an array with each column where all classes have it, and 0 in the others."""
    filled = np.zeros((len(values), n_classes, *values.shape[2:]))
    filled[:, places] = values
    return filled
