"""The methods of the quality benchmark: ours, rolling models of scikit-learn, models of river.

Each answers every example before it learns its code, one of 0 ... n_classes - 1. Rolling models are
fitted on the last 2,000 examples at every 250th, and answer the next 250 at once.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from river import ensemble, forest, linear_model, multiclass, preprocessing, tree
from scipy.special import expit, logit
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from online_svm.config import PredictorConfig
from online_svm.predictor.batch import Answers
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.stream.prediction import PredictionBlock
from online_svm.stream.split import training_mask
from online_svm.types import Bools, Floats, Ints
from workers.offline.backtest.prequential import HEADLINE, Published, published

Peer = Callable[[Floats, Ints, int], Floats]
"""Returns probabilities of shape (n, n_classes), given rows, codes and the number of classes."""

Predict = Callable[[Floats], Floats]
Fit = Callable[[Floats, Ints, Bools], Predict]
"""Of prepared rows, codes 0 ... K - 1, all there, and which rows are of our training part."""

FIT_EVERY = 250
"""Examples between two fits; the first as many are answered, but not scored, of any method."""

WINDOW = 2000  # examples that a fit may use: the last ones

FOLDS = 5  # of scikit-learn's calibration, as by its default
PENALTIES = (1.0, 10.0)
WIDTHS = (1.0, 3.0)  # times 1 / n_features; members of our committee use both


def unknown(n: int, n_classes: int) -> Floats:
    """Return the answers of a method without data: all classes alike."""
    return np.full((n, n_classes), 1.0 / n_classes)


def answers_of(
    X: Floats, codes: Ints, n_classes: int, names: Sequence[str] = (), **changes: Any
) -> Answers:
    """Return the predictor's answers to labelled examples; labels are codes of declared classes."""
    classes = tuple(str(code) for code in range(n_classes))
    config = PredictorConfig.model_validate({"classes": classes} | changes)
    predictor = OnlinePredictor(config)
    schema = predictor.schema.of_features(tuple(names), len(names)) if names else None
    return predictor.step_many(X, [classes[code] for code in codes.tolist()], schema=schema)


def ours(X: Floats, codes: Ints, n_classes: int, **changes: Any) -> dict[str, Published]:
    """Return every published probability, as `answers_of` has it."""
    found: dict[str, Published] = {}
    for block in answers_of(X, codes, n_classes, **changes):
        if isinstance(block, PredictionBlock) and block.status == "ok":
            for name, part in published(block).items():
                if name not in found:
                    blank = np.tile([0.0, 1.0], (len(X), n_classes, 1))
                    intervals = None if part.intervals is None else blank
                    found[name] = Published(unknown(len(X), n_classes), intervals)
                whole = found[name]
                whole.probabilities[block.n] = part.probabilities  # all are labelled: n numbers
                if part.intervals is not None and whole.intervals is not None:
                    whole.intervals[block.n] = part.intervals
    return found or {HEADLINE: Published(unknown(len(X), n_classes))}


def rolling(fit: Fit, prepare: Callable[[], Any] = StandardScaler) -> Peer:
    """Return the method that fits at every 250th example, and answers the next 250."""

    def answer(X: Floats, codes: Ints, n_classes: int) -> Floats:
        found = unknown(len(X), n_classes)
        for n in range(FIT_EVERY, len(X), FIT_EVERY):
            start = max(0, n - WINDOW)
            trains = training_mask("interleaved", start, n, 0.7)
            window = X[start:n], codes[start:n], trains
            predict = _of_frequent(fit, prepare(), *window, n_classes)
            found[n : n + FIT_EVERY] = predict(X[n : n + FIT_EVERY])
        return found

    return answer


def _of_frequent(
    fit: Fit, prepared: Any, rows: Floats, codes: Ints, trains: Bools, n_classes: int
) -> Predict:
    """Fit on the classes that have an example for each fold; give the others their frequency."""
    counts = np.bincount(codes, minlength=n_classes)
    shares = (counts + 1.0) / (len(codes) + n_classes)
    known = np.flatnonzero(counts >= FOLDS)
    if len(known) < 2:
        return lambda asked: np.tile(shares, (len(asked), 1))
    used = np.isin(codes, known)
    coded = prepared.fit_transform(rows[used])
    of_known = fit(coded, np.searchsorted(known, codes[used]), trains[used])
    rest = shares.sum() - shares[known].sum()

    def predict(asked: Floats) -> Floats:
        found = np.tile(shares, (len(asked), 1))
        found[:, known] = (1.0 - rest) * of_known(prepared.transform(asked))
        return np.clip(found, 0.0, 1.0)

    return predict


def calibrated(
    make: Callable[[], Any], rows: Floats, codes: Ints, _: Bools, method: str = "sigmoid"
) -> Predict:
    """Fit `CalibratedClassifierCV(make(), method, ensemble=False)`."""
    folds = min(FOLDS, int(np.bincount(codes).min()))
    model = CalibratedClassifierCV(make(), method=method, cv=folds, ensemble=False)
    return _predictions(model.fit(rows, codes))


def _predictions(model: Any) -> Predict:
    return lambda asked: np.asarray(model.predict_proba(asked))


_logistic = partial(LogisticRegression, max_iter=1000)  # scikit-learn's defaults do not converge


def plain_logistic(rows: Floats, codes: Ints, _: Bools) -> Predict:
    """Fit logistic regression without calibration."""
    return _predictions(_logistic().fit(rows, codes))


def _tuned(rows: Floats, codes: Ints, trains: Bools) -> Predict:
    """Fit the calibrated `SVC` with C and gamma chosen by accuracy in three folds on the window."""
    grid = {"C": PENALTIES, "gamma": [factor / rows.shape[1] for factor in WIDTHS]}
    chosen = GridSearchCV(SVC(), grid, cv=3, refit=False).fit(rows, codes).best_params_
    return calibrated(lambda: SVC(**chosen), rows, codes, trains)


def _uncalibrated(rows: Floats, codes: Ints, _: Bools) -> Predict:
    """Fit `SVC` and take its scores for log-odds: one against the rest for more classes."""
    model = SVC().fit(rows, codes)

    def predict(asked: Floats) -> Floats:
        found = np.asarray(expit(model.decision_function(asked)))
        return _both(found) if found.ndim == 1 else found

    return predict


def _both(positive: Floats) -> Floats:
    """Return the probabilities of both classes."""
    return np.column_stack((1.0 - positive, positive))


# Online Platt scaling with calibeating (Gupta and Ramdas 2023), of scores of any model.

GAMMA = 0.1  # the step is 1 / GAMMA; the curvature begins as 1 / GAMMA^2: the paper's, of all data
RADIUS = 100.0  # of the ball that slope and intercept stay in
BINS = 10
MIN_PROBABILITY = 1e-6  # probabilities nearer than this to 0 or 1 count as so far


def online_platt(scores: Floats, happened: Ints, late: int = 0) -> Floats:
    """Return sigmoid(a s + b) of each score, a and b moved by each label after its answer.

    `late`: answers that follow an example's own before its label comes.
    """
    found, rows = np.empty(len(scores)), np.column_stack((scores, np.ones(len(scores))))
    weights, curvature = np.array([1.0, 0.0]), np.eye(2) / GAMMA**2
    for n, row in enumerate(rows):
        found[n] = expit(row @ weights)
        if n >= late:
            labelled = rows[n - late]
            gradient = (expit(labelled @ weights) - happened[n - late]) * labelled
            curvature += np.outer(gradient, gradient)
            weights = _into_ball(weights - np.linalg.solve(curvature, gradient) / GAMMA, curvature)
    return found


def _into_ball(weights: Floats, curvature: Floats) -> Floats:
    """Return the point of the ball that is nearest by (x - w)' curvature (x - w)."""
    if np.linalg.norm(weights) <= RADIUS:
        return weights
    target = curvature @ weights

    def at(multiplier: float) -> Floats:
        """Return the minimum under a multiplier of the constraint."""
        return np.asarray(np.linalg.solve(curvature + multiplier * np.eye(2), target))

    low, high = 0.0, 1.0
    while np.linalg.norm(at(high)) > RADIUS:
        low, high = high, 2.0 * high
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if np.linalg.norm(at(middle)) > RADIUS else (low, middle)
    return at(high)


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


def _online_platt_svc(X: Floats, codes: Ints, n_classes: int, *, calibeats: bool = False) -> Floats:
    """Answer by online Platt scaling of a rolling `SVC`, of each class against the rest."""
    base = rolling(_uncalibrated)(X, codes, n_classes)[FIT_EVERY:]  # before, there is no score
    later, scores = codes[FIT_EVERY:], logit(np.clip(base, MIN_PROBABILITY, 1.0 - MIN_PROBABILITY))

    def of_class(k: int) -> Floats:
        found = online_platt(scores[:, k], later == k)
        return calibeaten(found, later == k) if calibeats else found

    found = unknown(len(X), n_classes)
    if n_classes == 2:
        found[FIT_EVERY:] = _both(of_class(1))
    else:
        whole = np.column_stack([of_class(k) for k in range(n_classes)])
        found[FIT_EVERY:] = whole / whole.sum(axis=1, keepdims=True)
    return found


def of_river(make: Callable[[int], Any]) -> Peer:
    """Return a model of river, made for a number of classes, as a method."""

    def answer(X: Floats, codes: Ints, n_classes: int) -> Floats:
        model, found = make(n_classes), unknown(len(X), n_classes)
        for i, (values, code) in enumerate(zip(X.tolist(), codes.tolist(), strict=True)):
            x = dict(enumerate(values))
            proba = model.predict_proba_one(x)
            total = math.fsum(proba.values())
            if total > 0.0:
                found[i] = [proba.get(y, 0.0) / total for y in range(n_classes)]
            model.learn_one(x, code)
        return np.clip(found, 0.0, 1.0)

    return answer


def _river_logistic(n_classes: int) -> Any:
    """Return logistic regression on scaled features; one against the rest for more classes."""
    model: Any = linear_model.LogisticRegression()
    if n_classes > 2:
        model = multiclass.OneVsRestClassifier(model)
    return preprocessing.StandardScaler() | model


def no_change(_: Floats, codes: Ints, n_classes: int) -> Floats:
    """Answer the class of the example before, with certainty.

    >>> no_change(np.empty((3, 0)), np.array([1, 0, 1]), 2)[:, 1].tolist()
    [0.5, 1.0, 0.0]
    """
    return _certain(codes[:-1], n_classes)


def prior(_: Floats, codes: Ints, n_classes: int) -> Floats:
    """Answer the share of each class among the examples before, each counted once more.

    >>> prior(np.empty((3, 0)), np.array([1, 1, 0]), 2)[:, 1].round(2).tolist()
    [0.5, 0.67, 0.75]
    """
    counts = 1.0 + _counts_before(codes, n_classes)
    return np.asarray(counts / counts.sum(axis=1, keepdims=True))


def majority(_: Floats, codes: Ints, n_classes: int) -> Floats:
    """Answer the most frequent class among the examples before, with certainty.

    >>> majority(np.empty((4, 0)), np.array([1, 0, 0, 0]), 2)[:, 1].tolist()
    [0.5, 1.0, 0.0, 0.0]
    """
    return _certain(_counts_before(codes, n_classes)[1:].argmax(axis=1), n_classes)


def _counts_before(codes: Ints, n_classes: int) -> Floats:
    counts = np.zeros((len(codes), n_classes))
    counts[1:] = np.cumsum(codes[:-1, np.newaxis] == np.arange(n_classes), axis=0)
    return counts


def _certain(classes: Ints, n_classes: int) -> Floats:
    """Return one-hot rows after a first row of equal probabilities."""
    return np.vstack([np.full(n_classes, 1.0 / n_classes), np.eye(n_classes)[classes]])


ARF = "river ARF"
PEERS: dict[str, Peer] = {
    "rolling SVC, sigmoid": rolling(partial(calibrated, SVC)),
    "rolling SVC, isotonic": rolling(partial(calibrated, SVC, method="isotonic")),
    "rolling SVC, temperature": rolling(partial(calibrated, SVC, method="temperature")),
    "rolling SVC, tuned": rolling(_tuned),
    "rolling LR": rolling(plain_logistic),
    "rolling LR, calibrated": rolling(partial(calibrated, _logistic)),
    "rolling boosted trees, calibrated": rolling(
        partial(calibrated, partial(HistGradientBoostingClassifier, random_state=0))
    ),
    "rolling SVC, online Platt": _online_platt_svc,
    "rolling SVC, calibeating": partial(_online_platt_svc, calibeats=True),
    "river LogisticRegression": of_river(_river_logistic),
    "river HoeffdingAdaptiveTree": of_river(lambda _: tree.HoeffdingAdaptiveTreeClassifier(seed=0)),
    ARF: of_river(lambda _: forest.ARFClassifier(seed=0)),
    "river AMF": of_river(lambda _: forest.AMFClassifier(seed=0)),
    "river SRP": of_river(lambda _: ensemble.SRPClassifier(seed=0)),
    "river LeveragingBagging": of_river(
        lambda _: ensemble.LeveragingBaggingClassifier(tree.HoeffdingTreeClassifier(), seed=0)
    ),
    "no-change": no_change,
    "prior": prior,
    "majority": majority,
}

DISTANCES: dict[str, dict[str, Any]] = {
    f"refit every {n:,}": {"refit_every": n} for n in (250, 500, 1000, 2000)
}
"""Distances between refits that do not vary."""

METHODS = ("headline", *PEERS)


def answered(method: str, X: Floats, codes: Ints, n_classes: int) -> dict[str, Published]:
    """Return the published probabilities of a method by the name of their row."""
    if method in PEERS:
        return {method: Published(PEERS[method](X, codes, n_classes))}
    found = ours(X, codes, n_classes, **DISTANCES.get(method, {}))
    return {method if name == HEADLINE else f"{method}: {name}": one for name, one in found.items()}
