"""Cards of the rate and the lag of a feed, since the page began to follow it."""

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np
from bokeh.models import UIElement

from online_svm.types import Floats
from workers.dashboard.card import ANNOUNCED, Card, plot, source
from workers.dashboard.excerpt import Excerpt
from workers.dashboard.feed_view import FeedSample


class _SampleCard(Card):
    """A figure of each second since the page began to follow the feed."""

    section = "the-live-page"
    unit: str
    is_of_samples = True

    def body(self) -> Sequence[UIElement]:
        """Make the plot."""
        self._source = source("x", "y")
        drawn = plot("time", self.unit)
        drawn.varea("x", y1=0, y2="y", source=self._source, color=ANNOUNCED, alpha=0.2)
        drawn.line("x", "y", source=self._source, color=ANNOUNCED, width=2)
        drawn.y_range.start = 0
        return [drawn]

    def fill(self, excerpt: Excerpt) -> str:
        """Draw the samples."""
        if not excerpt.samples:
            return "The feed has not been read yet."
        times = [1000 * sample.time for sample in excerpt.samples]
        values = [self.value(sample) for sample in excerpt.samples]
        self._source.data = {"x": _floats(times), "y": _floats(values)}
        return ""

    @abstractmethod
    def value(self, sample: FeedSample) -> float:
        """Return what is drawn of a sample."""


class RateCard(_SampleCard):
    """Answers a second."""

    title = "Rate"
    words = (
        "Entries answered a second, a mean over ten seconds. It is measured while this page "
        "runs, for a quarter of an hour at most."
    )
    unit = "entries / s"

    def value(self, sample: FeedSample) -> float:
        """Return the rate."""
        return sample.rate


class LagCard(_SampleCard):
    """Entries that wait for an answer."""

    title = "Lag"
    words = (
        "Entries of the input that wait for an answer. A lag that grows means that the worker is "
        "too slow, or gone."
    )
    unit = "entries"

    def value(self, sample: FeedSample) -> float:
        """Return how many wait."""
        return sample.waiting


def _floats(values: list[float]) -> Floats:
    return np.array(values, dtype=np.float64)
