"""What answers the streams of the quality benchmark: this library, rolling SVCs, and river.

Every method answers an example before it learns it. Rolling ones are fitted on the last 2,000
examples at every 250th, and answer the next ones at once; ours, by default, 249 examples later,
which is why it is also measured with no lag, and with none below 2,000 examples. While a method
knows nothing, it answers 1/2; the first 250 examples are not scored, of any method.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.calibration import CalibratedClassifierCV
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from online_svm.config import PredictorConfig
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.stream.prediction import PredictionBlock
from online_svm.stream.split import training_mask
from online_svm.types import Floats, Ints
from workers.lab.bench.packages import peer_package, unwarned

Answers = dict[str, Floats]

WINDOW, EVERY = 2000, 250
WARM_UP = 60  # answered and thrown away before the clock starts: machine code is then loaded
UNKNOWN = 0.5
MAPS = ("platt", "isotonic", "binning", "mixed")
MAIN = ("Venn", "platt", "mixed")  # of the variants: the published one and the two best ones


def ours(X: Floats, codes: Ints, only: tuple[str, ...] = (), **changes: Any) -> Answers:
    """Return P(class 1) by the Venn predictor and each map, for the default settings or others.

    Parameters
    ----------
    X : ndarray of shape (n, n_features)
    codes : ndarray of shape (n,)
    only : tuple of str
        Answers to return; all without it.
    **changes
        Settings other than the default ones.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> list(ours(X, (X[:, 0] > 0.0).astype(np.int64), window=40))
    ['Venn', 'platt', 'isotonic', 'binning', 'mixed']
    """
    config = PredictorConfig.model_validate({"classes": ("0", "1"), "maps": MAPS} | changes)
    found = {name: np.full(len(X), UNKNOWN) for name in ("Venn", *config.published)}
    answers = OnlinePredictor(config).step_many(X, [str(code) for code in codes])
    for block in answers:
        if isinstance(block, PredictionBlock) and block.status == "ok":
            for name, values in {"Venn": block.venn_point, **block.maps}.items():
                found[name][block.n] = values[:, 1]  # every example is labelled: n numbers them
    return {name: values for name, values in found.items() if name in (only or found)}


def rolling_svc(X: Floats, codes: Ints, method: str) -> Answers:
    """Return P(class 1) by `CalibratedClassifierCV(SVC(), ensemble=False)` on a rolling window.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> found = rolling_svc(X, (X[:, 0] > 0.0).astype(np.int64), "sigmoid")["sigmoid"]
    >>> found[249], bool((found[250:] != 0.5).any())
    (np.float64(0.5), True)
    """

    def fit(rows: Floats, targets: Ints, _: int) -> Callable[[Floats], Floats]:
        scaler = StandardScaler().fit(rows)
        svc = CalibratedClassifierCV(SVC(), method=method, ensemble=False)
        svc.fit(scaler.transform(rows), targets)
        return lambda asked: np.asarray(svc.predict_proba(scaler.transform(asked))[:, 1])

    return {method: _rolling(X, codes, fit)}


def venn_abers_package(X: Floats, codes: Ints) -> Answers:
    """Return P(class 1) by the venn-abers package on scores of `SVC`, with our default split.

    Raises
    ------
    BadConfiguration
        If the package, which only this comparison needs, is not installed.
    """
    venn_abers = peer_package("quality", "venn_abers")

    def fit(rows: Floats, targets: Ints, start: int) -> Callable[[Floats], Floats]:
        trains = training_mask("interleaved", start, start + len(rows), 0.7)
        scaler = StandardScaler().fit(rows[trains])
        svc = SVC().fit(scaler.transform(rows[trains]), targets[trains])
        peer = venn_abers.VennAbers()

        def squashed(asked: Floats) -> Floats:  # it wants probabilities; only their order matters
            positive = expit(svc.decision_function(scaler.transform(asked)))
            return np.column_stack((1.0 - positive, positive))

        peer.fit(squashed(rows[~trains]), targets[~trains].astype(float))
        return lambda asked: np.asarray(peer.predict_proba(squashed(asked))[0][:, 1])

    with unwarned():
        return {"venn-abers package": _rolling(X, codes, fit)}


def of_river(X: Floats, codes: Ints, name: str) -> Answers:
    """Return P(class 1) by a model of river, one example after the other.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(40, 2))
    >>> found = of_river(X, (X[:, 0] > 0.0).astype(np.int64), "LogisticRegression")
    >>> bool(found["LogisticRegression"][-5:].std() > 0.0)
    True
    """
    model, found = _river_model(name), np.full(len(X), UNKNOWN)
    for i, (row, code) in enumerate(zip(X.tolist(), codes.tolist(), strict=True)):
        x = dict(enumerate(row))
        said = model.predict_proba_one(x)
        total = math.fsum(said.values())
        found[i] = said.get(1, 0.0) / total if total > 0.0 else UNKNOWN
        model.learn_one(x, code)
    return {name: np.clip(found, 0.0, 1.0)}


def _river_model(name: str) -> Any:
    from river import forest, linear_model, preprocessing, tree

    if name == "LogisticRegression":
        return preprocessing.StandardScaler() | linear_model.LogisticRegression()
    if name == "ARF":
        return forest.ARFClassifier(seed=0)
    return tree.HoeffdingAdaptiveTreeClassifier(seed=0)


def _rolling(
    X: Floats, codes: Ints, fit: Callable[[Floats, Ints, int], Callable[[Floats], Floats]]
) -> Floats:
    """Fit on the window at every 250th example, and answer the next 250."""
    found = np.full(len(X), UNKNOWN)
    for n in range(EVERY, len(X), EVERY):
        start = max(0, n - WINDOW)
        found[n : n + EVERY] = fit(X[start:n], codes[start:n], start)(X[n : n + EVERY])
    return found


METHODS: dict[str, Callable[[Floats, Ints], Answers]] = {
    "ours": ours,
    "ours, lag from the start": partial(ours, only=MAIN, early_until=0),
    "ours, no lag": partial(ours, only=MAIN, refit_lag=0),
    "ours, crossfit": partial(ours, only=MAIN, split="crossfit"),
    "ours, crossfit, lag from the start": partial(ours, only=MAIN, split="crossfit", early_until=0),
    "ours, crossfit, no lag": partial(ours, only=MAIN, split="crossfit", refit_lag=0),
    "ours, venn-abers taxonomy": partial(ours, only=("Venn", "mixed"), taxonomy="venn-abers"),
    "rolling SVC, sigmoid": partial(rolling_svc, method="sigmoid"),
    "rolling SVC, isotonic": partial(rolling_svc, method="isotonic"),
    "venn-abers package": venn_abers_package,
    "river LogisticRegression": partial(of_river, name="LogisticRegression"),
    "river ARF": partial(of_river, name="ARF"),
    "river HoeffdingAdaptiveTree": partial(of_river, name="HoeffdingAdaptiveTree"),
}
