"""Gaps in the labels of the window, and so in the guarantee."""

from typing import Self

from online_svm.config import PredictorConfig
from online_svm.storage.fields import Fields, number
from online_svm.storage.state import Header

# Given which examples have labels, the labelled ones are still i.i.d. and independent of the proper
# training set. So the theorem holds for them, whatever decides who gets a label.
UNLABELLED = (
    "an entry without a label lies in the window: exact for those that get a label, for all only "
    "if which get one does not depend on the example"
)

CENSORED = (
    "an example of the window was given up without its label: exact for those that get one in "
    "time, for all only if which get one does not depend on the example"
)

# By the horizon every example is learned and scored with its label as it is then: those are i.i.d.
# The correction is of an older example: of those to come some would be corrected too, later.
CORRECTED = (
    "the label of an example of the window was corrected after it was learned: the guarantee is of "
    "labels as they are when examples are learned, and later examples may still be corrected"
)


_FIELDS = Fields(number("unlabelled", optional=True), number("corrected", optional=True))


class LabelGaps:
    """The last example without a label, and the last whose label was corrected once learned.

    Parameters
    ----------
    config : PredictorConfig

    Attributes
    ----------
    unlabelled : int or None
        Examples learned before the last entry that certainly has no label.
    corrected : int or None
        Number of the last learned example whose label was corrected.

    Examples
    --------
    >>> gaps = LabelGaps(PredictorConfig(window=40, refit_every=20, horizon=10))
    >>> gaps.correct(7)
    >>> gaps.reason(47) is None, gaps.reason(48) is None, gaps.ends(30)
    (False, True, [48])
    """

    def __init__(self, config: PredictorConfig) -> None:
        self._window = config.window
        self._missing = CENSORED if config.takes_late_labels else UNLABELLED
        self.unlabelled: int | None = None
        self.corrected: int | None = None

    def state(self) -> Header:
        """Return what `from_state` continues from."""
        return _FIELDS.header_of(self)

    @classmethod
    def from_state(cls, state: Header, config: PredictorConfig) -> Self:
        """Return the gaps that `state` described.

        Raises
        ------
        InvalidSnapshot
            If one is no number.
        """
        gaps = cls(config)
        _FIELDS.fill(gaps, state, {})
        return gaps

    def correct(self, number: int) -> None:
        """Note that the label of the learned example `number` was corrected."""
        self.corrected = number if self.corrected is None else max(number, self.corrected)

    def lies_in_window(self, n: int) -> bool:
        """Return whether an entry without a label came since the window began."""
        return self.unlabelled is not None and self._holds(self.unlabelled, n)

    def reason(self, n: int) -> str | None:
        """Return why the labels of the window, after `n` learned examples, are not exact enough."""
        if self.lies_in_window(n):
            return self._missing
        if self.corrected is not None and self._holds(self.corrected + 1, n):
            return CORRECTED
        return None

    def ends(self, n: int) -> list[int]:
        """Return after how many learned examples each of the gaps of the window has left it."""
        if self._window is None:
            return []
        firsts = [self.unlabelled, None if self.corrected is None else self.corrected + 1]
        ends = [first + self._window for first in firsts if first is not None]
        return [end for end in ends if end > n]

    def _holds(self, first: int, n: int) -> bool:
        return self._window is None or n - first < self._window
