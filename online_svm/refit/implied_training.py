"""Training the banks of the implied map on a proper training set; see `published_maps`."""

import numpy as np

from online_svm.compiled.kernels import Kernel
from online_svm.config import PredictorConfig
from online_svm.svm.exact.rolling_machine import TOLERANCE
from online_svm.svm.implied.packed_bank import PackedBank
from online_svm.svm.implied.vote_bank import BankPlan, fit_banks
from online_svm.types import Floats, Ints

CACHE_MB = 200.0  # as `RollingMachine`; the rows are given back after each refit
# Pair steps of a whole bank, as many as one `RollingMachine` may take: a machine needs hundreds,
# one that cannot converge (huge C, repeated rows with both labels) must not hold up the stream.
MOST_STEPS = 10_000_000

MODELS = 99
"""Machines in a bank of a feed: odd, so that one of them weighs the classes equally; the map counts
in steps of 1 / (MODELS + 2)."""


def train_banks(
    config: PredictorConfig, kernel: Kernel, X: Floats, codes: Ints, n_classes: int
) -> tuple[PackedBank, ...]:
    """Return the banks over a training set: one for two classes (positive means class 1).

    Every bank starts afresh, so it is a function of the training set alone. `class_weight` has no
    part in it: the machines of a bank differ by their class weights, and unequal ones to begin
    with would make the votes estimate the posterior of other class frequencies.

    Parameters
    ----------
    config : PredictorConfig
        Its C.
    kernel : Kernel
    X : ndarray of shape (n, n_features)
        Scaled rows.
    codes : ndarray of shape (n,)
        Class index of each; not every class has to occur. Without any row, every vote is half.
    n_classes : int

    Examples
    --------
    >>> from online_svm.predictor.published_maps import implied_probabilities
    >>> config = PredictorConfig()
    >>> X, codes = np.array([[-1.0], [1.0]]), np.array([0, 1])
    >>> banks = train_banks(config, Kernel("linear"), X, codes, n_classes=2)
    >>> implied_probabilities(banks, np.array([[-5.0], [0.0]])).round(2)
    array([[0.91, 0.09],
           [0.5 , 0.5 ]])
    """
    plan = BankPlan(MODELS, tol=TOLERANCE, max_steps=MOST_STEPS // MODELS)
    penalties = np.full(n_classes, config.C)
    banks = fit_banks(kernel, X, codes, penalties, plan, CACHE_MB)
    return tuple(bank.packed() for bank in banks)
