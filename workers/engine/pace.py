"""How many entries may be answered without a wait for a refit."""

from typing import Protocol, runtime_checkable

from typing_extensions import override

from online_svm.predictor.online_predictor import OnlinePredictor


class Pace(Protocol):
    """Bounds what is answered at once, beyond the batch; no bound changes an answer."""

    def room(self, predictor: OnlinePredictor) -> int | None:
        """Return how many entries may be answered now; None for any number."""

    def may_snapshot(self, predictor: OnlinePredictor) -> bool:
        """Return whether a snapshot may be taken now, which needs the result of a refit."""


class OwnPace(Pace):
    """The pace of a worker with one feed, which may as well wait for a refit as for input.

    Examples
    --------
    >>> from online_svm.config import PredictorConfig
    >>> OwnPace().room(OnlinePredictor(PredictorConfig())) is None
    True
    """

    @override
    def room(self, predictor: OnlinePredictor) -> int | None:
        return None

    @override
    def may_snapshot(self, predictor: OnlinePredictor) -> bool:
        return True


@runtime_checkable
class Ready(Protocol):
    """Refits that say whether their next result is there."""

    @property
    def is_ready(self) -> bool:
        """Whether `result()` would not wait."""


class SharedPace(Pace):
    """The pace of a feed among others, which are answered while this one waits for a refit.

    Parameters
    ----------
    refits : Ready or None
        None where refits are computed in this process.
    slice : int
        Entries that are answered at once, at most: the others wait for so long.

    Examples
    --------
    >>> from online_svm.config import PredictorConfig
    >>> SharedPace(None, 64).room(OnlinePredictor(PredictorConfig(refit_lag=0)))
    64
    """

    def __init__(self, refits: Ready | None, slice: int) -> None:
        self._refits, self._slice = refits, slice

    @override
    def room(self, predictor: OnlinePredictor) -> int | None:
        if self._refits is None:
            return self._slice
        waits_at = predictor.waits_at
        if waits_at is None:
            # A refit that begins within these entries takes effect after them.
            return min(self._slice, max(1, predictor.config.lag))
        left = waits_at - 1 - predictor.n
        if left > 0:
            return min(self._slice, left)
        return int(self._refits.is_ready)

    @override
    def may_snapshot(self, predictor: OnlinePredictor) -> bool:
        return self._refits is None or predictor.waits_at is None or self._refits.is_ready
