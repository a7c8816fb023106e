"""Scaling of the features and gamma, fitted on a proper training set at some refits."""

import math
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from online_svm.compiled.elementary import exp, log
from online_svm.compiled.kernels import Kernel
from online_svm.compiled.ordered_sums import sum_rows
from online_svm.config import PredictorConfig
from online_svm.refit.coding import WIDTH, Coding
from online_svm.storage.arrays import nest, require, under
from online_svm.storage.fields import Fields, floats
from online_svm.svm.hyperparameters import scale_gamma
from online_svm.types import Arrays, Bools, Floats, Ints

# Scaled values of a committee reach at most this many times as far as those of T when the scaling
# was fitted, and at most this size: beyond it the sums of a linear machine would overflow.
FAR, MOST = 1e6, 1e100

DEGREE, COEF0 = 3, 0.0
"""Of the kernel `poly` of a feed, as in scikit-learn."""

RESCALE_EVERY = 20
"""Refits between two fits of the scaling."""

GROW_EVERY, GROWS_FREELY = 10, 1000
"""Refits between two codings that grow, but for a T of fewer examples.

A refit whose columns grew computes its kernels anew, as every 20th does: it takes 2.4 times as long
as another in a window of 1,000 (20 and 8 ms), 6 times in one of 5,000 (270 and 45 ms). So, with one
in ten, a feed where new categories come for ever takes 1.2 times as long as one without.
"""

FIELDS = Fields(
    floats("mean", "d"), floats("width", "d"), floats("fill", "d"),
    floats("limit", "1", optional=True),
)  # fmt: skip
"""Of a `Scaling`."""


@dataclass(frozen=True, slots=True)
class Scaling:
    """Subtract `mean`, divide by `width`; a missing value (NaN) becomes `fill` first.

    Attributes
    ----------
    mean, width, fill : ndarray of shape (n_features,)
    limit : ndarray of shape (1,)
        Scaled values beyond it, in size, count as it: a polynomial kernel of larger ones would
        overflow. Infinite for the other kernels.
    coding : Coding or None
        Of rows with names, which are coded first; then `mean`, `width` and `fill` are of the coded
        columns.

    Examples
    --------
    >>> scaling = Scaling.fit(np.array([[1.0, 5.0], [3.0, 5.0]]), standard=True)
    >>> scaling.transform(np.array([[5.0, np.nan]]))
    array([[3., 0.]])
    """

    mean: Floats
    width: Floats
    fill: Floats
    limit: Floats = field(default_factory=lambda: np.array([np.inf]))
    coding: Coding | None = None

    @classmethod
    def fit(cls, X: Floats, *, standard: bool, coding: Coding | None = None) -> Self:
        """Return the scaling of the training rows `X`, shape (n, n_features).

        Parameters
        ----------
        X : ndarray of shape (n, n_features)
            May hold NaN for missing values, which are left out.
        standard : bool
            Scale to mean 0 and variance 1; otherwise only missing values are filled.
        coding : Coding, optional
            Of the rows, which are cells then. Its columns that are not numbers have one width.
        """
        if coding is not None:
            X = coding.code(X)
        # A column whose values are all missing has no mean; it carries nothing and becomes 0.
        fill, width = mean_and_width(np.where(np.isnan(X).all(axis=0), 0.0, X))
        if not standard:
            return cls(np.zeros_like(fill), np.ones_like(fill), fill, coding=coding)
        if coding is not None:
            width = np.where(coding.are_scaled, width, WIDTH)
        return cls(fill, width, fill, coding=coding)

    @classmethod
    def identity(cls, n_features: int) -> Self:
        """Return the scaling that changes nothing."""
        return cls(np.zeros(n_features), np.ones(n_features), np.zeros(n_features))

    def state(self) -> Arrays:
        """Return the attributes by name."""
        coding = {} if self.coding is None else nest("coding", self.coding.state())
        return FIELDS.arrays_of(self) | coding

    @classmethod
    def from_state(cls, state: Arrays) -> Self:
        """Return the scaling that `state` describes.

        Raises
        ------
        InvalidSnapshot
            If the parts do not fit one another.
        """
        coding = None
        if "coding.kinds" in state:
            coding = Coding.from_state(under("coding", state))
            require(coding.width == state["mean"].size, "coding")
        return cls(**FIELDS.values(cls, None, state), coding=coding)

    def transform(self, X: Floats) -> Floats:
        """Return `X`, shape (n, n_features), filled and scaled, value by value."""
        if self.coding is not None:
            X = self.coding.code(X)
        scaled: Floats = X - self.mean
        scaled /= self.width
        missing = np.isnan(scaled)
        if np.count_nonzero(missing):
            scaled = np.where(missing, (self.fill - self.mean) / self.width, scaled)
        limit = self.limit.item()
        if limit < math.inf:
            np.minimum(np.maximum(scaled, -limit, out=scaled), limit, out=scaled)
        return scaled

    def imputed(self, X: Floats) -> Ints:
        """Return how many known features are gaps in each row, shape (n,); -1 without a coding."""
        if self.coding is None:
            return np.full(len(X), -1)
        return self.coding.imputed(X)


def mean_and_width(X: Floats) -> tuple[Floats, Floats]:
    """Return mean and standard deviation of each column, 1 for one that is as good as constant.

    The numbers of scikit-learn's StandardScaler, as two passes with the correction of Chan, Golub
    and LeVeque (1983) give them; bit for bit where there are two columns or more, of one alone
    numpy adds the values in another order. To import that takes most of a second, in which a feed
    would stand still, at the first rescaling after every start.

    Parameters
    ----------
    X : ndarray of shape (n, n_features)
        NaN is left out; each column has another value.

    Examples
    --------
    >>> mean, width = mean_and_width(np.array([[1.0, 5.0], [3.0, np.nan]]))
    >>> mean.tolist(), width.tolist()
    ([2.0, 5.0], [1.0, 1.0])
    """
    missing = np.isnan(X)
    count = len(X) - missing.sum(axis=0)
    mean = (sum_rows(np.where(missing, 0.0, X)) + 0.0) / count  # a column of -0.0 has mean 0.0
    apart = np.where(missing, 0.0, X - mean)
    correction = sum_rows(apart)
    variance = (sum_rows(apart * apart) - correction * correction / count) / count
    eps = np.finfo(np.float64).eps
    # What rounding alone may make of a constant column.
    lost = count * mean * eps
    noise = count * eps * variance + lost * lost
    return mean, np.where(variance <= noise, 1.0, np.sqrt(variance))


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
    grown_at : int
        Number of the last refit whose coding grew.

    Attributes
    ----------
    gamma, fitted_on, grown_at
        The same, now.
    """

    def __init__(
        self,
        config: PredictorConfig,
        fitted: Scaling | None = None,
        gamma: float = 0.0,
        fitted_on: int = 0,
        grown_at: int = 0,
    ) -> None:
        self._config, self._fitted = config, fitted
        self._fresh: Coding | None = None  # of the T of this refit
        self.gamma, self.fitted_on, self.grown_at = gamma, fitted_on, grown_at

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

    def is_due(
        self, trains: Bools, refits: int, cells: Floats | None = None, order: Ints | None = None
    ) -> bool:
        """Return whether the scaling is to be fitted again at the refit of this number.

        Parameters
        ----------
        trains : ndarray of shape (n,)
            Which examples are in T.
        refits : int
        cells : ndarray of shape (n_training, n_features), optional
            T, where features have names.
        order : ndarray of shape (n_features,), optional
            Of their columns; see `RefitTask`.
        """
        config = self._config
        self._fresh = None
        lacks = cells is not None and self._lacks(cells, order)
        if self._fitted is None:
            return True
        if lacks and (refits >= self.grown_at + GROW_EVERY or trains.sum() < GROWS_FREELY):
            self.grown_at = refits
            return True
        if config.scale == "none" and not self._fills and config.gamma != "scale":
            return False
        has_doubled = int(trains.sum()) >= 2 * self.fitted_on
        return has_doubled or refits % RESCALE_EVERY == 0

    def _lacks(self, T: Floats, order: Ints | None) -> bool:
        """Code the rows of T anew; return whether the present coding lacks what T has."""
        config, before = self._config, None if self._fitted is None else self._fitted.coding
        self._fresh = Coding.fit(T, config.max_categories, config.declared_kinds, before, order)
        if self._fitted is None or before is None:
            return True
        self._fitted = replace(self._fitted, coding=before.updated(self._fresh))
        return before.lacks(self._fresh, T)

    @property
    def _fills(self) -> bool:
        """Whether missing values are filled, with what was fitted."""
        return self._config.missing == "mean" or self._fresh is not None

    def fit(self, rows: Floats, trains: Bools) -> None:
        """Fit the scaling and gamma on T, the marked rows; kernels are to be computed anew.

        Where features have names, `is_due` has coded them.
        """
        config, training = self._config, rows[trains]
        if len(training) and (config.scale == "standard" or self._fills):
            standard = config.scale == "standard"
            scaling = Scaling.fit(training, standard=standard, coding=self._fresh)
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
