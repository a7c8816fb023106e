"""Venn-Abers fit and predictions against the venn-abers package, in one run."""

from functools import partial

import numpy as np

from online_svm.calibration.estimators import VennAbers
from online_svm.types import Bools, Floats
from scripts.bench.packages import peer_package, unwarned
from scripts.bench.report import Row
from scripts.bench.timing import best_of

N_CALIBRATION, N_PREDICTIONS = 50_000, 10_000
REPEATS = 3  # of either side; the best counts, so that other work on the machine matters less


def run(n_calibration: int = N_CALIBRATION, n_predictions: int = N_PREDICTIONS) -> list[Row]:
    """Measure fit plus predictions on skewed and on uniform calibration scores.

    Raises
    ------
    BadConfiguration
        If the venn-abers package, which only this comparison needs, is not installed.

    Examples
    --------
    >>> from importlib.util import find_spec
    >>> rows = run(200, 50) if find_spec("venn_abers") else []
    >>> all(row.ours > 0 for row in rows)
    True
    """
    rng = np.random.default_rng(0)
    VennAbers().fit([0.0, 1.0], [0, 1])  # compiles, or loads what was compiled
    rows = []
    for name, draw in (("skewed", _skewed), ("uniform", _uniform)):
        scores, queries = draw(rng, n_calibration), draw(rng, n_predictions)
        labels = rng.random(n_calibration) < scores**0.7
        task = partial(_ours, scores, labels, queries), partial(_peer, scores, labels, queries)
        (ours, answers), (peer, expected) = (best_of(REPEATS, work) for work in task)
        if np.abs(answers - expected).max() > 1e-12:
            raise AssertionError(f"{name}: the two implementations disagree; nothing to compare")
        name = f"venn-abers, {n_calibration} {name} scores, {n_predictions} predictions"
        rows.append(Row(name, ours, peer))
    return rows


def _skewed(rng: np.random.Generator, n: int) -> Floats:
    """Scores of a rare class: nearly all close to zero."""
    return rng.beta(0.3, 6.0, size=n)


def _uniform(rng: np.random.Generator, n: int) -> Floats:
    return rng.random(n)


def _ours(scores: Floats, labels: Bools, queries: Floats) -> Floats:
    return VennAbers().fit(scores, labels).predict_interval(queries)


def _peer(scores: Floats, labels: Bools, queries: Floats) -> Floats:
    peer = peer_package("venn-abers", "venn_abers").VennAbers()
    with unwarned():
        peer.fit(np.column_stack((1.0 - scores, scores)), labels.astype(float))
        _, interval = peer.predict_proba(np.column_stack((1.0 - queries, queries)))
    return np.asarray(interval, dtype=np.float64)
