"""The pace of a feed: entries that may be answered without a wait for a refit."""

from typing import Protocol

from typing_extensions import override

from online_svm.predictor.online_predictor import OnlinePredictor


class Pace(Protocol):
    """Bounds what is answered at once, beyond the batch; no bound changes an answer."""

    def room(self, predictor: OnlinePredictor) -> int | None:
        """Return how many entries may be answered at once; None for any number."""

    def waits(self, predictor: OnlinePredictor) -> bool:
        """Return whether the next answer has to wait for a refit that is not finished."""

    def may_snapshot(self, predictor: OnlinePredictor) -> bool:
        """Return whether a snapshot may be taken now.

        It needs the result of the refit under way, and the state of the learner.
        """


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
    def waits(self, predictor: OnlinePredictor) -> bool:
        return False

    @override
    def may_snapshot(self, predictor: OnlinePredictor) -> bool:
        return True


class Ready(Protocol):
    """Refits that say what is there."""

    @property
    def is_ready(self) -> bool:
        """Whether `result()` would not wait."""

    @property
    def has_state(self) -> bool:
        """Whether `state()` would not wait once all results are taken; else it is prepared."""


class SharedPace(Pace):
    """The pace of a feed among others, which are answered while this one waits for a refit.

    Parameters
    ----------
    refits : Ready
        Where refits are computed.
    slice : int
        Entries that are answered at once, at most: the others wait for so long.

    Examples
    --------
    >>> from online_svm.config import PredictorConfig
    >>> class Slow:
    ...     is_ready = has_state = False
    >>> SharedPace(Slow(), 64).room(OnlinePredictor(PredictorConfig(refit_lag=0)))
    10
    """

    def __init__(self, refits: Ready, slice: int) -> None:
        self._refits, self._slice = refits, slice

    @override
    def room(self, predictor: OnlinePredictor) -> int | None:
        return min(self._slice, predictor.until_wait)

    @override
    def waits(self, predictor: OnlinePredictor) -> bool:
        return predictor.is_waiting and not self._refits.is_ready

    @override
    def may_snapshot(self, predictor: OnlinePredictor) -> bool:
        # Asked for first, the state comes right behind the result.
        has_state = self._refits.has_state
        return has_state and (self._refits.is_ready or not predictor.is_refitting)
