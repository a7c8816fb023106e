"""Models of scikit-learn that are fitted anew on a rolling window.

They are fitted on the last 2,000 examples at every 250th, and answer the next 250 at once.
"""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from online_svm.stream.split import training_mask
from online_svm.types import Bools, Floats, Ints
from scripts.bench.quality.answers import EVERY, WINDOW, Answers, Method, unknown
from workers.errors import BadConfiguration
from workers.history.backtest.prequential import Published

Predict = Callable[[Floats], Floats]
Fit = Callable[[Floats, Ints, Bools], Predict]
"""Of standardised rows, codes 0 ... K - 1, all there, and which rows are of our training part."""

FOLDS = 5  # of scikit-learn's calibration, as by its default
PENALTIES = (1.0, 10.0)
WIDTHS = (1.0, 3.0)  # times 1 / n_features; both are those of the members of our committee


def calibrated(row: str, make: Callable[[], Any], method: str = "sigmoid") -> Method:
    """Return `CalibratedClassifierCV(make(), ensemble=False)` on a rolling window.

    Parameters
    ----------
    row : str
        Its name in the table.
    make : callable
        Returns an unfitted classifier.
    method : {"sigmoid", "isotonic", "temperature"}

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> method = calibrated("svc", SVC)
    >>> found = method(X, (X[:, 0] > 0.0).astype(np.int64), 2)["svc"].probabilities
    >>> found[249].tolist(), bool((found[250:] != 0.5).all())
    ([0.5, 0.5], True)
    """

    def fit(rows: Floats, codes: Ints, _: Bools) -> Predict:
        return _fitted(make(), method, rows, codes)

    return _rolling(row, fit)


def tuned_svc(row: str) -> Method:
    """Return the calibrated `SVC` whose C and gamma are chosen anew at each fit.

    By accuracy in three folds over the grid of our members' settings, on the same window.
    """

    def fit(rows: Floats, codes: Ints, _: Bools) -> Predict:
        width = 1.0 / rows.shape[1]
        grid = {"C": PENALTIES, "gamma": [factor * width for factor in WIDTHS]}
        chosen = GridSearchCV(SVC(), grid, cv=3, refit=False).fit(rows, codes).best_params_
        return _fitted(SVC(**chosen), "sigmoid", rows, codes)

    return _rolling(row, fit)


def logistic_regression(row: str) -> Method:
    """Return logistic regression as it is; it is fitted to give probabilities."""

    def fit(rows: Floats, codes: Ints, _: Bools) -> Predict:
        model = new_logistic().fit(rows, codes)
        return lambda asked: np.asarray(model.predict_proba(asked))

    return _rolling(row, fit)


def new_logistic() -> Any:
    """Return logistic regression with scikit-learn's defaults, but for time to converge."""
    return LogisticRegression(max_iter=1000)


def new_boosted_trees() -> Any:
    """Return boosted trees with scikit-learn's defaults."""
    return HistGradientBoostingClassifier(random_state=0)


def venn_abers_package(row: str) -> Method:
    """Return the venn-abers package on scores of `SVC`, with our default split.

    The method raises BadConfiguration if the package, which only this comparison needs, is not
    installed, or for more than two classes.
    """

    def answer(X: Floats, codes: Ints, n_classes: int) -> Answers:
        if n_classes > 2:
            raise BadConfiguration("bench quality: of the venn-abers package two classes only")
        package = _package()

        def fit(rows: Floats, targets: Ints, trains: Bools) -> Predict:
            svc = SVC().fit(rows[trains], targets[trains])
            peer = package.VennAbers()
            peer.fit(_squashed(svc, rows[~trains]), targets[~trains].astype(float))
            return lambda asked: np.asarray(peer.predict_proba(_squashed(svc, asked))[0])

        with _unwarned():
            return _rolling(row, fit)(X, codes, n_classes)

    return answer


def _package() -> Any:
    """Import the venn-abers package, which only this comparison needs.

    Raises
    ------
    BadConfiguration
        If it is not installed.
    """
    try:
        with np.errstate():  # importing venn_abers switches numpy's warnings off for everyone
            return import_module("venn_abers")
    except ImportError as error:
        raise BadConfiguration(
            "bench quality: the venn-abers package is not installed; "
            "pip install 'online-svm[dev]' brings it"
        ) from error


@contextmanager
def _unwarned() -> Iterator[None]:
    """Silence what venn-abers warns of: it divides by zero on its way, and takes minima of NaN."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _squashed(svc: Any, rows: Floats) -> Floats:
    """Return scores as the probabilities that the package wants; only their order matters."""
    positive = expit(svc.decision_function(rows))
    return np.column_stack((1.0 - positive, positive))


def _fitted(estimator: Any, method: str, rows: Floats, codes: Ints) -> Predict:
    folds = min(FOLDS, int(np.bincount(codes).min()))
    model = CalibratedClassifierCV(estimator, method=method, cv=folds, ensemble=False)
    model.fit(rows, codes)
    return lambda asked: np.asarray(model.predict_proba(asked))


def _rolling(row: str, fit: Fit) -> Method:
    """Return the method that fits at every 250th example, and answers the next 250."""

    def answer(X: Floats, codes: Ints, n_classes: int) -> Answers:
        found = unknown(len(X), n_classes)
        for n in range(EVERY, len(X), EVERY):
            start = max(0, n - WINDOW)
            trains = training_mask("interleaved", start, n, 0.7)
            predict = _of_frequent(fit, X[start:n], codes[start:n], n_classes, trains)
            found[n : n + EVERY] = predict(X[n : n + EVERY])
        return {row: Published(found)}

    return answer


def _of_frequent(fit: Fit, rows: Floats, codes: Ints, n_classes: int, trains: Bools) -> Predict:
    """Fit on the classes that have an example for each fold; give the others their frequency.

    scikit-learn refuses to calibrate rarer ones, and knows nothing of absent ones: they get
    (count + 1) / (n + n_classes), so that no method fails for a class it could not learn.
    """
    counts = np.bincount(codes, minlength=n_classes)
    shares = (counts + 1.0) / (len(codes) + n_classes)
    known = np.flatnonzero(counts >= FOLDS)
    if len(known) < 2:
        return lambda asked: np.tile(shares, (len(asked), 1))
    used = np.isin(codes, known)
    scaler = StandardScaler().fit(rows[used])
    of_known = fit(scaler.transform(rows[used]), np.searchsorted(known, codes[used]), trains[used])
    rest = shares.sum() - shares[known].sum()

    def predict(asked: Floats) -> Floats:
        found = np.tile(shares, (len(asked), 1))
        found[:, known] = (1.0 - rest) * of_known(scaler.transform(asked))
        return np.clip(found, 0.0, 1.0)

    return predict
