"""Scaling of the features, fitted on a proper training set."""

from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import NDArray

from online_svm.arrays import Arrays

Floats = NDArray[np.float64]


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
        from sklearn.preprocessing import StandardScaler  # here: it takes a second to import

        # A column whose values are all missing has no mean; it carries nothing and becomes 0.
        known = np.where(np.isnan(X).all(axis=0), 0.0, X)
        scaler = StandardScaler().fit(known)
        fill = np.asarray(scaler.mean_, dtype=np.float64)
        if not standard:
            return cls(np.zeros_like(fill), np.ones_like(fill), fill)
        return cls(fill, np.asarray(scaler.scale_, dtype=np.float64), fill)

    @classmethod
    def identity(cls, n_features: int) -> Self:
        """Return the scaling that changes nothing."""
        return cls(np.zeros(n_features), np.ones(n_features), np.zeros(n_features))

    def arrays(self) -> Arrays:
        """Return the attributes by name."""
        return {"mean": self.mean, "width": self.width, "fill": self.fill, "limit": self.limit}

    def transform(self, X: Floats) -> Floats:
        """Return `X`, shape (n, n_features), filled and scaled, value by value."""
        scaled: Floats = (np.where(np.isnan(X), self.fill, X) - self.mean) / self.width
        limit = self.limit[0]
        return scaled if np.isinf(limit) else np.clip(scaled, -limit, limit)
