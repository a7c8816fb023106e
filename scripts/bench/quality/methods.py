"""The methods of the quality benchmark: ours, rolling models of scikit-learn, models of river.

Each answers every example before it learns its code, one of 0 ... n_classes - 1. Rolling models are
fitted on the last 2,000 examples at every 250th, and answer the next 250 at once.
"""

import math
import warnings
from collections.abc import Callable, Sequence
from functools import partial
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

from online_svm.config import PredictorConfig
from online_svm.predictor.batch_result import Answers
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.stream.prediction import PredictionBlock
from online_svm.stream.split import training_mask
from online_svm.types import Bools, Floats, Ints
from scripts.bench.quality.baselines import majority, no_change, prior
from scripts.bench.quality.online_platt import online_platt_of_classes
from workers.errors import BadConfiguration
from workers.history.backtest.prequential import HEADLINE, Published, published

Peer = Callable[[Floats, Ints, int], Floats]
"""Returns probabilities of shape (n, n_classes), given rows, codes and the number of classes."""

Predict = Callable[[Floats], Floats]
Fit = Callable[[Floats, Ints, Bools], Predict]
"""Of prepared rows, codes 0 ... K - 1, all there, and which rows are of our training part."""

EVERY = 250
"""Examples between two fits; the first as many are answered, but not scored, of any method."""

WINDOW = 2000
"""Examples that a fit may use: the last ones."""

FOLDS = 5  # of scikit-learn's calibration, as by its default
PENALTIES = (1.0, 10.0)
WIDTHS = (1.0, 3.0)  # times 1 / n_features; both are those of the members of our committee


def unknown(n: int, n_classes: int) -> Floats:
    """Return what a method says while it knows nothing: all classes alike.

    Examples
    --------
    >>> unknown(1, 4)
    array([[0.25, 0.25, 0.25, 0.25]])
    """
    return np.full((n, n_classes), 1.0 / n_classes)


def answers_of(
    X: Floats, codes: Ints, n_classes: int, names: Sequence[str] = (), **changes: Any
) -> Answers:
    """Return what the predictor says of labelled examples of declared classes, their numbers.

    It has the default settings, but for some changes. Where the features have names, sorted, the
    rows are of cells.

    Examples
    --------
    >>> [answer.status for answer in answers_of(np.zeros((3, 1)), np.array([0, 1, 0]), 2)]
    ['warming']
    """
    classes = tuple(str(code) for code in range(n_classes))
    config = PredictorConfig.model_validate({"classes": classes} | changes)
    predictor = OnlinePredictor(config)
    schema = predictor.schema.of_features(tuple(names), len(names)) if names else None
    return predictor.step_many(X, [classes[code] for code in codes.tolist()], schema=schema)


def ours(X: Floats, codes: Ints, n_classes: int, **changes: Any) -> dict[str, Published]:
    """Return every published probability, as `answers_of` has it.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> list(ours(X, (X[:, 0] > 0.0).astype(np.int64), 2, window=40))[:2]
    ['probability', 'venn']
    """
    found: dict[str, Published] = {}
    for block in answers_of(X, codes, n_classes, **changes):
        if isinstance(block, PredictionBlock) and block.status == "ok":
            for name, said in published(block).items():
                if name not in found:
                    blank = np.tile([0.0, 1.0], (len(X), n_classes, 1))
                    intervals = None if said.intervals is None else blank
                    found[name] = Published(unknown(len(X), n_classes), intervals)
                whole = found[name]
                whole.probabilities[block.n] = said.probabilities  # all are labelled: n numbers
                if said.intervals is not None and whole.intervals is not None:
                    whole.intervals[block.n] = said.intervals
    return found or {HEADLINE: Published(unknown(len(X), n_classes))}


def rolling(fit: Fit, prepare: Callable[[], Any] = StandardScaler) -> Peer:
    """Return the method that fits at every 250th example, and answers the next 250.

    `prepare` makes the transformer of scikit-learn that prepares rows; it is fitted with each.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> found = rolling(partial(calibrated, SVC))(X, (X[:, 0] > 0.0).astype(np.int64), 2)
    >>> found[249].tolist(), bool((found[250:] != 0.5).all())
    ([0.5, 0.5], True)
    """

    def answer(X: Floats, codes: Ints, n_classes: int) -> Floats:
        found = unknown(len(X), n_classes)
        for n in range(EVERY, len(X), EVERY):
            start = max(0, n - WINDOW)
            trains = training_mask("interleaved", start, n, 0.7)
            predict = _of_frequent(fit, prepare(), X[start:n], codes[start:n], n_classes, trains)
            found[n : n + EVERY] = predict(X[n : n + EVERY])
        return found

    return answer


def _of_frequent(
    fit: Fit, prepared: Any, rows: Floats, codes: Ints, n_classes: int, trains: Bools
) -> Predict:
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


def _logistic() -> Any:
    """Return logistic regression with scikit-learn's defaults, but for time to converge."""
    return LogisticRegression(max_iter=1000)


def plain_logistic(rows: Floats, codes: Ints, _: Bools) -> Predict:
    """Fit logistic regression as it is; it is fitted to give probabilities."""
    return _predictions(_logistic().fit(rows, codes))


def _tuned(rows: Floats, codes: Ints, trains: Bools) -> Predict:
    """Fit the calibrated `SVC` with C and gamma chosen by accuracy in three folds on the window.

    The grid is that of our members' settings.
    """
    grid = {"C": PENALTIES, "gamma": [factor / rows.shape[1] for factor in WIDTHS]}
    chosen = GridSearchCV(SVC(), grid, cv=3, refit=False).fit(rows, codes).best_params_
    return calibrated(lambda: SVC(**chosen), rows, codes, trains)


def _uncalibrated(rows: Floats, codes: Ints, _: Bools) -> Predict:
    """Fit `SVC` and take its scores for log-odds: one against the rest for more classes."""
    model = SVC().fit(rows, codes)

    def predict(asked: Floats) -> Floats:
        said = np.asarray(expit(model.decision_function(asked)))
        return np.column_stack((1.0 - said, said)) if said.ndim == 1 else said

    return predict


def online_platt_svc(X: Floats, codes: Ints, n_classes: int, *, calibeats: bool = False) -> Floats:
    """Answer by online Platt scaling of the scores of a rolling `SVC`, fitted to all of a window.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> online_platt_svc(X, (X[:, 0] > 0.0).astype(np.int64), 2)[0].tolist()
    [0.5, 0.5]
    """
    base = rolling(_uncalibrated)(X, codes, n_classes)
    found = unknown(len(X), n_classes)
    after = slice(EVERY, None)  # before, there is no score
    found[after] = online_platt_of_classes(base[after], codes[after], calibeats=calibeats)
    return found


def venn_abers_package(X: Floats, codes: Ints, n_classes: int) -> Floats:
    """Answer by the venn-abers package on scores of `SVC`, with our default split.

    Raises
    ------
    BadConfiguration
        If the package, which only this comparison needs, is not installed, or for more than two
        classes.
    """
    if n_classes > 2:
        raise BadConfiguration("bench quality: of the venn-abers package two classes only")
    try:
        with np.errstate():  # importing venn_abers switches numpy's warnings off for everyone
            package = import_module("venn_abers")
    except ImportError as error:
        raise BadConfiguration(
            "bench quality: the venn-abers package is not installed; "
            "pip install 'online-svm[dev]' brings it"
        ) from error

    def squashed(svc: Any, rows: Floats) -> Floats:
        # Probabilities, as the package wants; only their order matters.
        positive = expit(svc.decision_function(rows))
        return np.column_stack((1.0 - positive, positive))

    def fit(rows: Floats, targets: Ints, trains: Bools) -> Predict:
        svc = SVC().fit(rows[trains], targets[trains])
        peer = package.VennAbers()
        peer.fit(squashed(svc, rows[~trains]), targets[~trains].astype(float))
        return lambda asked: np.asarray(peer.predict_proba(squashed(svc, asked))[0])

    # It divides by zero on its way, and takes minima of NaN.
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return rolling(fit)(X, codes, n_classes)


def of_river(make: Callable[[int], Any]) -> Peer:
    """Return a model of river, made for a number of classes, as a method.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(40, 2))
    >>> found = of_river(_river_logistic)(X, (X[:, 0] > 0.0).astype(np.int64), 2)
    >>> found[0].tolist(), bool(found[-5:].std() > 0.0)
    ([0.5, 0.5], True)
    """

    def answer(X: Floats, codes: Ints, n_classes: int) -> Floats:
        model, found = make(n_classes), unknown(len(X), n_classes)
        for i, (values, code) in enumerate(zip(X.tolist(), codes.tolist(), strict=True)):
            x = dict(enumerate(values))
            said = model.predict_proba_one(x)
            total = math.fsum(said.values())
            if total > 0.0:
                found[i] = [said.get(y, 0.0) / total for y in range(n_classes)]
            model.learn_one(x, code)
        return np.clip(found, 0.0, 1.0)

    return answer


def _river_logistic(n_classes: int) -> Any:
    """Return logistic regression on scaled features; one against the rest for more classes."""
    from river import linear_model, multiclass, preprocessing

    model: Any = linear_model.LogisticRegression()
    if n_classes > 2:
        model = multiclass.OneVsRestClassifier(model)
    return preprocessing.StandardScaler() | model


def _river_tree(_: int) -> Any:
    from river import tree

    return tree.HoeffdingAdaptiveTreeClassifier(seed=0)


def _river_forest(_: int) -> Any:
    from river import forest

    return forest.ARFClassifier(seed=0)


def _river_mondrian(_: int) -> Any:
    from river import forest

    return forest.AMFClassifier(seed=0)


def _river_patches(_: int) -> Any:
    from river import ensemble

    return ensemble.SRPClassifier(seed=0)


def _river_bagging(_: int) -> Any:
    from river import ensemble, tree

    return ensemble.LeveragingBaggingClassifier(tree.HoeffdingTreeClassifier(), seed=0)


OURS: dict[str, dict[str, Any]] = {
    "headline": {},
    "single": {"committee": "single"},
    "crossfit": {"split": "crossfit"},
    "maps": {
        "maps": (
            "platt", "isotonic", "binning", "venn-abers",
            "temperature", "vector", "matrix", "mixed",
        )
    },
    "evidential": {
        "maps": ("evidential-binning", "evidential-isotonic", "evidential-logistic")
    },
    "implied": {"maps": ("implied",)},
}  # fmt: skip
"""Changes of the default settings."""

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
    "rolling SVC, online Platt": online_platt_svc,
    "rolling SVC, calibeating": partial(online_platt_svc, calibeats=True),
    "venn-abers package": venn_abers_package,
    "river LogisticRegression": of_river(_river_logistic),
    "river HoeffdingAdaptiveTree": of_river(_river_tree),
    ARF: of_river(_river_forest),
    "river AMF": of_river(_river_mondrian),
    "river SRP": of_river(_river_patches),
    "river LeveragingBagging": of_river(_river_bagging),
    "no-change": no_change,
    "prior": prior,
    "majority": majority,
}

DISTANCES: dict[str, dict[str, Any]] = {
    f"refit every {n:,}": {"refit_every": n} for n in (250, 500, 1000, 2000)
}
"""Distances between refits that do not vary."""

METHODS = (*OURS, *PEERS)


def answered(method: str, X: Floats, codes: Ints, n_classes: int) -> dict[str, Published]:
    """Return the published probabilities of a method by the name of their row.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> list(answered("single", X, (X[:, 0] > 0.0).astype(np.int64), 2))[:2]
    ['single', 'single: venn']
    """
    if method in PEERS:
        return {method: Published(PEERS[method](X, codes, n_classes))}
    found = ours(X, codes, n_classes, **(OURS | DISTANCES)[method])
    return {
        method if name == HEADLINE else f"{method}: {name}": said for name, said in found.items()
    }
