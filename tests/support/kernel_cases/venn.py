"""Inputs of `online_svm.venn`: calibration sets with ties, that grow, lose and replace examples."""

from typing import Any

import numpy as np

from kernel_cases._inputs import bell, whole
from online_svm.types import Floats, Ints
from online_svm.venn import counted_set, growing_venn_abers, scheme
from online_svm.venn.growing_venn_abers import AbersSet, PooledScores, _two_classes, pooled
from online_svm.venn.rank_predictor import RankedSet

EXTREME = np.array([0.0, -0.0, np.inf, -np.inf, 5e-324, 1e308, -1e308])


def _scores(rng: np.random.Generator, *shape: int) -> Floats:
    """Return scores, of some inputs with many ties or with extreme ones."""
    scores = bell(rng, *shape)
    kind = rng.integers(4)
    if kind == 0:
        return np.round(scores, whole(rng, 3))
    if kind == 1:
        return np.where(rng.random(shape) < 0.1, rng.choice(EXTREME, shape), scores)
    return scores


def _columns(rng: np.random.Generator, size: int, n_classes: int) -> Ints:
    return rng.integers(-1, n_classes, size)


def _limit(rng: np.random.Generator, most: int) -> int | None:
    return None if rng.random() < 0.3 else whole(rng, 1, most + 2)


def _counted_set(rng: np.random.Generator) -> Any:
    n_categories, n_classes = rng.integers(1, 5, 2)
    size, m = whole(rng, 0, 9), whole(rng, 0, 20)
    categories, codes = rng.integers(0, n_categories, m), _columns(rng, m, n_classes)
    held = np.concatenate([rng.integers(0, n_categories, size), categories[codes >= 0]])
    held_codes = np.concatenate([rng.integers(0, n_classes, size), codes[codes >= 0]])
    limit = _limit(rng, size + m)
    counts = rng.integers(0, 9, (n_categories, n_classes))
    label_counts = np.empty((m, n_classes), dtype=np.int64)
    gone = counted_set._answer(
        (categories, codes),
        (held, held_codes, size, -1 if limit is None else limit),
        *(counts, label_counts),
    )
    return gone, counts, label_counts


def _growing(rng: np.random.Generator) -> Any:
    n_known = whole(rng, 2, 5)
    n_classes = n_known + whole(rng, 2)
    columns, size = 1 if n_known == 2 else n_known, whole(rng, 0, 60)
    limit = _limit(rng, 2 * size)
    held = AbersSet(
        n_known, _scores(rng, size, columns), rng.integers(0, n_classes, size), n_classes, limit
    )
    written = [
        held._process(_scores(rng, m, columns), _columns(rng, m, n_classes))
        for m in (0, 1, whole(rng, 60))
    ]
    return written, tuple(held._lists), held.scores, held.codes


def _latest(rng: np.random.Generator) -> Any:
    columns, n_classes, size = (int(k) for k in rng.integers(1, 6, 3) * (1, 1, 20))
    scores = _scores(rng, size - 20 + whole(rng, 20), columns)
    scores[rng.random(scores.shape) < rng.choice([0.0, 0.1])] = np.nan
    codes = rng.integers(0, n_classes, len(scores))
    bounds = np.empty((n_classes, 2))
    score = _scores(rng, columns)
    score[rng.random(columns) < 0.1] = np.nan
    scheme._count(scores, codes, score, bounds)
    return bounds


def _lists(rng: np.random.Generator) -> tuple[Floats, Ints, PooledScores]:
    """Return scores and labels of examples, and their lists, with room for 150 more."""
    size = 1200 if rng.random() < 0.01 else whole(rng, 0, 90)
    scores = _scores(rng, size, whole(rng, 1, 4))
    labels = rng.integers(0, 2, scores.shape)
    if rng.random() < 0.2:  # labels that agree with the scores pool to many blocks
        labels = (scores + 0.3 * bell(rng, *scores.shape) > 0).astype(np.int64)
    return scores, labels, pooled(scores, labels == 1, joining=150)


def _joined(rng: np.random.Generator, lists: PooledScores, count: int) -> list[Any]:
    joining = []
    for score in _scores(rng, count).tolist():
        g, hit = whole(rng, len(lists.sizes)), whole(rng, 2)
        growing_venn_abers.insert(lists, g, score, hit)
        joining.append((g, score, hit))
    return joining


def _insert(rng: np.random.Generator) -> Any:
    _, _, lists = _lists(rng)
    _joined(rng, lists, whole(rng, 150))
    return tuple(lists)


def _remove(rng: np.random.Generator) -> Any:
    scores, labels, lists = _lists(rng)
    present = [
        (g, score, hit)
        for g in range(scores.shape[1])
        for score, hit in zip(scores[:, g].tolist(), labels[:, g].tolist(), strict=True)
    ]
    present += _joined(rng, lists, whole(rng, 100))
    for i in rng.permutation(len(present))[: whole(rng, len(present) + 1)].tolist():
        growing_venn_abers.remove(lists, *present[i])
    return tuple(lists)


def _isotonic_pair(rng: np.random.Generator) -> Any:
    scores, _, lists = _lists(rng)
    _joined(rng, lists, whole(rng, 60))
    asked = [*_scores(rng, 5).tolist(), *rng.choice(np.append(scores, EXTREME), 5).tolist(), np.nan]
    work = np.zeros((4, int(lists.sizes.max()) + 1), dtype=np.int64)
    pairs = np.empty((len(asked), 2))
    for score, pair in zip(asked, pairs, strict=True):
        g = whole(rng, len(lists.sizes))
        growing_venn_abers.isotonic_pair(lists, g, score, work, pair)
    return pairs


def _ranked(rng: np.random.Generator) -> Any:
    n_known, n_bins = whole(rng, 2, 5), whole(rng, 1, 7)
    n_classes = n_known + whole(rng, 2)
    columns, size = 1 if n_known == 2 else n_known, whole(rng, 0, 60)
    limit = _limit(rng, 2 * size)
    codes = rng.integers(0, n_classes, size)
    held = RankedSet(n_known, n_bins, _scores(rng, size, columns), codes, n_classes, limit)
    written = [
        held._process(_scores(rng, m, columns), _columns(rng, m, n_classes))
        for m in (0, 1, whole(rng, 60))
    ]
    scores, *others = held._lists
    # Of scores 0 and -0 numpy's maximum is either, and the lists compare them alone.
    return written, (scores + 0.0, *others), held.scores, held.codes


CASES = {
    "counted_set._answer": _counted_set,
    "growing_venn_abers._answer": _growing,
    "growing_venn_abers._write_two_classes": lambda rng: _two_classes(
        _scores(rng, whole(rng, 9), 1, 2)
    ),
    "latest._count": _latest,
    "pooled_scores._fill": lambda rng: tuple(_lists(rng)[2]),
    "pooled_scores.insert": _insert,
    "pooled_scores.isotonic_pair": _isotonic_pair,
    "pooled_scores.remove": _remove,
    "rank_predictor._answer": _ranked,
}
