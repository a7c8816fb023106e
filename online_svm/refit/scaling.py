"""Scaling of the features and gamma, fitted on the proper training set T at some of the refits."""

import math
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from online_svm.compiled.kernels import Kernel
from online_svm.compiled.ordered_sums import sum_rows
from online_svm.config import PredictorConfig
from online_svm.refit.feature_encoder import WIDTH, FeatureEncoder
from online_svm.storage.state import require
from online_svm.storage.state_schema import StateSchema, StoredRecord, floats, record
from online_svm.svm.kernel_model import scale_gamma
from online_svm.types import Bools, Floats, Ints

# Scaled values of a committee are clipped at CLIP_FACTOR times the largest one in T, at most at
# MAX_SCALED_VALUE, because the sums of a linear machine could overflow.
CLIP_FACTOR, MAX_SCALED_VALUE = 1e6, 1e100

RESCALE_EVERY = 20  # refits between two fits of the scaling

ENCODER_GROWS_EVERY, ENCODER_GROWS_FREELY_BELOW = 10, 1000
"""Minimum of refits between two larger encoders, and the size of T below which there is none.

A refit with new columns computes its kernels again, like every 20th refit. It takes 2.4 times as
long as another with a window of 1,000 (20 and 8 ms), 6 times with 5,000 (270 and 45 ms). With one
in ten refits, a feed with ever new categories takes 1.2 times as long as another.
"""


@dataclass(frozen=True, slots=True)
class Scaling(StoredRecord):
    """Replaces missing values (NaN) by `fill`, subtracts `mean` and divides by `width`.

    `mean`, `width`, `fill`, shape (n_features,).
    `limit`, shape (1,): scaled values are clipped at this size, infinite for no limit; see
        `WindowScaling`.
    `encoder`: encoder of rows with names; then `mean`, `width` and `fill` are of encoded columns.
    """

    _stored = StateSchema(
        floats("mean", "d"), floats("width", "d"), floats("fill", "d"),
        floats("limit", "1", optional=True),
        record("encoder", stored_as="coding", of=FeatureEncoder, optional=True),
    )  # fmt: skip

    mean: Floats
    width: Floats
    fill: Floats
    limit: Floats = field(default_factory=lambda: np.array([np.inf]))
    encoder: FeatureEncoder | None = None

    @classmethod
    def fit(cls, X: Floats, *, standard: bool, encoder: FeatureEncoder | None = None) -> Self:
        """Return the scaling of the training rows.

        `X`, shape (n, n_features): missing values are NaN and have no effect.
        `standard`: scale to mean 0 and variance 1; otherwise only fill missing values.
        `encoder`: encoder of the rows, which are cells then. Its columns that are not numeric have
            the width `WIDTH`.
        """
        if encoder is not None:
            X = encoder.encode(X)
        # A column without values has no mean; it becomes 0.
        fill, width = mean_and_width(np.where(np.isnan(X).all(axis=0), 0.0, X))
        if not standard:
            return cls(np.zeros_like(fill), np.ones_like(fill), fill, encoder=encoder)
        if encoder is not None:
            width = np.where(encoder.are_scaled, width, WIDTH)
        return cls(fill, width, fill, encoder=encoder)

    @classmethod
    def identity(cls, n_features: int) -> Self:
        """Return the scaling that changes nothing."""
        return cls(np.zeros(n_features), np.ones(n_features), np.zeros(n_features))

    def _on_restored(self) -> None:
        require(self.encoder is None or self.encoder.width == self.mean.size, "coding")

    def transform(self, X: Floats) -> Floats:
        """Return `X`, shape (n, n_features), encoded, filled and scaled."""
        if self.encoder is not None:
            X = self.encoder.encode(X)
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
        """Return the number of missing features of each row, shape (n,); -1 without an encoder."""
        if self.encoder is None:
            return np.full(len(X), -1)
        return self.encoder.imputed(X)


def mean_and_width(X: Floats) -> tuple[Floats, Floats]:
    """Return mean and standard deviation of each column; 1 for a nearly constant column.

    The algorithm is that of scikit-learn's StandardScaler: two passes with the correction of Chan,
    Golub and LeVeque (1983). For two columns or more the results agree bit for bit; numpy adds a
    single column in another order. Importing scikit-learn would take most of a second at the first
    rescaling of a feed.

    `X`, shape (n, n_features): NaN has no effect; each column has at least one other value.
    """
    missing = np.isnan(X)
    count = len(X) - missing.sum(axis=0)
    mean = (sum_rows(np.where(missing, 0.0, X)) + 0.0) / count  # a column of -0.0 has mean 0.0
    deviations = np.where(missing, 0.0, X - mean)
    correction = sum_rows(deviations)
    variance = (sum_rows(deviations * deviations) - correction * correction / count) / count
    eps = np.finfo(np.float64).eps
    # The variance that rounding alone may give a constant column.
    rounding = count * mean * eps
    noise = count * eps * variance + rounding * rounding
    return mean, np.where(variance <= noise, 1.0, np.sqrt(variance))


class WindowScaling:
    """The scaling of a learner and its gamma, fitted on T at some refits.

    `fitted_on`: size of T at the last fit.
    `grown_at`: number of the last refit whose encoder grew.
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
        self._fresh: FeatureEncoder | None = None  # fitted on the T of this refit
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
        # The Newton steps of the P-SVM's solver need all 53 bits.
        wide = config.learner == "psvm"
        return Kernel(config.kernel, self.gamma, wide=wide)

    def transform(self, rows: Floats) -> Floats:
        """Return scaled rows; unchanged rows before the first fit."""
        return rows if self._fitted is None else self._fitted.transform(rows)

    def is_due(
        self, trains: Bools, refits: int, cells: Floats | None = None, order: Ints | None = None
    ) -> bool:
        """Return whether refit number `refits` must fit the scaling.

        `trains`, shape (n,): whether each example is in T.
        `cells`, shape (n_training, n_features): the rows of T, if features have names.
        `order`, shape (n_features,): order of encoding; see `RefitTask`.
        """
        config = self._config
        self._fresh = None
        lacks = cells is not None and self._lacks(cells, order)
        if self._fitted is None:
            return True
        if lacks and (
            refits >= self.grown_at + ENCODER_GROWS_EVERY
            or trains.sum() < ENCODER_GROWS_FREELY_BELOW
        ):
            self.grown_at = refits
            return True
        if not config.standardizes and not self._fills and config.gamma != "scale":
            return False
        has_doubled = int(trains.sum()) >= 2 * self.fitted_on
        return has_doubled or refits % RESCALE_EVERY == 0

    def _lacks(self, T: Floats, order: Ints | None) -> bool:
        """Fit an encoder on T; return whether it must replace the present one."""
        config, before = self._config, None if self._fitted is None else self._fitted.encoder
        self._fresh = FeatureEncoder.fit(T, config.declared_kinds, before, order)
        if self._fitted is None or before is None:
            return True
        self._fitted = replace(self._fitted, encoder=before.updated(self._fresh))
        return before.lacks(self._fresh, T)

    @property
    def _fills(self) -> bool:
        """Whether missing values are filled with fitted means."""
        return self._config.missing == "mean" or self._fresh is not None

    def fit(self, rows: Floats, trains: Bools) -> None:
        """Fit scaling and gamma on T, the marked rows. Kernels must be computed again.

        If features have names, `is_due` must have been called before.
        """
        config, training = self._config, rows[trains]
        if len(training) and (config.standardizes or self._fills):
            scaling = Scaling.fit(training, standard=config.standardizes, encoder=self._fresh)
        else:
            scaling = Scaling.identity(rows.shape[1])
        scaled = scaling.transform(training)
        self.gamma = scale_gamma(config.gamma, scaled)
        limit = self._limit(scaled)
        if limit is not None:
            scaling = replace(scaling, limit=np.array([limit]))
        self._fitted, self.fitted_on = scaling, int(trains.sum())

    def _limit(self, scaled: Floats) -> float | None:
        """Return the size at which scaled values are clipped against overflow, or None."""
        config = self._config
        if config.members:  # the logistic member is linear
            return min(CLIP_FACTOR * float(np.abs(scaled).max(initial=1.0)), MAX_SCALED_VALUE)
        return None
