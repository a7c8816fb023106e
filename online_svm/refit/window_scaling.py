"""WindowScaling: how the rows of a learner are scaled, and its kernel, between two refits."""

import math
from dataclasses import replace

import numpy as np

from online_svm.compiled.elementary import exp, log
from online_svm.compiled.kernels import Kernel
from online_svm.config import PredictorConfig
from online_svm.refit.scaling import Scaling
from online_svm.svm.hyperparameters import scale_gamma
from online_svm.types import Bools, Floats

# Scaled values of a committee reach at most this many times as far as those of T when the scaling
# was fitted, and at most this size: beyond it the sums of a linear machine would overflow.
FAR, MOST = 1e6, 1e100

DEGREE, COEF0 = 3, 0.0
"""Of the kernel `poly` of a feed, as in scikit-learn."""

RESCALE_EVERY = 20
"""Refits between two fits of the scaling."""


class WindowScaling:
    """The scaling of a learner and its gamma, fitted on T at some refits.

    Parameters
    ----------
    config : PredictorConfig
    fitted : Scaling or None
        None before the first refit.
    gamma : float
    fitted_on : int
        Size of T when it was last fitted.

    Attributes
    ----------
    gamma, fitted_on
        The same, now.
    """

    def __init__(
        self,
        config: PredictorConfig,
        fitted: Scaling | None = None,
        gamma: float = 0.0,
        fitted_on: int = 0,
    ) -> None:
        self._config, self._fitted = config, fitted
        self.gamma, self.fitted_on = gamma, fitted_on

    @property
    def scaling(self) -> Scaling:
        """The scaling, which must be fitted."""
        assert self._fitted is not None
        return self._fitted

    @property
    def kernel(self) -> Kernel:
        """The kernel of the machines on scaled rows."""
        config = self._config
        # The Newton steps of the P-SVM's solver want all 53 bits.
        wide = config.learner == "psvm"
        return Kernel(config.kernel, self.gamma, DEGREE, COEF0, wide)

    def transform(self, rows: Floats) -> Floats:
        """Return rows scaled; as they are, before the first refit."""
        return rows if self._fitted is None else self._fitted.transform(rows)

    def is_due(self, trains: Bools, refits: int) -> bool:
        """Return whether the scaling is to be fitted again at the refit of this number."""
        config = self._config
        if self._fitted is None:
            return True
        if config.scale == "none" and config.missing == "reject" and config.gamma != "scale":
            return False
        has_doubled = int(trains.sum()) >= 2 * self.fitted_on
        return has_doubled or refits % RESCALE_EVERY == 0

    def fit(self, rows: Floats, trains: Bools) -> None:
        """Fit the scaling and gamma on T, the marked rows; kernels are to be computed anew."""
        config, training = self._config, rows[trains]
        if len(training) and (config.scale == "standard" or config.missing == "mean"):
            scaling = Scaling.fit(training, standard=config.scale == "standard")
        else:
            scaling = Scaling.identity(rows.shape[1])
        scaled = scaling.transform(training)
        self.gamma = scale_gamma(config.gamma, scaled)
        limit = self._limit(scaled)
        if limit is not None:
            scaling = replace(scaling, limit=np.array([limit]))
        self._fitted, self.fitted_on = scaling, int(trains.sum())

    def _limit(self, scaled: Floats) -> float | None:
        """Return the size of scaled values beyond which they count as it; None for no limit."""
        config = self._config
        if config.members:  # one of them is linear
            return min(FAR * float(np.abs(scaled).max(initial=1.0)), MOST)
        if config.kernel == "poly":
            return poly_limit(self.gamma, DEGREE, COEF0, scaled.shape[1])
        return None


def poly_limit(gamma: float, degree: int, coef0: float, n_features: int) -> float:
    """Return the size of features up to which a polynomial kernel stays below 1e100.

    Examples
    --------
    >>> limit = poly_limit(0.25, 4, 1.0, n_features=4)
    >>> round((0.25 * 4 * limit**2 + 1.0) ** 4 / 1e100, 6)
    1.0
    """
    largest = exp(log(1e100) / degree)
    return math.sqrt(max(largest - coef0, 0.0) / (gamma * n_features))
