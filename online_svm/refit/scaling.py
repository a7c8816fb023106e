"""Scaling of the features, fitted on a proper training set."""

import math
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from online_svm.compiled.ordered_sums import sum_rows
from online_svm.types import Arrays, Floats


@dataclass(frozen=True, slots=True)
class Scaling:
    """Subtract `mean`, divide by `width`; a missing value (NaN) becomes `fill` first.

    Attributes
    ----------
    mean, width, fill : ndarray of shape (n_features,)
    limit : ndarray of shape (1,)
        Scaled values beyond it, in size, count as it: a polynomial kernel of larger ones would
        overflow. Infinite for the other kernels.

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

    @classmethod
    def fit(cls, X: Floats, *, standard: bool) -> Self:
        """Return the scaling of the training rows `X`, shape (n, n_features).

        Parameters
        ----------
        X : ndarray of shape (n, n_features)
            May hold NaN for missing values, which are left out.
        standard : bool
            Scale to mean 0 and variance 1; otherwise only missing values are filled.
        """
        # A column whose values are all missing has no mean; it carries nothing and becomes 0.
        fill, width = mean_and_width(np.where(np.isnan(X).all(axis=0), 0.0, X))
        if not standard:
            return cls(np.zeros_like(fill), np.ones_like(fill), fill)
        return cls(fill, width, fill)

    @classmethod
    def identity(cls, n_features: int) -> Self:
        """Return the scaling that changes nothing."""
        return cls(np.zeros(n_features), np.ones(n_features), np.zeros(n_features))

    def state(self) -> Arrays:
        """Return the attributes by name."""
        return {"mean": self.mean, "width": self.width, "fill": self.fill, "limit": self.limit}

    @classmethod
    def from_state(cls, state: Arrays) -> Self:
        """Return the scaling that `state` describes."""
        return cls(**state)

    def transform(self, X: Floats) -> Floats:
        """Return `X`, shape (n, n_features), filled and scaled, value by value."""
        scaled: Floats = X - self.mean
        scaled /= self.width
        missing = np.isnan(scaled)
        if np.count_nonzero(missing):
            scaled = np.where(missing, (self.fill - self.mean) / self.width, scaled)
        limit = self.limit.item()
        if limit < math.inf:
            np.minimum(np.maximum(scaled, -limit, out=scaled), limit, out=scaled)
        return scaled


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
