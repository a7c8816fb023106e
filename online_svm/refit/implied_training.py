"""Training the banks of the implied map on a proper training set; see `implied`."""

import numpy as np

from online_svm.compiled.kernels import Kernel
from online_svm.config import PredictorConfig
from online_svm.svm.exact.batch_solver import fixed_rows
from online_svm.svm.exact.kernel_cache import Rows
from online_svm.svm.exact.rolling_machine import TOLERANCE
from online_svm.svm.implied.class_path import class_weights
from online_svm.svm.implied.packed_bank import PackedBank
from online_svm.svm.implied.vote_bank import ImpliedBank
from online_svm.svm.kernel_model import KernelModel
from online_svm.types import Bools, Floats, Ints

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
    >>> from online_svm.predictor.implied_map import implied_probabilities
    >>> config = PredictorConfig()
    >>> X, codes = np.array([[-1.0], [1.0]]), np.array([0, 1])
    >>> banks = train_banks(config, Kernel("linear"), X, codes, n_classes=2)
    >>> implied_probabilities(banks, np.array([[-5.0], [0.0]])).round(2)
    array([[0.91, 0.09],
           [0.5 , 0.5 ]])
    """
    positives = [1] if n_classes == 2 else range(n_classes)
    if not len(codes):
        return (_unanimous(kernel, X.shape[1], MODELS, 0.0),) * len(positives)
    rows = fixed_rows(kernel, X, CACHE_MB)
    return tuple(_train(config, kernel, rows, codes == k) for k in positives)


def _train(config: PredictorConfig, kernel: Kernel, rows: Rows, positive: Bools) -> PackedBank:
    m = MODELS
    if positive.all() or not positive.any():
        return _unanimous(kernel, rows.points.shape[1], m, 1.0 if positive.all() else -1.0)
    penalties = np.full(len(positive), config.C)
    bank = ImpliedBank.fit(
        kernel, rows, positive, penalties, m, tol=TOLERANCE, max_steps=MOST_STEPS // m
    )
    z, z_rest = class_weights(m, bank.odds, "balanced")
    return PackedBank.pack(bank.model, z * config.C, -z_rest * config.C)


def _unanimous(kernel: Kernel, dimension: int, m: int, decision: float) -> PackedBank:
    """Return a bank that did not see two sides: every machine decides alike everywhere."""
    decisions = np.full(m, decision)
    model = KernelModel.build(kernel, np.empty((0, dimension)), np.empty((m, 0)), decisions)
    return PackedBank.pack(model, np.ones(m), -np.ones(m))
