"""A bank of 199 machines against 199 fits of scikit-learn's SVC, on German credit in one run."""

from pathlib import Path

import numpy as np
from sklearn.svm import SVC

from online_svm.svm.implied_posterior import ImpliedPosterior
from online_svm.types import Floats
from scripts.bench.report import Row
from scripts.bench.timing import timed
from scripts.papers.implied.trials import BANK_PENALTY, GAMMA, N_MODELS, Split, bank

REPEATS = 3  # of either side in turn; the best counts, so that other work matters less
DISAGREEMENT = 1e-3  # share of votes: scores within the tolerance of both solvers may differ


def run(data_dir: Path | str | None = None, n_models: int = N_MODELS) -> list[Row]:
    """Measure fitting a bank on the first 500 examples, unscaled, with C = 20 and gamma = 0.001.

    Parameters
    ----------
    data_dir : path, optional
        Where the data files are; see `workers.push.datasets.data_directory`.
    n_models : int

    Raises
    ------
    DataNotFound
        If the data file is missing.
    ArithmeticError
        If the votes on the other 500 examples disagree: then there is nothing to compare.
    """
    split = Split.german(data_dir)
    bank(split, BANK_PENALTY, n_models=5)  # compiles, or loads what was compiled
    times = []
    for _ in range(REPEATS):
        our_seconds, ours = timed(lambda: bank(split, BANK_PENALTY, n_models=n_models))
        peer_seconds, peers = timed(lambda: _separate_fits(split, n_models))
        times.append((our_seconds, peer_seconds))
    _check(ours, peers, split.X_test)
    best_ours, best_peer = (min(column) for column in zip(*times, strict=True))
    return [Row(f"implied posterior, bank of {n_models} on 500 examples", best_ours, best_peer)]


def _separate_fits(split: Split, n_models: int) -> list[SVC]:
    weights = np.arange(1, n_models + 1) / (n_models + 1)
    return [
        SVC(C=BANK_PENALTY, gamma=GAMMA, class_weight={False: 1.0 - z, True: z}).fit(
            split.X, split.y
        )
        for z in weights
    ]


def _check(ours: ImpliedPosterior, peers: list[SVC], X: Floats) -> None:
    votes = sum((peer.decision_function(X) > 0.0).astype(np.int64) for peer in peers)
    expected = (votes + 1) / (len(peers) + 2)
    if np.abs(ours.vote_shares(X) - expected).mean() > DISAGREEMENT:
        raise ArithmeticError("the bank and the separate fits disagree; nothing to compare")
