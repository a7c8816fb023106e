"""Cards of the width of the intervals, and of the rate and the lag of the feed."""

from collections.abc import Sequence

import numpy as np
from bokeh.models import UIElement

from workers.dashboard.card import Card, legend, plot, source
from workers.dashboard.colours import ACCURACY, ANNOUNCED
from workers.dashboard.excerpt import Excerpt, thinned
from workers.dashboard.reports import FIGURES, cumulative, recent, windowed
from workers.dashboard.validity_cards import NO_REPORTS

_LOWER, _UPPER = FIGURES.index("lower"), FIGURES.index("upper")


class WidthCard(Card):
    """Mean width of the announced intervals."""

    title = "Width of the intervals"
    words = (
        "Mean of upper minus lower probability over the last scored examples (solid) and "
        "over all (dashed), for the headline and the Venn predictor. Narrow is sharp; a width that "
        "grows says that the calibration set shrank or changed."
    )
    section = "the-live-page"

    def body(self) -> Sequence[UIElement]:
        """Make the plot."""
        self._source = source("x", "headline", "all", "venn")
        drawn = plot(self.axis, "probability")
        own = drawn.line("x", "headline", source=self._source, color=ANNOUNCED, width=2.5)
        every = drawn.line("x", "all", source=self._source, color=ANNOUNCED, line_dash="dashed")
        venn = drawn.line("x", "venn", source=self._source, color=ACCURACY, width=2)
        drawn.y_range.start = 0
        legend(
            drawn,
            [("headline, window", [own]), ("headline, all", [every]), ("Venn, window", [venn])],
        )
        return [drawn]

    def fill(self, excerpt: Excerpt) -> str:
        """Draw the widths."""
        if not any(r.scored for r in excerpt.reports):
            return NO_REPORTS
        chosen = thinned(len(excerpt.reports))
        figures = {
            "headline": recent(excerpt.reports),
            "all": cumulative(excerpt.reports, "headline"),
            "venn": windowed(excerpt.reports, "venn"),
        }
        widths = {k: (v[:, _UPPER] - v[:, _LOWER])[chosen] for k, v in figures.items()}
        self._source.data = {"x": excerpt.x()[chosen], **widths}
        return ""


class _SampleCard(Card):
    """A figure of each second since the page began to follow the feed."""

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
        times = np.array([1000 * sample.time for sample in excerpt.samples])
        self._source.data = {"x": times, "y": self._values(excerpt)}
        return ""

    def _values(self, excerpt: Excerpt) -> np.ndarray:
        raise NotImplementedError


class RateCard(_SampleCard):
    """Answers a second."""

    title = "Rate"
    words = (
        "Entries answered a second, a mean over ten seconds. It is measured while this page "
        "runs, for a quarter of an hour at most."
    )
    section = "the-live-page"
    unit = "entries / s"

    def _values(self, excerpt: Excerpt) -> np.ndarray:
        return np.array([sample.rate for sample in excerpt.samples])


class LagCard(_SampleCard):
    """Entries that wait for an answer."""

    title = "Lag"
    words = (
        "Entries of the input that wait for an answer. Above a thousand they are not counted one "
        "by one. A lag that grows means that the worker is too slow, or gone."
    )
    section = "the-live-page"
    unit = "entries"

    def _values(self, excerpt: Excerpt) -> np.ndarray:
        return np.array([sample.waiting for sample in excerpt.samples], dtype=float)
