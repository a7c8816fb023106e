"""The methods of the quality benchmark: ours, rolling models of scikit-learn, models of river.

Each answers every example before it learns its code, one of 0 ... n_classes - 1. Rolling models are
fitted on the last 2,000 examples at every 250th, and answer the next 250 at once.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from river import forest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from online_svm.config import PredictorConfig
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.stream.prediction import PredictionBlock
from online_svm.types import Floats, Ints
from workers.offline.backtest.prequential import Published

Peer = Callable[[Floats, Ints, int], Floats]
"""Returns probabilities of shape (n, n_classes), given rows, codes and the number of classes."""

Predict = Callable[[Floats], Floats]
Fit = Callable[[Floats, Ints], Predict]
"""Function of prepared rows and codes 0 ... K - 1, all of which occur."""

FIT_EVERY = 250
"""Examples between two fits; the first as many are answered, but not scored, of any method."""

WINDOW = 2000  # examples that a fit may use: the last ones

FOLDS = 5  # of scikit-learn's calibration, as by its default


def unknown(n: int, n_classes: int) -> Floats:
    """Return the answers of a method without data: all classes alike."""
    return np.full((n, n_classes), 1.0 / n_classes)


def ours(X: Floats, codes: Ints, n_classes: int) -> Published:
    """Return the predictor's answers to labelled examples; labels are codes of declared classes."""
    classes = tuple(str(code) for code in range(n_classes))
    predictor = OnlinePredictor(PredictorConfig(classes=classes))
    answers = predictor.step_many(X, [classes[code] for code in codes.tolist()])
    intervals = np.tile([0.0, 1.0], (len(X), n_classes, 1))
    found = Published(unknown(len(X), n_classes), intervals)
    for block in answers:
        if isinstance(block, PredictionBlock) and block.status == "ok":
            found.probabilities[block.n] = block.point  # all are labelled: n numbers
            intervals[block.n] = np.stack((block.lower, block.upper), axis=-1)
    return found


def rolling(fit: Fit, prepare: Callable[[], Any] = StandardScaler) -> Peer:
    """Return the method that fits at every 250th example, and answers the next 250."""

    def answer(X: Floats, codes: Ints, n_classes: int) -> Floats:
        found = unknown(len(X), n_classes)
        for n in range(FIT_EVERY, len(X), FIT_EVERY):
            window = slice(max(0, n - WINDOW), n)
            predict = _of_frequent(fit, prepare(), X[window], codes[window], n_classes)
            found[n : n + FIT_EVERY] = predict(X[n : n + FIT_EVERY])
        return found

    return answer


def _of_frequent(fit: Fit, prepared: Any, rows: Floats, codes: Ints, n_classes: int) -> Predict:
    """Fit on the classes that have an example for each fold; give the others their frequency."""
    counts = np.bincount(codes, minlength=n_classes)
    shares = (counts + 1.0) / (len(codes) + n_classes)
    known = np.flatnonzero(counts >= FOLDS)
    if len(known) < 2:
        return lambda asked: np.tile(shares, (len(asked), 1))
    used = np.isin(codes, known)
    coded = prepared.fit_transform(rows[used])
    of_known = fit(coded, np.searchsorted(known, codes[used]))
    rest = shares.sum() - shares[known].sum()

    def predict(asked: Floats) -> Floats:
        found = np.tile(shares, (len(asked), 1))
        found[:, known] = (1.0 - rest) * of_known(prepared.transform(asked))
        return np.clip(found, 0.0, 1.0)

    return predict


def calibrated(make: Callable[[], Any], rows: Floats, codes: Ints) -> Predict:
    """Fit `CalibratedClassifierCV(make(), ensemble=False)`."""
    folds = min(FOLDS, int(np.bincount(codes).min()))
    model = CalibratedClassifierCV(make(), cv=folds, ensemble=False)
    return _predictions(model.fit(rows, codes))


def _predictions(model: Any) -> Predict:
    return lambda asked: np.asarray(model.predict_proba(asked))


def plain_logistic(rows: Floats, codes: Ints) -> Predict:
    """Fit logistic regression without calibration."""
    # scikit-learn's default of max_iter does not converge.
    return _predictions(LogisticRegression(max_iter=1000).fit(rows, codes))


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


ARF = "river ARF"
PEERS: dict[str, Peer] = {
    "rolling SVC, sigmoid": rolling(partial(calibrated, SVC)),
    "rolling LR": rolling(plain_logistic),
    "rolling boosted trees, calibrated": rolling(
        partial(calibrated, partial(HistGradientBoostingClassifier, random_state=0))
    ),
    ARF: of_river(lambda _: forest.ARFClassifier(seed=0)),
    "river AMF": of_river(lambda _: forest.AMFClassifier(seed=0)),
}

OURS = "headline"
METHODS = (OURS, *PEERS)


def answered(method: str, X: Floats, codes: Ints, n_classes: int) -> Published:
    """Return the probabilities of a method."""
    if method in PEERS:
        return Published(PEERS[method](X, codes, n_classes))
    return ours(X, codes, n_classes)
