"""One session: a document that shows the choice in its address, and refreshes it."""

import time
from collections.abc import Mapping, Sequence

from bokeh.document import Document
from bokeh.events import DocumentReady
from bokeh.models import Column, CustomJS, Row, UIElement

from workers.dashboard.answer_cards import (
    AnswersCard,
    FeaturesCard,
    PartsCard,
    ReliabilityCard,
)
from workers.dashboard.card import Card, choice_of, grid, markup
from workers.dashboard.class_cards import ActionsCard, DetectionCard, RareClassCard
from workers.dashboard.curve_cards import (
    AccuracyCard,
    CostCard,
    LagCard,
    MapsCard,
    RateCard,
    WidthCard,
)
from workers.dashboard.fact_cards import FactsCard, SettingsCard
from workers.dashboard.feeds_table import table, waiting_text
from workers.dashboard.follower import Follower
from workers.dashboard.monitor_cards import AlarmsCard, DeviationCard, EvidenceCard
from workers.dashboard.shown_feed import RANGES, Choice, Excerpt, ShownFeed
from workers.dashboard.text import banner, figures, rate, safe, seconds, whole

PICTURES: Sequence[type[Card]] = (AccuracyCard, ReliabilityCard, EvidenceCard, LagCard)
"""Cards above the tabs, which are always shown."""

TABS: Mapping[str, Sequence[type[Card]]] = {
    "facts": (FactsCard, SettingsCard),
    "incidents": (AlarmsCard,),
    "parts": (DetectionCard, RareClassCard, PartsCard, DeviationCard),
    "answers": (AnswersCard, FeaturesCard),
    "methods": (WidthCard, MapsCard),
    "rate and costs": (RateCard, CostCard, ActionsCard),
}
"""The other cards, by the tab that shows them."""

_IN_TABS = [kind for kinds in TABS.values() for kind in kinds]
CARDS: Sequence[type[Card]] = (
    FactsCard, *PICTURES, *(kind for kind in _IN_TABS if kind not in (FactsCard, SettingsCard)),
    SettingsCard,
)  # fmt: skip
"""All cards of a feed, in the order of a report."""

REFRESH_MS = 1000
_TABLE_EVERY = 2  # refreshes between two updates of the table of all feeds

_REMEMBER = """
const url = new URL(window.location)
url.searchParams.set(name, cb_obj.value)
window.history.replaceState(null, "", url)
"""


_LOADING = '<p class="empty">Loading …</p>'

_NO_FEEDS = (
    '<p class="empty"><b>No feeds yet.</b> Begin one with <code>online-svm push FEED SOURCE'
    "</code> and <code>online-svm worker FEED</code>. It appears here by itself.</p>"
)


class Page:
    """The page in one browser."""

    def __init__(self, document: Document, follower: Follower, choice: Choice) -> None:
        self._document, self._follower, self._choice = document, follower, choice
        self._refreshes = 0
        self._alert, self._head = markup(visible=False), markup(_LOADING)
        self._root = Column(children=[self._alert, self._head], sizing_mode="stretch_width")
        document.title = choice.title
        document.add_root(self._root)

    def begin(self) -> None:
        """Show the page now and then every `REFRESH_MS`."""
        self.refresh()
        self._document.add_periodic_callback(self.refresh, REFRESH_MS)

    def refresh(self) -> None:
        """Show the present state."""
        _set_text(self._alert, _lost(self._follower))
        self.show()
        self._refreshes += 1

    def show(self) -> None:
        """Show the part below the alert."""
        raise NotImplementedError


class FeedsPage(Page):
    """The table of all feeds."""

    def show(self) -> None:
        """Write the table."""
        if self._refreshes % _TABLE_EVERY and self._follower.has_read:
            return
        shown = self._follower.shown()
        if not shown:
            _set_text(self._head, _NO_FEEDS if self._follower.has_read else _LOADING)
            return
        more = self._follower.left_out
        rest = f'<p class="soft">{more:,} more are not followed; name those to show.</p>'
        _set_text(self._head, table(shown, self._choice) + rest * bool(more))


class FeedPage(Page):
    """The page of one feed."""

    def __init__(self, document: Document, follower: Follower, choice: Choice) -> None:
        super().__init__(document, follower, choice)
        self._shown = follower.watch(choice.feed)
        self._version = -1  # `ShownFeed.version` that the cards show
        if self._shown is None:
            return
        document.on_session_destroyed(lambda _: follower.unwatch(choice.feed))
        self._pictures, self._panels = grid("28rem"), {name: grid("28rem") for name in TABS}
        tabs = _tabs(self._panels, choice.tab)
        self._root.children += [self._controls(), self._pictures, *tabs]
        # The plots are made after the browser shows the head.
        self._cards: list[Card] = []
        document.on_event(DocumentReady, lambda _: self._make_cards())

    def _make_cards(self) -> None:
        cards = {kind: kind(self._choice.axis) for kind in CARDS}
        self._cards, self._version = list(cards.values()), -1
        self.show()
        self._pictures.children = [cards[kind].root for kind in PICTURES]
        for name, kinds in TABS.items():
            self._panels[name].children = [cards[kind].root for kind in kinds]

    def show(self) -> None:
        """Write the head; draw the cards again if anything changed."""
        shown = self._shown
        if shown is None:
            _set_text(self._head, _unknown(self._choice.feed))
            return
        _set_text(self._head, head(shown))
        if not shown.is_loaded or shown.status.problem:
            return
        excerpt = Excerpt.of(shown, self._choice)
        is_new = shown.version != self._version
        self._version = shown.version
        for card in self._cards:
            if is_new or card.is_of_flow:
                card.refresh(excerpt)

    def _controls(self) -> UIElement:
        ranges = choice_of("Range", self._choice.range, list(RANGES.items()))
        along = [("n", "examples learned"), ("time", "time")]
        axis = choice_of("Along", self._choice.axis, along)
        for name, control in (("range", ranges), ("axis", axis)):
            control.js_on_change("value", CustomJS(args={"name": name}, code=_REMEMBER))
            control.on_change("value", self._changed(name))
        return Row(children=[ranges, axis], styles={"flex-wrap": "wrap", "gap": "0.75rem"})

    def _changed(self, name: str) -> object:
        def take(_attribute: str, _old: str, new: str) -> None:
            names = ("feed", "range", "axis", "theme", "tab")
            self._choice = Choice.of({n: getattr(self._choice, n) for n in names} | {name: new})
            self._make_cards()

        return take


def head(shown: ShownFeed) -> str:
    """Return the name of a feed, the verdict on it and its main figures as HTML."""
    status = shown.status
    values = (
        ("worker", safe(status.holder) if status.holder else "none"),
        ("rate, entries / s", rate(shown.rate)),
        ("lag, entries", waiting_text(status)),
        ("lag, time", seconds(status.waiting_seconds)),
        ("answered, entries", whole(status.seq)),
        ("learned, examples", whole(status.n)),
        ("guarantee", safe(status.answer.get("guarantee"))),
    )
    return f"<h1>{safe(status.feed, 64)}</h1>{banner(shown.verdict())}{figures(values)}"


def _lost(follower: Follower) -> str:
    if not follower.lost:
        return ""
    since = seconds(max(0.0, time.time() - follower.lost_since))
    return (
        f'<div class="note" role="alert"><b>Redis does not answer, for {since} now.</b> What you '
        f"see is from before. This page tries again each second. {safe(follower.lost, 300)}</div>"
    )


def _unknown(feed: str) -> str:
    return (
        f'<p class="empty"><b>No feed {safe(feed)} on this page.</b> A name has 1 to 64 letters, '
        "digits, dots, underscores or hyphens; a page that was started with names shows only "
        "those.</p>"
    )


def _tabs(panels: Mapping[str, UIElement], chosen: str) -> list[UIElement]:
    """Return the list of tabs, and a panel for each; the chosen one is shown, else the first.

    The server draws all panels; `assets/tabs.js` switches between them in the browser. The roles
    follow the pattern "tabs" of the ARIA authoring guide, except that a tab cannot refer to its
    panel by ID, because each Bokeh element has its own shadow tree: they share a name instead.
    """
    shown = chosen if chosen in panels else next(iter(panels))
    buttons = "".join(_tab(name, name == shown) for name in panels)
    tabs = f'<div role="tablist" class="tabs" aria-label="More of this feed">{buttons}</div>'
    return [markup(tabs), *(_panel(name, each, name == shown) for name, each in panels.items())]


def _tab(name: str, is_chosen: bool) -> str:
    chosen, stop = ("true", 0) if is_chosen else ("false", -1)
    return (
        f'<button type="button" role="tab" data-tab="{safe(name)}" aria-selected="{chosen}" '
        f'tabindex="{stop}">{safe(name.capitalize())}</button>'
    )


def _panel(name: str, cards: UIElement, is_chosen: bool) -> Column:
    """Return a panel around a grid: the CSS of a grid overrides its `visible`."""
    attributes = {"role": "tabpanel", "aria-label": name.capitalize(), "tabindex": "0"}
    return Column(
        children=[cards], name=f"tab {name}", visible=is_chosen, sizing_mode="stretch_width",
        html_attributes=attributes,
    )  # fmt: skip


def _set_text(element: UIElement, text: str) -> None:
    """Set the text of a piece of markup; an unchanged text is not sent again."""
    if element.text != text:
        element.text = text
    if element.visible != bool(text):
        element.visible = bool(text)


def make_page(document: Document, follower: Follower, choice: Choice) -> None:
    """Fill a new document."""
    kind = FeedPage if choice.feed else FeedsPage
    kind(document, follower, choice).begin()


def refuse(document: Document, limit: int) -> None:
    """Fill a new document with a message that there are too many viewers."""
    words = f"{limit:,} browsers look at this page already: close one of them, and try again."
    document.title = Choice().title
    document.add_root(markup(f'<p class="empty">{words}</p>'))
