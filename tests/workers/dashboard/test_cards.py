"""The cards of a feed: what they draw of a report, and what they say where there is nothing."""

import math
import re
from dataclasses import replace
from itertools import cycle

import numpy as np
import pytest
from bokeh.models import Div

from online_svm.stream.alarm import Alarm
from workers.dashboard.answer_cards import (
    MIN_COMPARED,
    MIN_LABELLED,
    AnswersCard,
    FeaturesCard,
    ReliabilityCard,
)
from workers.dashboard.curve_cards import MAX_PANELS, AccuracyCard, MapsCard
from workers.dashboard.feeds_table import table
from workers.dashboard.handlers import rendered
from workers.dashboard.monitor_cards import AlarmsCard, DeviationCard, EvidenceCard
from workers.dashboard.page import CARDS
from workers.dashboard.reports import parsed, recent
from workers.dashboard.shown_feed import (
    MAX_FEATURES,
    MAX_POINTS,
    Choice,
    Excerpt,
    FlowPoint,
    ShownAnswer,
    ShownFeed,
    bounded,
    thinned,
    within,
)
from workers.dashboard.text import banner, marked
from workers.reading.events import Event, known_events
from workers.reading.facts import parts
from workers.reading.incidents import RaisedAlarm
from workers.reading.status import FeedStatus
from workers.reading.true_labels import Truth
from workers.reading.verdict import Verdict

HOSTILE = "<script>alert(1)</script>"


def reports(count=3, **more):
    own = {"accuracy": 0.8, "lower": 0.7, "probability": 0.8, "upper": 0.9}
    method = {"predicted": own, "log_loss": 0.4, "brier": 0.2}
    both = {"headline": method, "venn": method, "maps": {"platt": method}}
    messages = [{"n": 100 * i, "scored": 100 * i, **both, **more} for i in range(1, count + 1)]
    return parsed((b"%d-0" % (1000 * m["n"]), m) for m in messages)


def shown(card, excerpt):
    """Return all text of a card after it was drawn."""
    card.refresh(excerpt)
    return " ".join(part.text for part in card.root.children if isinstance(part, Div))


def answers(count, hit=True):
    figures = {"probability": 0.75, "lower": 0.7, "upper": 1}
    message = {"status": "ok", "seq": 1, "label": "a"} | figures
    return [ShownAnswer(b"%d-0" % i, message, Truth(True, "a", hit)) for i in range(count)]


def alarm(n, name="b", entry=None):
    found = Alarm(n, "calibration", "class", name, "bets", 5.7, 5.3, 10, 0.06, 0.03, 0.09, 0.5)
    return RaisedAlarm(entry or b"%d-0" % (1000 * n), n - 1, found)


@pytest.mark.parametrize("kind", CARDS)
def test_every_card_says_what_is_missing_before_a_feed_has_anything(kind):
    card = kind("n")
    text = shown(card, Excerpt("mail"))
    assert 'class="empty"' in text
    assert card.words.endswith(".")
    assert f"help#{card.section}" in text

    assert card.section in re.findall(r'id="([^"]+)"', rendered())  # of the documentation


@pytest.mark.parametrize("kind", CARDS)
def test_no_card_fails_on_reports_whose_members_are_of_another_kind(kind):
    odds = (3, "text", [], {}, [[]], {"tests": [3, {"kind": 1}], "overall": 2}, None)
    for axis, odd in zip(cycle(("n", "time")), odds, strict=False):
        given = reports(windowed=odd, monitors=odd, labels=odd)
        kind(axis).refresh(Excerpt("mail", axis, given, answers(3), [FlowPoint(1, 1, 1, 0)]))


def test_a_window_of_the_report_comes_before_one_that_is_computed_here():
    given = reports(windowed={"overall": {"accuracy": 0.5, "probability": 0.75}})
    assert recent(given)[:, 0].tolist() == [0.5] * 3
    assert recent(reports())[:, 0] == pytest.approx([0.8] * 3)


def test_the_alarms_are_marked_where_they_were_raised():
    for axis, place in (("n", 250), ("time", 250_000.0)):
        card = AccuracyCard(axis)
        card.refresh(Excerpt("mail", axis, reports(), alarms=[alarm(250), alarm(250)]))
        assert card._alarms.data["x"] == [place]


def test_notes_are_marked_at_their_example_with_their_text_and_nothing_else_is():
    said = {"code": "note", "writer": "ann@desk", "detail": "deployed v2 " + "x" * 60, "n": 250}
    odd = [{"code": "note", "detail": "no n"}, {"code": "began", "n": 7}, {"code": "note", "n": ""}]
    events = known_events((b"99-0", one) for one in (*odd, said))
    for axis, place in (("n", 250), ("time", 99)):
        card = AccuracyCard(axis)
        card.refresh(Excerpt("mail", axis, reports(), events=events))
        assert card._notes.data == {"x": [place], "text": ["deployed v2 " + "x" * 19 + "…"]}
    text = shown(AlarmsCard(), Excerpt("mail", events=events))
    assert f"example 250: {said['detail']}" in text


def test_a_range_leaves_out_the_notes_before_it():
    shown = ShownFeed(FeedStatus(feed="mail"))
    shown.reports.extend(reports(30))
    said = [{"code": "note", "detail": "-", "n": n} for n in (900, 2500)] + [{"code": "began"}]
    shown.events.extend(known_events((b"99-0", one) for one in said))
    cut = Excerpt.of(shown, Choice(range="1000"))
    assert cut.notes()["x"] == [2500]
    assert [event.code for event in cut.events] == ["note", "began"]
    assert Excerpt.of(shown, Choice()).notes()["x"] == [900, 2500]


def test_the_evidence_is_drawn_against_the_threshold():
    def test(kind, scope, wealth):
        return {"kind": kind, "scope": scope, "log_wealth": wealth, "threshold": 5.0}

    tests = [
        test("calibration", "overall", 1.0), test("calibration", "class", 4.0),
        test("exchangeability", "scores", 2.0),
    ]  # fmt: skip
    card = EvidenceCard("n")
    card.refresh(Excerpt("mail", "n", reports(1, monitors={"tests": tests})))
    drawn = {name: values[0] for name, values in card._source.data.items()}
    assert drawn == {"x": 100, "overall": -4.0, "calibration": -1.0, "exchangeability": -3.0}


def test_the_part_that_is_off_most_comes_first_in_the_table_of_deviations():
    def test(scope, name, estimate):
        off = {"since": 5, "estimate": estimate, "lower": estimate - 0.1, "upper": estimate + 0.1}
        return {
            "kind": "calibration", "scope": scope, "name": name, "log_wealth": 0.0,
            "threshold": 5.0, "deviation": off,
        }  # fmt: skip

    tests = [test("overall", None, 0.0), test("class", "a", -0.3), test("class", "b", 0.2)]
    text = shown(DeviationCard("n"), Excerpt("mail", "n", reports(1, monitors={"tests": tests})))
    assert text.index("class a") < text.index("class b") < text.index("overall</td>")
    assert "-0.400 to -0.200" in text


def test_classes_and_slices_come_the_worst_first():
    country = [SLICE | {"value": "fr"}, {"value": None, "scores": {}}]
    windowed = {"classes": [PART | {"label": "a"}], "slices": {"country": country}}
    found = [part.name for part in parts(reports(1, windowed=windowed)[0].message)]
    assert found == ["country = fr", "class a", "country: all other values"]


def test_the_diagram_shows_the_bins_of_the_report_and_else_those_of_the_answers():
    one = {"count": 5, "probability": 0.5, "frequency": 0.4, "lower": 0.2, "upper": 0.8}
    card = ReliabilityCard()
    card.refresh(
        Excerpt("f", "n", reports(1, windowed={"reliability": [one]}), answers(MIN_LABELLED))
    )
    assert {name: values[0] for name, values in card._source.data.items()} == one
    card.refresh(Excerpt("f", "n", reports(1), answers(MIN_LABELLED)))
    assert card._source.data["count"] == [MIN_LABELLED]
    assert card._source.data["frequency"] == [1.0]
    assert "fewer than 50" in shown(card, Excerpt("f", "n", reports(1), answers(MIN_LABELLED - 1)))


def test_ten_thousand_alarms_are_ten_lines():
    text = shown(AlarmsCard(), Excerpt("f", alarms=[alarm(n) for n in range(10_000)]))
    assert text.count("<tr>") == 11
    assert "9,990 older alarms are kept" in text
    assert "announced 50 of 100, true were 56 (53 to 59)" in shown(
        AlarmsCard(), Excerpt("f", alarms=[alarm(7)])
    )


def test_an_alarm_has_the_time_of_its_entry_and_that_of_its_commit():
    alarms = [alarm(7, entry=b"1-0"), alarm(8, entry=b"2-0")]
    text = shown(AlarmsCard(), Excerpt("f", alarms=alarms, committed={b"2-0": 1_700_000_000_000}))
    assert text.count("1970-01-01 00:00:00") == 2
    assert text.count("2023-11-14 22:13:20") == 1


def test_an_answer_is_right_wrong_or_not_known_yet_in_words():
    kept = [*answers(1), *answers(1, hit=False), answers(1)[0]._replace(truth=Truth())]
    text = shown(AnswersCard(), Excerpt("f", answers=kept))
    for words in ("✓ right", "✗ wrong", "not known"):
        assert text.count(words) == 1


def hostile():
    """Return what a feed holds whose every text is hostile, and its numbers odd."""
    own = {"scope": "class", "name": HOSTILE, "log_wealth": 9.0, "threshold": 5.0, "kind": HOSTILE}
    tests = [own | {"kind": "calibration", "deviation": DEVIATION}, own]
    windowed = {"classes": [PART | {"label": HOSTILE}], "slices": {HOSTILE: [SLICE, PART]}}
    odd = [{"status": "ok", "label": HOSTILE, "probability": math.inf}, {"status": [HOSTILE]}, {}]
    truth = Truth(True, HOSTILE, True, {HOSTILE: 1.0})
    given = [one._replace(truth=truth) for one in answers(MIN_COMPARED)]
    return Excerpt(
        HOSTILE, "n", reports(2, monitors={"tests": tests}, windowed=windowed, maps={HOSTILE: {}}),
        [*given, *(ShownAnswer(b"1-0", message, truth) for message in odd)],
        alarms=[alarm(7, HOSTILE)], events=[Event(1000.0, kind, HOSTILE, HOSTILE) for kind in
                                            ("began", "note", "failed")],
    )  # fmt: skip


DEVIATION = {"since": 5, "estimate": -0.3, "lower": -0.4, "upper": -0.2}
PART = {"examples": 3, "frequency": 0.1, "probability": 0.2, "z": 1.0}
SCORES = {"scored": 9, "accuracy": 0.5, "probability": 0.9, "z": -4.0}
SLICE = {"value": HOSTILE, "scores": SCORES}


@pytest.mark.parametrize("kind", CARDS)
def test_no_card_shows_hostile_text_as_anything_but_text(kind):
    assert HOSTILE not in shown(kind("n"), hostile())


@pytest.mark.parametrize("drawn", [banner, marked])
def test_the_verdict_is_text(drawn):
    text = drawn(Verdict("bad", HOSTILE, HOSTILE))
    assert (HOSTILE in text, "&lt;script&gt;" in text) == (False, True)


def test_a_report_with_thousands_of_maps_is_drawn_in_a_few_panels():
    given = reports(1)
    given[0].methods.update({f"map {i}": (0.5,) * 6 for i in range(5000)})
    card = MapsCard()
    card.refresh(Excerpt("f", "n", given))
    assert len(card._grid.children) == MAX_PANELS


def test_a_range_ends_at_the_newest_report():
    given = reports(100)
    assert [r.n for r in within(given, "1000")] == list(range(9100, 10_001, 100))
    assert [r.n for r in within(given, "1h")] == list(range(6400, 10_001, 100))
    assert within(given, "all") == given
    shown = ShownFeed(FeedStatus(feed="f"))
    shown.reports.extend(given)
    shown.alarms.extend([alarm(50), alarm(9500)])
    assert [a.alarm.n for a in Excerpt.of(shown, Choice(range="1000")).alarms] == [9500]


def test_a_curve_has_no_more_points_than_can_be_seen_and_keeps_the_newest():
    chosen = thinned(2000)
    assert len(chosen) == MAX_POINTS
    assert (chosen[0], chosen[-1]) == (0, 1999)


def test_the_feature_that_moved_most_comes_first():
    def text_of(features):
        given = [answers(1)[0]._replace(truth=Truth(True, "a", True, each)) for each in features]
        return shown(FeaturesCard(), Excerpt("f", answers=given))

    values = np.random.default_rng(0).normal(size=(MIN_COMPARED, 2))
    values[MIN_COMPARED // 2 :, 1] += 3.0
    text = text_of([{"quiet": row[0], "moved": row[1]} for row in values.tolist()])
    assert text.index("moved") < text.index("quiet")
    assert text.count("<tr>") == text_of(values.tolist()).count("<tr>")
    odd = [[1.0, "x", None][: i % 4] for i in range(MIN_COMPARED)]
    assert "Fewer than 100" in text_of(odd)
    wide = Truth(True, features=[0.0] * (MAX_FEATURES + 1))
    assert bounded(wide).features is None


def test_the_table_is_sorted_as_asked_and_a_column_that_is_none_changes_nothing():
    shown = [
        ShownFeed(FeedStatus(feed=name, now=1.0, has_begun=False, n=n))
        for name, n in (("a", 1), ("b", 9), ("c", 5))
    ]

    def order(sort):
        return re.findall(r">([abc])</a>", table(shown, Choice(sort=sort)))

    assert order("learned") == ["b", "c", "a"]
    assert order("feed") == ["a", "b", "c"]
    shown[1].fail("it is damaged")
    shown[2].status = replace(shown[2].status, exists=False)
    assert order("verdict") == order("<script>") == ["b", "a", "c"]  # the worst first
    assert "<h1>0 of 3 feeds well, 2 not, 1 to be seen</h1>" in table(shown, Choice())
