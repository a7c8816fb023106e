"""Methods that calibrate the scores of a frozen model of two classes, as labels come.

Each answers every example before its label comes: `late` answers follow its own before that. The
rolling ones are fitted to the newest labels at every 50th example, and answer the next 50 at once.
"""

import warnings
from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.special import expit, logit
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from venn_abers import VennAbers

from online_svm import OnlineCalibrator
from online_svm.config import PredictorConfig
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.stream.input_batch import DelayedLabel, InputBatch
from online_svm.stream.prediction import PredictionBlock
from online_svm.types import Floats, Ints
from scripts.bench.quality.methods import Predict

Answer = Callable[[Floats, Ints, int], Floats]
"""Returns probabilities of the second class or, with intervals, (p, lower, upper) as columns.

Given the probabilities that the scores state, the codes, and how late labels are.
"""

Fit = Callable[[Floats, Ints], Predict]

FIT_EVERY = 50  # examples between two fits
MIN_LABELS = 20  # before them a rolling method answers the score as it is
WINDOWS = (500, 1000, 5000)
BATCH = 1000


def rolling(fit: Fit, window: int, every: int = FIT_EVERY) -> Answer:
    """Return the method that fits to a window of the newest labels, every so many examples."""

    def answer(p: Floats, happened: Ints, late: int) -> Floats:
        found = p.copy()
        for n in range(every, len(p), every):
            known, asked = n - late, slice(n, n + every)
            if known >= MIN_LABELS:
                used = slice(max(0, known - window), known)
                found[asked] = _of_window(fit, p[used], happened[used], p[asked])
        return found

    return answer


def _of_window(fit: Fit, p: Floats, happened: Ints, asked: Floats) -> Floats:
    """Return the answers of a fit, no surer than the rule of succession; of one class, that."""
    n, hits = len(p), int(happened.sum())
    if hits in (0, n):
        return np.full(len(asked), (hits + 1.0) / (n + 2.0))
    return np.clip(fit(p, happened)(asked), 1.0 / (n + 2.0), (n + 1.0) / (n + 2.0))


def isotonic(p: Floats, happened: Ints) -> Predict:
    """Fit the isotonic regression of the labels on p."""
    model = IsotonicRegression(out_of_bounds="clip").fit(p, happened)
    return lambda asked: np.asarray(model.predict(asked))


def ivap(p: Floats, happened: Ints) -> Predict:
    """Fit an inductive Venn-Abers predictor (the package venn-abers); its p, not its interval."""
    with warnings.catch_warnings():  # it takes minima of no values, which it does not use
        warnings.simplefilter("ignore", RuntimeWarning)
        model = VennAbers().fit(np.column_stack((1.0 - p, p)), happened)
    return lambda asked: model.predict_proba(np.column_stack((1.0 - asked, asked)))[0][:, 1]


def _odds(p: Floats) -> Floats:
    return np.asarray(logit(np.clip(p, MIN_PROBABILITY, 1.0 - MIN_PROBABILITY)))


def _of_temperature(p: Floats) -> Floats:
    return _odds(p)[:, None]


def _of_platt(p: Floats) -> Floats:
    return np.column_stack((_odds(p), np.ones(len(p))))


def _of_beta(p: Floats) -> Floats:
    inside = np.clip(p, MIN_PROBABILITY, 1.0 - MIN_PROBABILITY)
    return np.column_stack((np.log(inside), -np.log(1.0 - inside), np.ones(len(p))))


def regression(columns: Callable[[Floats], Floats], p: Floats, happened: Ints) -> Predict:
    """Fit the logistic regression of the labels on columns of p, without a penalty.

    The labels are Platt's targets (1999): (hits + 1) / (hits + 2), and 1 / (misses + 2). So each
    row counts for both classes.
    """
    Z, hits = columns(p), int(happened.sum())
    targets = np.where(happened == 1, (hits + 1.0) / (hits + 2.0), 1.0 / (len(p) - hits + 2.0))
    model = LogisticRegression(C=1e6, solver="newton-cholesky", tol=1e-8, fit_intercept=False)
    both, weights = np.repeat([1, 0], len(p)), np.concatenate((targets, 1.0 - targets))
    model.fit(np.concatenate((Z, Z)), both, weights)
    return lambda asked: model.predict_proba(columns(asked))[:, 1]


# Online Platt scaling with calibeating (Gupta and Ramdas 2023), whose ball of radius 100 slope and
# intercept never leave here.

GAMMA = 0.1  # the step is 1 / GAMMA; the curvature begins as 1 / GAMMA^2: the paper's, of all data
BINS = 10
MIN_PROBABILITY = 1e-6  # probabilities nearer than this to 0 or 1 count as so far


def online_platt(p: Floats, happened: Ints, late: int = 0) -> Floats:
    """Return sigmoid(a logit(p) + b), a and b moved by each label after its answer.

    `late`: answers that follow an example's own before its label comes.
    """
    found, rows = np.empty(len(p)), _of_platt(p)
    weights, curvature = np.array([1.0, 0.0]), np.eye(2) / GAMMA**2
    for n, row in enumerate(rows):
        found[n] = expit(row @ weights)
        if n >= late:
            labelled = rows[n - late]
            gradient = (expit(labelled @ weights) - happened[n - late]) * labelled
            curvature += np.outer(gradient, gradient)
            weights = weights - np.linalg.solve(curvature, gradient) / GAMMA
    return found


def calibeaten(probabilities: Floats, happened: Ints, late: int = 0) -> Floats:
    """Return the frequency so far among answers whose probability was in the same tenth.

    `late`: as for `online_platt`.
    """
    sums, counts = (np.arange(BINS) + 0.5) / BINS, np.ones(BINS)
    bins = np.minimum((probabilities * BINS).astype(np.int64), BINS - 1)
    found = np.empty(len(probabilities))
    for n, b in enumerate(bins.tolist()):
        found[n] = sums[b] / counts[b]
        if n >= late:
            sums[bins[n - late]] += happened[n - late]
            counts[bins[n - late]] += 1.0
    return found


def feed(p: Floats, happened: Ints, late: int) -> Floats:
    """Answer as a feed of scores does, with a horizon if labels are late; with intervals.

    Without delay these are the answers of `OnlineCalibrator`.
    """
    delay = {"horizon": late + 1, "maturity": "arrival"} if late else {}
    config = PredictorConfig.model_validate(
        {"classes": ("0", "1"), "scores": "probability"} | delay
    )
    predictor = OnlinePredictor(config)
    columns = predictor.schema.scores
    assert columns is not None
    X, labels = columns.rows(p[:, None]), [str(code) for code in happened.tolist()]
    if late:
        n = len(p)  # after its answer, an example is followed by the label that comes then
        rows = [i + max(0, i - late) for i in range(n)]
        come = {rows[i] + 1: DelayedLabel(str(i - late), labels[i - late]) for i in range(late, n)}
        ids = [str(i) for i in range(n)]
        found = predictor.process(
            InputBatch(X, [None] * n, rows, come, schema=predictor.schema, ids=ids)
        ).found
    else:
        found = predictor.step_many(X, labels, schema=predictor.schema)
    blocks = [one for one in found if isinstance(one, PredictionBlock)]
    return np.concatenate(
        [np.column_stack((b.point[:, 1], b.lower[:, 1], b.upper[:, 1])) for b in blocks]
    )


def in_batches(p: Floats, happened: Ints, late: int) -> Floats:
    """Answer by `OnlineCalibrator` in a loop: it is asked, then learns the labels that came.

    In batches of 1,000 without delay, else of 50.
    """
    model, found, size = OnlineCalibrator(), p.copy(), FIT_EVERY if late else BATCH
    for n in range(0, len(p), size):
        asked = slice(n, n + size)
        if not late:
            found[asked] = model.progressive_proba(p[asked], happened[asked], [0, 1])[:, 1]
            continue
        if n > late:
            found[asked] = model.predict_proba(p[asked])[:, 1]
        new = slice(max(0, n - late), max(0, n + size - late))
        if new.stop:
            model.partial_fit(p[new], happened[new], [0, 1])
    return found


RAW, OURS, LOOP = "score as it came", "online-svm", "online-svm, OnlineCalibrator in a loop"
FITS: dict[str, Fit] = {
    "isotonic": isotonic,
    "Platt": partial(regression, _of_platt),
    "temperature": partial(regression, _of_temperature),
    "beta": partial(regression, _of_beta),
    "Venn-Abers": ivap,
}
METHODS: dict[str, Answer] = {
    RAW: lambda p, *_: p,
    **{
        f"{name}, last {window:,}": rolling(fit, window)
        for name, fit in FITS.items()
        for window in (WINDOWS if name in ("isotonic", "Platt") else (1000,))
    },
    "online Platt": online_platt,
    "online Platt, calibeating": lambda p, *labels: calibeaten(online_platt(p, *labels), *labels),
    OURS: feed,
    LOOP: in_batches,
}
