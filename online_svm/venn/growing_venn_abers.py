"""Venn-Abers prediction on a calibration set that grows with every example."""

import numpy as np
from typing_extensions import override

from online_svm.compiled.jit import jit
from online_svm.errors import InvalidInput
from online_svm.types import Floats, Ints
from online_svm.venn.pooled_scores import (
    PooledScores,
    insert,
    isotonic_pair,
    pooled,
    remove,
    with_room,
)
from online_svm.venn.protocol import VennAnswers, VennSet
from online_svm.venn.taxonomy import svm_classes

NO_JOINT = (
    "Venn-Abers over more than two classes is one-against-all: its values are points, not a "
    "multiprobability"
)


class AbersSet(VennSet):
    """Two isotonic fits an answer, with the example added as negative and as positive.

    The categories are the blocks of the isotonic regression of the labels on the scores, of the
    calibration set with the example and its assumed label in it (Vovk, Petej & Fedorova 2015).
    With two classes that is a Venn predictor, and its guarantee holds. With more there is one pair
    (p0, p1) a class against the rest: each is valid for its own class, together they are no
    multiprobability and promise nothing. Then the point of a class is its mean
    (p0 + p1)/2 over the sum of all, and its interval runs over the values that such a quotient can
    take while every class moves within its pair.

    An answer costs one pass over the blocks of the buckets of `PooledScores`, some 150 for 2,000
    examples, for each pair. `category` is the SVM's own
    class, since the blocks depend on the assumed label, and `size` the whole calibration set.

    Parameters
    ----------
    n_known : int
        Classes that have a machine. Examples of others are held, but take no part; an unseen
        label has the point 0 and the interval [0, 1 / (N + 1)].
    scores, codes, n_classes, limit
        As for `CountedSet`.

    References
    ----------
    V. Vovk, I. Petej, V. Fedorova (2015), Large-scale probabilistic predictors with and without
    guarantees of validity.

    Examples
    --------
    >>> scores, codes = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 0, 1, 1])
    >>> held = AbersSet(2, scores, codes, 2, None)
    >>> held.answer(np.array([[-1.0], [9.0]]), np.array([-1, -1])).upper.round(3).tolist()
    [[1.0, 0.333], [0.333, 1.0]]
    """

    def __init__(
        self, n_known: int, scores: Floats, codes: Ints, n_classes: int, limit: int | None
    ) -> None:
        super().__init__(scores, codes, limit)
        self._n_known, self._n_classes = n_known, n_classes
        known = self.codes < n_known
        positive = np.array([1]) if scores.shape[1] == 1 else np.arange(scores.shape[1])
        self._lists = pooled(self.scores[known], self.codes[known, None] == positive)

    @property
    @override
    def reason(self) -> str | None:
        return None if self._n_known == 2 else NO_JOINT

    @override
    def answer(self, scores: Floats, codes: Ints) -> VennAnswers:
        pairs, sizes = self._meet(scores, codes)
        point, lower, upper = _two_classes(pairs) if pairs.shape[1] == 1 else _normalised(pairs)
        unseen = self._n_classes - self._n_known
        if unseen:
            nothing = np.zeros((len(codes), unseen))
            point, lower = np.hstack([point, nothing]), np.hstack([lower, nothing])
            upper = np.hstack([upper, nothing + 1.0 / (sizes[:, None] + 1)])
        return VennAnswers(point, lower, upper, svm_classes(scores), sizes)

    @override
    def multiprobabilities(self, scores: Floats) -> Floats:
        if self._n_classes != 2:
            raise InvalidInput(f"taxonomy: {NO_JOINT}; use another one, or two classes")
        pairs, _ = self._meet(scores, np.full(len(scores), -1))
        joint: Floats = np.stack([1.0 - pairs[:, 0], pairs[:, 0]], axis=2)
        return joint

    def _meet(self, scores: Floats, codes: Ints) -> tuple[Floats, Ints]:
        """Return p0 and p1 of each row and list, shape (m, S, 2), and the sizes met."""
        size = self._join(scores, codes)
        self._lists = with_room(self._lists, len(self.codes) - size)
        pairs = np.empty((*scores.shape, 2))
        sizes = np.empty(len(codes), dtype=np.int64)
        gone = _answer(
            scores, codes, size, self.scores, self.codes, self._limit, self._n_known,
            self._lists, pairs, sizes,
        )  # fmt: skip
        self._leave(gone)
        return pairs, sizes


def _two_classes(pairs: Floats) -> tuple[Floats, Floats, Floats]:
    """Return point, lower and upper probability of both classes, each of shape (m, 2)."""
    point, lower, upper = (np.empty((len(pairs), 2)) for _ in range(3))
    _write_two_classes(pairs, point, lower, upper)
    return point, lower, upper


@jit
def _write_two_classes(pairs: Floats, point: Floats, lower: Floats, upper: Floats) -> None:
    """Write point, lower and upper probability of both classes."""
    for i in range(len(pairs)):
        p0, p1 = pairs[i, 0]
        mean = 0.5 * (p0 + p1)
        point[i, 0], point[i, 1] = 1.0 - mean, mean
        lower[i, 0], lower[i, 1] = 1.0 - p1, p0
        upper[i, 0], upper[i, 1] = 1.0 - p0, p1


def _normalised(pairs: Floats) -> tuple[Floats, Floats, Floats]:
    """Return each class's mean over the sum of all, and the range it can take, shape (m, K)."""
    low, high = pairs[:, :, 0], pairs[:, :, 1]
    mean = 0.5 * (low + high)
    return (
        mean / _sums(mean),
        low / (low + _others(high)),
        high / (high + _others(low)),
    )


def _others(values: Floats) -> Floats:
    """Return the sum of the other columns; rounding must not make it negative."""
    return np.maximum(_sums(values) - values, 0.0)


def _sums(values: Floats) -> Floats:
    """Return row sums, added from the left whatever the shape of the block, shape (m, 1)."""
    total = values[:, 0].copy()
    for column in values.T[1:]:
        total += column
    return total[:, None]


@jit
def _answer(
    scores: Floats, codes: Ints, size: int, held: Floats, held_codes: Ints, limit: int,
    n_known: int, lists: PooledScores, pairs: Floats, sizes: Ints,
) -> int:  # fmt: skip
    """Answer and join in turn, `size` examples being held at first; return how many left.

    Those that join follow them in `held` and `held_codes`.
    """
    gone, n_lists = 0, scores.shape[1]
    work = np.empty((4, len(held) + 1), dtype=np.int64)
    for i in range(len(codes)):
        # 1. Answer: the isotonic value for either label of this example, class by class.
        sizes[i] = lists.sizes[0]
        for g in range(n_lists):
            isotonic_pair(lists, g, scores[i, g], work, pairs[i, g])
        if codes[i] < 0:
            continue
        # 2. Join the calibration set.
        if codes[i] < n_known:
            for g in range(n_lists):
                positive = 1 if n_lists == 1 else g
                insert(lists, g, scores[i, g], int(codes[i] == positive))
        size += 1
        # 3. The oldest leaves where the window is full.
        if limit >= 0 and size - gone > limit:
            if held_codes[gone] < n_known:
                for g in range(n_lists):
                    positive = 1 if n_lists == 1 else g
                    remove(lists, g, held[gone, g], int(held_codes[gone] == positive))
            gone += 1
    return gone
