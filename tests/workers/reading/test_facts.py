"""The facts of a feed: the same sentences in each outlet; no figure is worded elsewhere."""

import html

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from workers.cli.status import describe
from workers.dashboard.fact_cards import FactsCard
from workers.dashboard.html_report import html_report
from workers.dashboard.model_card import as_markdown, model_card
from workers.dashboard.page import CARDS, PICTURES, TABS
from workers.dashboard.reports import parsed
from workers.dashboard.shown_feed import Choice, Excerpt, ShownFeed
from workers.dashboard.text import safe
from workers.reading.facts import facts
from workers.reading.status import FeedStatus
from workers.reading.verdict import printed
from workers.text import printable

number = st.one_of(st.floats(0, 1), st.integers(0, 5000), st.none(), st.text(max_size=3))
NAMES = (
    "scored", "examples", "accuracy", "lower", "probability", "upper", "z", "log_loss", "brier",
    "miscalibration", "discrimination", "uncertainty", "calibration_error", "frequency",
    "predicted", "label", "mean", "by_label", "wanted",
)  # fmt: skip
shares = st.fixed_dictionaries({}, optional=dict.fromkeys(NAMES, number))
report = st.fixed_dictionaries(
    {"n": st.integers(0, 9000), "scored": st.integers(0, 9000)},
    optional={
        "windowed": st.fixed_dictionaries(
            {},
            optional={
                "overall": shares,
                "classes": st.lists(shares, max_size=3),
                "slices": st.dictionaries(st.text(max_size=3), st.lists(shares, max_size=2)),
            },
        ),
        "headline": st.fixed_dictionaries({"predicted": shares}),
        "costs": shares,
        "budget": shares,
        "sets": st.fixed_dictionaries({"recent_labels": number, "recent_coverage": number}),
        "promise": st.one_of(shares, st.fixed_dictionaries({"holds": st.booleans()})),
        "labels": st.fixed_dictionaries({"counts": shares}),
        "features": st.dictionaries(st.text(max_size=3), st.none()),
        "agreement": st.fixed_dictionaries({"since": shares}),
    },
)


@settings(max_examples=150, deadline=None)
@given(report)
def test_every_outlet_has_the_sentences_of_the_table(message):
    status = FeedStatus(feed="f", report=message, answer={"status": "ok", "guarantee": "exact"})
    found = [(fact.name, fact.sentence) for fact in facts(status)]
    lines = describe(status).splitlines()
    assert all(any(line.endswith(printable(text)) for line in lines) for _, text in found)
    told = orjson.loads(orjson.dumps(printed(status), option=orjson.OPT_NON_STR_KEYS))["facts"]
    assert [(fact["name"], fact["sentence"]) for fact in told] == found
    past = Excerpt("f", reports=parsed([(b"1-0", message)]))
    page = ShownFeed(status)
    page.reports.extend(past.reports)
    found = [pair for pair in found if pair[0] != "guarantee"]  # of an answer
    for excerpt in (past, Excerpt.of(page, Choice())):
        (section,) = FactsCard.sections(excerpt)
        assert [tuple(row) for row in section.rows][: len(found)] == found
        assert {"Facts": [section]}.items() <= model_card(excerpt).items()


def test_report_and_card_show_the_facts_and_every_card_of_the_page():
    overall = {"scored": 400, "accuracy": 0.8, "probability": 0.79, "lower": 0.7, "upper": 0.9}
    message = {"n": 500, "scored": 400, "windowed": {"overall": overall}}
    past = Excerpt("f", reports=parsed([(b"1-0", message)]))
    page, card = html_report(past), as_markdown("f", model_card(past))
    assert past.facts()
    for fact in past.facts():
        assert html.escape(safe(fact.sentence, 800)) in page  # once more, as JSON in a script
        assert fact.sentence in card
    assert set(CARDS) == {*PICTURES, *(kind for kinds in TABS.values() for kind in kinds)}
    for kind in CARDS:
        assert (f"h2&gt;{kind.title} " in page) is (not kind.is_of_flow)
