"""RefitDistance: learned examples from one freeze to the next, by what refits were worth.

It begins at the shortest, and is doubled while models of an earlier refit lose no more than those
of a later one on examples that came after both, by half a standard error at most, else halved.

A freeze decides when the next one is, by labels of its own proper training set alone. These do not
calibrate the model that it makes; when the model before it ends was decided a freeze earlier. So
no label that calibrates a model has a say in how long it answers, and `exact` holds.
"""

from typing import Self

from online_svm.config import PredictorConfig
from online_svm.refit.committee.staleness import Staleness
from online_svm.storage.arrays import require
from online_svm.storage.fields import Fields, number, whole
from online_svm.storage.state import Header

LONGEST = 2000
KEPT = 15  # sixteenths of what was found that are kept at each refit: about sixteen of them count

_FIELDS = Fields(number("examples"), whole("_total"), number("_squares"))


class RefitDistance:
    """The distance to the next freeze.

    Parameters
    ----------
    config : PredictorConfig

    Attributes
    ----------
    examples : int
        Learned from the last freeze to the next.

    Examples
    --------
    >>> distance = RefitDistance(PredictorConfig())
    >>> for total in (-50, 60, 500, 500):
    ...     distance.follow(2500, Staleness(n=200, total=total, squares=10_000))
    ...     print(distance.examples)
    500
    1000
    500
    250
    """

    def __init__(self, config: PredictorConfig) -> None:
        self._from, self._gathers_from = config.varies_from, config.dense_until
        self._shortest, self._lag = config.distance, config.lag
        self._stretches_lag = config.varies_from is not None and config.refit_lag is None
        self._longest = max(self._shortest, min(LONGEST, config.window or LONGEST))
        self.examples = self._shortest
        # In units of `Staleness`: what older models lost more, and its squares.
        self._total = self._squares = 0

    @property
    def lag(self) -> int:
        """Learned examples between the next freeze and its model's effect, where that is late.

        A quarter of the distance before it, where none is given: the next distance is longer.
        """
        return max(self._lag, self.examples // 4 - 1) if self._stretches_lag else self._lag

    def is_free_from(self, k: int) -> bool:
        """Return whether the refit frozen at k learned examples decides when the next one is."""
        return self._from is not None and k >= self._from

    def follow(self, k: int, found: Staleness) -> None:
        """Take what the refit frozen at k learned examples found on its proper training set.

        Where it found nothing to compare, as after a correction, the distance stays.
        """
        if self._from is None or k <= self._gathers_from or found.n == 0:
            return
        self._total = self._total * KEPT // 16 + found.total
        self._squares = self._squares * KEPT // 16 + found.squares
        if not self.is_free_from(k):
            return
        # More than half a standard error: the squares estimate the variance of the total.
        is_stale = self._total > 0 and 4 * self._total * self._total > self._squares
        wanted = self.examples // 2 if is_stale else 2 * self.examples
        self.examples = min(max(wanted, self._shortest), self._longest)

    def state(self) -> Header:
        """Return all but the configuration."""
        return _FIELDS.header_of(self)

    @classmethod
    def from_state(cls, state: Header, config: PredictorConfig) -> Self:
        """Return the distance that `state` describes.

        Raises
        ------
        ValueError
            If a number is absent, or none that there may be.
        """
        distance = cls(config)
        _FIELDS.fill(distance, state, {})
        require(distance._shortest <= distance.examples <= distance._longest, "distance")
        return distance
