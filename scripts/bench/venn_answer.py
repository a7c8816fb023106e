"""A Venn-Abers answer on a full window against the batch fit before every answer, in one run."""

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from typing_extensions import override

from online_svm.calibration.estimators import VennAbers
from online_svm.types import Floats, Ints
from online_svm.venn.growing_venn_abers import AbersSet
from scripts.bench.report import Result, Tell, silent

SIZES = (300, 850, 2000)
ANSWERS = 3000
BATCH_ANSWERS = 100
REPEATS = 5  # of either side; the best counts, so that other work on the machine matters less


@dataclass(frozen=True, slots=True)
class VennCost(Result):
    """Microseconds of processor time.

    Attributes
    ----------
    size : int
        Examples in the calibration set.
    answer : float
        An answer, after which nothing joins.
    step : float
        An answer, after which its example joins and the oldest leaves.
    batch : float
        A fit of `VennAbers` and its answer.
    """

    size: int
    answer: float
    step: float
    batch: float

    @override
    def plain(self) -> dict[str, Any]:
        return asdict(self) | {"ratio": self.batch / self.step}

    def __str__(self) -> str:
        return (
            f"venn-abers, {self.size:>5} examples: answer {self.answer:6.2f} us, with joining and "
            f"leaving {self.step:6.2f} us; batch fit {self.batch:8.1f} us, "
            f"{self.batch / self.step:6.1f} x"
        )


def run(
    tell: Tell = silent,
    sizes: tuple[int, ...] = SIZES,
    answers: int = ANSWERS,
    repeats: int = REPEATS,
) -> Iterator[VennCost]:
    """Yield the cost for each size of the calibration set.

    Raises
    ------
    ArithmeticError
        If the two sides disagree; then there is nothing to compare.

    Examples
    --------
    >>> [found.size for found in run(sizes=(20,), answers=50, repeats=1)]
    [20]
    """
    tell("compiling")
    _ours(*_examples(40), size=20)
    _batch(*_examples(40), size=20)
    for size in sizes:
        tell(f"{size} examples")
        scores, codes = _examples(size + answers)
        few = slice(size + min(answers, BATCH_ANSWERS))
        steps = [_ours(scores, codes, size) for _ in range(repeats)]
        queries = np.where(np.arange(len(codes)) < size, codes, -1)
        asked = [_ours(scores, queries, size) for _ in range(repeats)]
        fits = [_batch(scores[few], codes[few], size) for _ in range(repeats)]
        if not np.array_equal(fits[0][1], steps[0][1][: len(fits[0][1])]):
            raise ArithmeticError(f"{size} examples: the two sides disagree")
        answer, step, batch = (min(s for s, _ in found) for found in (asked, steps, fits))
        yield VennCost(size, 1e6 * answer, 1e6 * step, 1e6 * batch)


def _examples(n: int) -> tuple[Floats, Ints]:
    """Return scores and labels that they predict about as an SVM's do."""
    rng = np.random.default_rng(0)
    scores = rng.normal(size=n)
    return scores, (rng.random(n) < 1.0 / (1.0 + np.exp(-2.0 * scores))).astype(np.int64)


def _ours(scores: Floats, codes: Ints, size: int) -> tuple[float, Floats]:
    """Return seconds an answer and the intervals of class 1."""
    held = AbersSet(2, scores[:size, None], codes[:size], 2, size)
    began = time.process_time()
    found = held.answer(scores[size:, None], codes[size:])
    seconds = time.process_time() - began
    intervals = np.column_stack((found.lower[:, 1], found.upper[:, 1]))
    return seconds / (len(codes) - size), intervals


def _batch(scores: Floats, codes: Ints, size: int) -> tuple[float, Floats]:
    began = time.process_time()
    intervals = []
    for i in range(size, len(codes)):
        fitted = VennAbers().fit(scores[i - size : i], codes[i - size : i])
        intervals.append(fitted.predict_interval(scores[i : i + 1]))
    return (time.process_time() - began) / len(intervals), np.concatenate(intervals)
