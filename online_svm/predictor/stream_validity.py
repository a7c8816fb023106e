"""The cumulative validity of a stream: headline, Venn predictor and maps, side by side."""

from collections.abc import Sequence
from typing import Self

import numpy as np

from online_svm.metrics.cumulative import NO_INTERVAL, CumulativeValidity, MethodAnswers
from online_svm.storage.arrays import nest, under
from online_svm.storage.fields import Fields, one
from online_svm.stream.prediction import PredictionBlock, ValidityReport
from online_svm.types import Arrays, Ints

_FIELDS = Fields(one("scored"))


class StreamValidity:
    """Running sums over every scored example, in constant memory.

    Parameters
    ----------
    maps : sequence of str
        Names of the published maps.

    Examples
    --------
    >>> StreamValidity(["platt"]).report(n=0).scored
    0
    """

    def __init__(self, maps: Sequence[str]) -> None:
        self.scored = 0
        self.headline = CumulativeValidity(intervals=True)
        self.venn = CumulativeValidity(intervals=True)
        self.maps = {name: CumulativeValidity(intervals=False) for name in maps}

    def update(self, block: PredictionBlock, columns: Ints) -> None:
        """Add the labelled rows of `block`; `columns` holds their true class columns, or -1."""
        # Contiguous, or the code would be compiled again for each layout.
        lower, upper = np.ascontiguousarray(block.lower), np.ascontiguousarray(block.upper)
        least, most = np.ascontiguousarray(block.venn_lower), np.ascontiguousarray(block.venn_upper)
        own, none = block.svm_label, NO_INTERVAL
        said = MethodAnswers(block.point, lower, upper, block.label, own)
        self.headline.update_unchecked(said, columns)
        predicted = block.venn_point.argmax(axis=1)
        said = MethodAnswers(block.venn_point, least, most, predicted, own)
        self.venn.update_unchecked(said, columns)
        for name, probabilities in block.maps.items():
            predicted = probabilities.argmax(axis=1)
            said = MethodAnswers(probabilities, none, none, predicted, own)
            self.maps[name].update_unchecked(said, columns)
        self.scored = self.headline.scored

    def report(self, n: int) -> ValidityReport:
        """Return the report after `n` learned examples."""
        maps = {name: sums.report() for name, sums in self.maps.items()}
        return ValidityReport(
            n=n,
            scored=self.scored,
            headline=self.headline.report(),
            venn=self.venn.report(),
            maps=maps,
        )

    def state(self) -> Arrays:
        """Return the sums as arrays."""
        arrays = _FIELDS.arrays_of(self)
        for name, sums in [("headline", self.headline), ("venn", self.venn), *self.maps.items()]:
            arrays |= nest(name, sums.state())
        return arrays

    @classmethod
    def from_state(cls, state: Arrays, maps: Sequence[str]) -> Self:
        """Return the sums that `state` describes."""
        validity = cls(maps)
        _FIELDS.fill(validity, None, state)
        validity.headline = CumulativeValidity.from_state(under("headline", state))
        validity.venn = CumulativeValidity.from_state(under("venn", state))
        validity.maps = {name: CumulativeValidity.from_state(under(name, state)) for name in maps}
        return validity
