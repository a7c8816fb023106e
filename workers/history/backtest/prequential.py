"""One configuration over a history: each example is answered before it is learned."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice

import numpy as np

from online_svm.errors import InvalidExample
from online_svm.predictor.batch_result import BatchResult
from online_svm.predictor.late_labels import LateLabels
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.predictor.pending_examples import answer_runs
from online_svm.refit.older_rows import OlderRows, OlderRowsCheck
from online_svm.stream.cells import stacked
from online_svm.stream.labels import sorted_labels
from online_svm.stream.prediction import PredictionBlock
from online_svm.types import Floats, Ints
from workers.history.backtest.configurations import Configuration
from workers.history.backtest.recording import Entry
from workers.session.answer import AnsweredBatch
from workers.session.replay import Replay

HEADLINE = "probability"
"""Name of the probability that stands first in an answer."""

VENN = "venn"
"""Name of the Venn predictor's point probability, with its hull."""

WARM_UP = 60
"""Entries answered and thrown away before the clock starts: machine code is then loaded."""

Classes = tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Published:
    """One published probability of some answers.

    Attributes
    ----------
    probabilities : ndarray of shape (n, K)
    intervals : ndarray of shape (n, K, 2) or None
        Lower and upper probability of each class, where the method gives them.
    """

    probabilities: Floats
    intervals: Floats | None = None

    def changed(self, change: Callable[[Floats], Floats]) -> "Published":
        """Return what a change of the rows or the columns makes of both arrays."""
        intervals = None if self.intervals is None else change(self.intervals)
        return Published(change(self.probabilities), intervals)


@dataclass(slots=True)
class Answered:
    """What came of a history.

    Attributes
    ----------
    classes : tuple of (str or None)
        All K that an answer had, sorted; a last None is the slot of labels not seen yet.
    truth : ndarray of shape (n,)
        Column of the true label of each scored answer, the last one where the model did not know
        the label.
    learned : ndarray of shape (n,)
        Examples learned before each scored answer.
    methods : dict of str to Published
        `HEADLINE`, `VENN` and each published map; empty where nothing was scored.
    n_entries, n_learned, n_repeated, n_unlabelled, n_warming : int
        Entries; of them learned; repeats of an id; answered without a label, or given up without
        one where labels come late; with a label, but answered before there was a model.
    rejected : dict of str to int
        Entries refused, by the code of the reason.
    reason : str or None
        Why the first one was refused.
    seconds : float
        Processor time of decoding, answering and learning.
    older_rows : OlderRows or None
        Whether a longer memory would help; None without a window, or with too few examples.
    """

    classes: Classes = ()
    truth: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    learned: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    methods: dict[str, Published] = field(default_factory=dict)
    n_entries: int = 0
    n_learned: int = 0
    n_repeated: int = 0
    n_unlabelled: int = 0
    n_warming: int = 0
    rejected: dict[str, int] = field(default_factory=dict)
    reason: str | None = None
    seconds: float = 0.0
    older_rows: OlderRows | None = None


def answer(
    configuration: Configuration,
    batches: Iterable[Sequence[Entry]],
    told: Callable[[int], None] = lambda _: None,
) -> Answered:
    """Answer a history from its start; the result does not depend on how it is cut into batches.

    Parameters
    ----------
    configuration : Configuration
    batches : iterable of sequence of (bytes, fields)
    told : callable
        Called with the number of entries so far after each batch; what it raises ends the run.

    Examples
    --------
    >>> from workers.config.settings import WorkerSettings
    >>> from workers.history.backtest.configurations import configurations
    >>> (base,) = configurations(WorkerSettings(), {"base": {}})
    >>> entries = [(b"", [b"x", b"[%d]" % (i % 2), b"y", b"ab"[i % 2 :][:1]]) for i in range(50)]
    >>> found = answer(base, [entries])
    >>> found.n_warming, found.classes, found.truth[:4]
    (10, ('a', 'b', None), array([0, 1, 0, 1]))
    """
    found, scored = Answered(), _Scored()
    check = (
        None if configuration.predictor.window is None else OlderRowsCheck(configuration.predictor)
    )
    replay = Replay(OnlinePredictor(configuration.predictor), configuration.limits)
    for batch in batches:
        began = time.process_time()
        answered = replay.predict(batch)
        found.seconds += time.process_time() - began
        if replay.predictor.late is None:
            _score(answered, scored, found)
        else:
            _score_late(answered.result, replay.predictor.late, scored, found)
        if check is not None:
            X, learned = _learned(answered, replay.predictor.late)
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


def load_code(configuration: Configuration, batches: Iterable[Sequence[Entry]]) -> None:
    """Answer the head of a history and throw it away, so that all code is loaded."""
    head: Iterator[Entry] = chain.from_iterable(batches)
    answer(configuration, [list(islice(head, WARM_UP))])


def published(block: PredictionBlock) -> dict[str, Published]:
    """Return the published probabilities of a block that is not warming, by name."""
    own = Published(block.point, np.stack((block.lower, block.upper), axis=-1))
    venn = Published(block.venn_point, np.stack((block.venn_lower, block.venn_upper), axis=-1))
    intervals = block.map_intervals or {}
    maps = {name: Published(values, intervals.get(name)) for name, values in block.maps.items()}
    return {HEADLINE: own, VENN: venn} | maps


def _score(answered: AnsweredBatch, scored: "_Scored", found: Answered) -> None:
    """Score the answers of a batch by the labels that came with it."""
    decoded, result = answered
    labels = dict(zip(decoded.accepted, decoded.labels, strict=True))
    for indices, block in result.answers:
        found.n_warming += scored.add([block], [labels[i] for i in indices])
    found.n_unlabelled += sum(labels[i] is None for i in result.answered)


def _score_late(result: BatchResult, late: LateLabels, scored: "_Scored", found: Answered) -> None:
    """Score the examples that a batch let be learned by what they were told."""
    for block, begin, stop in answer_runs(result.learned):
        learned = result.learned[begin:stop]
        found.n_warming += scored.add([block], [example.label for example in learned])
    found.n_unlabelled = late.counts.censored + late.counts.dropped


def _learned(answered: AnsweredBatch, late: LateLabels | None) -> tuple[Floats, list[str]]:
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


def _count_rejected(found: Answered, rejected: Mapping[int, InvalidExample]) -> None:
    for _, error in sorted(rejected.items()):
        found.rejected[error.code] = found.rejected.get(error.code, 0) + 1
        found.reason = found.reason or error.reason


class _Scored:
    """Labelled answers of models, block by block: their classes may become more."""

    def __init__(self) -> None:
        self._blocks: list[tuple[Classes, dict[str, Published]]] = []
        self._labels: list[str] = []
        self._learned: list[Ints] = []

    def add(self, blocks: Sequence[PredictionBlock], labels: Sequence[str | None]) -> int:
        """Add the labelled rows of blocks; return how many others with a label were warming."""
        warming = begin = 0
        for block in blocks:
            of_block = labels[begin : begin + len(block)]
            begin += len(block)
            rows = [i for i, label in enumerate(of_block) if label is not None]
            if block.status == "warming":
                warming += len(rows)
            elif rows:
                methods = {name: _rows(one, rows) for name, one in published(block).items()}
                self._blocks.append((block.classes, methods))
                self._labels += [label for label in of_block if label is not None]
                self._learned.append(block.n[rows])
        return warming

    def finish(self, found: Answered) -> None:
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
        """Return the column of each label; labels that a model does not know are the slot's."""
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
