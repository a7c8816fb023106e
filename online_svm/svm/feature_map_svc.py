"""FeatureMapSVC: a support vector classifier of streams, at a constant cost an example."""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from online_svm.compiled.kernels import Kernel, KernelName
from online_svm.errors import InvalidConfig
from online_svm.svm.base import StreamClassifier
from online_svm.svm.hyperparameters import class_penalties, positive, positive_integer, scale_gamma
from online_svm.svm.linear.feature_maps import MapName, fit_map
from online_svm.svm.linear.proximal import ROUNDS, ProximalMachine
from online_svm.types import Floats, Ints


class FeatureMapSVC(StreamClassifier):
    """Linear support vector classifier on an explicit feature map of a kernel.

    Learning a stream with `partial_fit` costs the same however long it was: the newest `window`
    examples are learned together, and what older ones taught stays in the weights (see
    `online_svm.svm.linear.proximal`). More than two classes are taken one against all. Scale the
    features before, once and for all: the weights mean something only in the map that the first
    call fits.

    Parameters
    ----------
    C : float
        Penalty of a margin violation.
    feature_map : {"nystroem", "fourier"}
        scikit-learn's `Nystroem` or `RBFSampler`, fitted on the rows of the first call.
    n_components : int
        Features of the map; Nystroem has at most one for each of those rows.
    kernel : {"rbf", "linear", "poly"}
        "fourier" is of "rbf" only.
    gamma : "scale" or float
        "scale" is 1 / (n_features * X.var()) of the first call.
    degree : int
        Of "poly".
    coef0 : float
        Of "poly", not negative.
    window : int
        Examples that `partial_fit` keeps, to learn them together with the new ones.
    fading : float
        What older examples count for after each further one, in (0, 1]; 1 keeps them for good.
    tol : float
        Largest violation of optimality at which solving ends.
    max_rounds : int
        Limit on the rounds of `fit`; `partial_fit` takes a few a call.
    class_weight : dict, "balanced" or None
        Multiplies C for the examples of a class; "balanced" follows the examples held.
    random_state : int
        Seed of the map.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        Sorted.
    n_features_in_ : int
    gamma_ : float
    feature_map_ : NystroemMap or FourierMap
    coef_ : ndarray of shape (S, n_map_features)
        S = 1 machine for two classes, else K.
    intercept_ : ndarray of shape (S,)
    n_held_ : int
        Examples held.

    References
    ----------
    A. Rahimi, B. Recht, Random features for large-scale kernel machines, NIPS 2007.
    C. Williams, M. Seeger, Using the Nystroem method to speed up kernel machines, NIPS 2001.
    C.-J. Hsieh et al., A dual coordinate descent method for large-scale linear SVM, ICML 2008.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 2))
    >>> y = np.where((X**2).sum(axis=1) < 1.4, "in", "out")
    >>> svc = FeatureMapSVC(n_components=50, C=10.0)
    >>> for first in range(0, 1500, 100):
    ...     svc = svc.partial_fit(X[first : first + 100], y[first : first + 100])
    >>> bool(svc.score(X[1500:], y[1500:]) > 0.97), svc.n_held_
    (True, 1000)
    """

    _machine: ProximalMachine

    def __init__(
        self,
        C: float = 1.0,
        feature_map: MapName = "nystroem",
        n_components: int = 500,
        kernel: KernelName = "rbf",
        gamma: float | Literal["scale"] = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        window: int = 1000,
        fading: float = 1.0,
        tol: float = 1e-3,
        max_rounds: int = 1000,
        class_weight: Mapping[Any, float] | Literal["balanced"] | None = None,
        random_state: int = 0,
    ) -> None:
        self.C = C
        self.feature_map = feature_map
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.window = window
        self.fading = fading
        self.tol = tol
        self.max_rounds = max_rounds
        self.class_weight = class_weight
        self.random_state = random_state

    def _start(self, X: Floats, classes: NDArray[Any]) -> None:
        """Begin a stream: fix its classes and its map."""
        self._check_parameters()
        self.classes_ = classes
        self.gamma_ = scale_gamma(self.gamma, X)
        kernel = Kernel(self.kernel, self.gamma_, self.degree, self.coef0, wide=True)
        seed = int(self.random_state)
        self.feature_map_ = fit_map(self.feature_map, kernel, self.n_components, seed, X)
        self._machine = ProximalMachine(
            len(classes), self.feature_map_.n_features, self.tol, self.fading
        )

    def _check_parameters(self) -> None:
        for name in ("C", "tol", "fading"):
            positive(getattr(self, name), name)
        for name in ("n_components", "window", "max_rounds"):
            positive_integer(getattr(self, name), name)
        seed = self.random_state
        if not isinstance(seed, int | np.integer) or seed < 0:
            raise InvalidConfig(f"random_state: must be an integer >= 0, got {seed!r}")
        if self.fading > 1.0:
            raise InvalidConfig(f"fading: must be at most 1, got {self.fading!r}")
        if self.feature_map not in ("nystroem", "fourier"):
            raise InvalidConfig(
                f"feature_map: {self.feature_map!r} is unknown; use 'nystroem' or 'fourier'"
            )
        if self.feature_map == "fourier" and self.kernel != "rbf":
            raise InvalidConfig("feature_map: fourier needs kernel='rbf'; take 'nystroem'")

    def _learn_all(self, X: Floats, codes: Ints) -> None:
        self._machine.extend(self.feature_map_.transform(X), codes)
        self._solve(self.max_rounds)

    def _learn_more(self, X: Floats, codes: Ints) -> None:
        """Learn a window at a time; what is older than the window stays in the weights only."""
        machine = self._machine
        for first in range(0, len(X), self.window):
            part = X[first : first + self.window]
            machine.release(max(0, len(machine) + len(part) - self.window))
            machine.extend(self.feature_map_.transform(part), codes[first : first + self.window])
            self._solve(ROUNDS)

    def _solve(self, rounds: int) -> None:
        machine = self._machine
        codes = machine.codes
        penalties = class_penalties(self.C, self.class_weight, self.classes_, codes)
        machine.rounds = rounds
        weights = machine.solve(penalties)
        self.coef_ = np.ascontiguousarray(weights[:, :-1])
        self.intercept_ = weights[:, -1].copy()
        self._model = self.feature_map_.model(self.coef_, self.intercept_)
