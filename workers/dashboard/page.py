"""One session: a document that shows what its address asks for, and keeps it up to date."""

from collections.abc import Mapping, Sequence

from bokeh.document import Document
from bokeh.events import DocumentReady
from bokeh.models import Column, CustomJS, Row, UIElement

from workers.dashboard import notices
from workers.dashboard.answer_cards import AnswersCard, FeaturesCard, LabelsCard
from workers.dashboard.card import Card, choice_of, grid, markup
from workers.dashboard.cost_card import CostCard
from workers.dashboard.excerpt import RANGES, Choice, Excerpt
from workers.dashboard.feed_view import FeedView
from workers.dashboard.feeds_table import row_of, table
from workers.dashboard.flow_cards import LagCard, RateCard
from workers.dashboard.follower import Follower
from workers.dashboard.monitor_cards import AlarmsCard, DeviationCard, EvidenceCard
from workers.dashboard.recent_cards import PartsCard, ReliabilityCard
from workers.dashboard.tabs import Tabs
from workers.dashboard.text import rate, safe, seconds, whole
from workers.dashboard.validity_cards import AccuracyCard, MapsCard, WidthCard
from workers.dashboard.verdicts import banner

PICTURES: Sequence[type[Card]] = (AccuracyCard, ReliabilityCard, EvidenceCard, LagCard)
"""Cards that are always shown, below the verdict."""

TABS: Mapping[str, Sequence[type[Card]]] = {
    "incidents": (AlarmsCard,),
    "parts": (PartsCard, DeviationCard),
    "answers": (AnswersCard, LabelsCard, FeaturesCard),
    "methods": (WidthCard, MapsCard),
    "rate and costs": (RateCard, CostCard),
}
"""The other cards, by the tab that shows them."""

CARDS: Sequence[type[Card]] = (*PICTURES, *(kind for kinds in TABS.values() for kind in kinds))
"""All cards of a feed, in the order of the page."""

REFRESH_MS = 1000
_TABLE_EVERY = 2  # refreshes after which the table of all feeds is written again

_REMEMBER = """
const url = new URL(window.location)
url.searchParams.set(name, cb_obj.value)
window.history.replaceState(null, "", url)
"""


class Page:
    """What one browser shows.

    Parameters
    ----------
    document : Document
    follower : Follower
    choice : Choice
    """

    def __init__(self, document: Document, follower: Follower, choice: Choice) -> None:
        self._document, self._follower, self._choice = document, follower, choice
        self._refreshes = 0
        self._alert, self._head = markup(visible=False), markup('<p class="empty">Loading …</p>')
        self._root = Column(children=[self._alert, self._head], sizing_mode="stretch_width")
        document.title = choice.title
        document.add_root(self._root)

    def begin(self) -> None:
        """Show the page for the first time, and then each second."""
        self.refresh()
        self._document.add_periodic_callback(self.refresh, REFRESH_MS)

    def refresh(self) -> None:
        """Show what is new."""
        _say(self._alert, notices.lost(self._follower))
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
        views = self._follower.views()
        if not views:
            is_read = self._follower.has_read
            _say(self._head, notices.no_feeds() if is_read else '<p class="empty">Loading …</p>')
            return
        more = self._follower.left_out
        rest = f'<p class="soft">{more:,} more are not followed; name those to show.</p>'
        _say(self._head, table(views, self._choice) + rest * bool(more))


class FeedPage(Page):
    """One feed."""

    def __init__(self, document: Document, follower: Follower, choice: Choice) -> None:
        super().__init__(document, follower, choice)
        self._view = follower.watch(choice.feed)
        self._seen = -1
        if self._view is None:
            return
        document.on_session_destroyed(lambda _: follower.unwatch(choice.feed))
        self._pictures, self._tabs = grid("28rem"), Tabs(list(TABS), choice.tab)
        self._root.children += [self._controls(), self._pictures, *self._tabs.parts]
        # The head is on the screen before the plots are made.
        self._cards: list[Card] = []
        document.on_event(DocumentReady, lambda _: self._make_cards())

    def _make_cards(self) -> None:
        made = {kind: kind(self._choice.axis) for kind in CARDS}
        self._cards, self._seen = list(made.values()), -1
        self.show()
        self._pictures.children = [made[kind].root for kind in PICTURES]
        for name, kinds in TABS.items():
            self._tabs.fill(name, [made[kind].root for kind in kinds])

    def show(self) -> None:
        """Write the head; draw the cards again where anything changed."""
        view = self._view
        if view is None:
            _say(self._head, notices.unknown(self._choice.feed))
            return
        _say(self._head, head(view))
        is_shown = view.is_loaded and not view.problem
        if is_shown:
            self._draw(view)

    def _draw(self, view: FeedView) -> None:
        excerpt = Excerpt.of(view, self._choice)
        is_new = view.version != self._seen
        self._seen = view.version
        for card in self._cards:
            if is_new or card.is_of_samples:
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
            asked = {n: getattr(self._choice, n) for n in ("feed", "range", "axis", "theme", "tab")}
            self._choice = Choice.of(asked | {name: new})
            self._make_cards()

        return take


def head(view: FeedView) -> str:
    """Return the name of a feed, the verdict on it and its main figures as HTML."""
    row = row_of(view)
    figures = (
        ("worker", safe(view.holder) if view.holder else "none"),
        ("rate, entries / s", rate(row.rate)),
        ("lag, entries", whole(row.lag) + "+" * row.lag_is_at_least),
        ("lag, time", seconds(row.behind)),
        ("answered, entries", whole(view.seq)),
        ("learned, examples", whole(view.n)),
        ("guarantee", safe(view.newest.get("guarantee"))),
    )
    drawn = "".join(f"<div><b>{value}</b><span>{name}</span></div>" for name, value in figures)
    return f'<h1>{safe(view.feed, 64)}</h1>{banner(row.verdict)}<div class="figures">{drawn}</div>'


def _say(place: UIElement, text: str) -> None:
    """Set the text of a piece of markup; nothing is sent if it is what is there."""
    if place.text != text:
        place.text = text
    if place.visible != bool(text):
        place.visible = bool(text)


def make_page(document: Document, follower: Follower, choice: Choice) -> None:
    """Fill a new document."""
    kind = FeedPage if choice.feed else FeedsPage
    kind(document, follower, choice).begin()


def refuse(document: Document, most: int) -> None:
    """Say that too many look already."""
    words = f"{most:,} browsers look at this page already: close one of them, and try again."
    document.title = Choice().title
    document.add_root(markup(f'<p class="empty">{words}</p>'))
