"""The model card: facts alone, and text of the feed has no effect as markup."""

import re
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from dashboard_feed import answer
from markdown_it import MarkdownIt

from online_svm.stream.alarm import Alarm
from workers.admin.notes import note
from workers.dashboard.model_card import as_html, as_markdown, model_card
from workers.dashboard.past_run import read_past
from workers.dashboard.reports import parsed
from workers.dashboard.shown_feed import Excerpt, ShownAnswer
from workers.reading.incidents import Incident, RaisedAlarm
from workers.reading.true_labels import Truth

HOSTILE = "<script>alert(1)</script>|`x`\x1b[2J"


def card_of(past):
    """Return the lines of each section of a card, in a form that is read easily."""
    return {
        title: [*(item for each in sections for item in each.items),
                *(list(row) for each in sections for row in each.rows)]
        for title, sections in model_card(past).items()
    }  # fmt: skip


def answers(count=100):
    more = {"classes": ["ham", HOSTILE], "probabilities": [0.8, 0.2]}
    labels = ["ham" if i % 5 else HOSTILE for i in range(count)]
    return [ShownAnswer(b"1-0", answer(1, **more), Truth(True, label)) for label in labels]


def whole():
    scores = {"scored": 1000, "accuracy": 0.8, "probability": 0.79, "log_loss": 0.4, "brier": 0.15}
    test = {"kind": "calibration", "scope": "class", "name": "b", "log_wealth": 1, "threshold": 5,
            "deviation": {"since": 0, "lower": -0.01, "estimate": 0.0, "upper": 0.01}}  # fmt: skip
    report = {
        "n": 1200, "scored": 1000, "features": {HOSTILE: {"kind": "number", "missing": 0.25}},
        "windowed": {"overall": scores, "slices": {"land": [{"value": "DE", "scores": scores}]}},
        "monitors": {"tests": [test]},
        "costs": {"scored": 1000, "mean": 0.4, "by_label": 0.6, "always": {"ham": 0.7},
                  "taken": {"ham": 800}},
    }  # fmt: skip
    alarm = Alarm(440, "calibration", "class", "b", "bets", 5.7, 5.3, 10, action="refit")
    return Excerpt(
        "mail", reports=parsed([(b"1700000000000-0", report)]), answers=answers(),
        alarms=[RaisedAlarm(b"1700000000000-0", 439, alarm)], incidents=[Incident((alarm,), 600)],
        settings={"predictor": {"classes": ["ham", "spam"], "window": None}}, digest="abc of 1200",
    )  # fmt: skip


def test_each_question_of_a_card_has_its_facts():
    card = card_of(whole())
    assert list(card) == [
        "Verdict", "Facts", "How well the rare classes are found",
        "Classes and slices, worst first", "Actions and rules", "Features, those that moved first",
        "Notices, incidents, alarms and events", "Settings",
    ]  # fmt: skip
    facts = dict(card["Facts"])
    assert (
        facts["accuracy"] == ".800 (.774 to .824) right, .790 announced, over the last 1,000 scored"
    )
    assert facts["reports"] == "1 report from 2023-11-14 22:13:20 to 2023-11-14 22:13:20, UTC"
    assert facts["alarms"].startswith(
        "1 alarm in 1 incident; the last began at example 440 until example 600: "
    )
    assert facts["digest"] == "SHA-256 abc of 1200"
    classes = card["How well the rare classes are found"]
    assert [row[1] for row in classes] == ["20 of 100"]
    slices = card["Classes and slices, worst first"]
    assert slices[0][:3] == ["land = DE", "1,000", ".800 (.774 to .824)"]
    assert card["Actions and rules"][0] == ["the actions taken", "–", ".4"]
    assert card["Features, those that moved first"][0][:3] == [HOSTILE, "number", ".250"]
    assert card["Settings"] == ['predictor.classes = ["ham", "spam"]']


def test_the_purpose_is_a_note_that_begins_so(feeds, embedded_url, feed):
    made = feeds(embedded_url, feed)
    made.answer()
    made.report(1)
    assert "purpose" not in dict(card_of(read_past(made.store))["Facts"])
    note(made.store, "purpose: stop fraud", 1, "ann@desk")
    note(made.store, "deployed v2", 1, "ann@desk")
    facts = dict(card_of(read_past(made.store))["Facts"])
    assert facts["purpose"] == "stop fraud"
    assert facts["note"] == "ann@desk at example 1: deployed v2"
    made.delete()


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.seen = set()

    def handle_starttag(self, tag, _attributes):
        self.seen.add(tag)


@pytest.mark.parametrize("past", [whole(), Excerpt("mail")], ids=["whole", "empty"])
def test_text_of_a_feed_is_text_in_both_forms(past):
    sections = model_card(past)
    plain, page = as_markdown("Model card", sections), as_html("Model card", sections)
    tags = Tags()
    tags.feed(page)
    assert "script" not in tags.seen
    rendered = MarkdownIt("commonmark").enable("table").render(plain)
    assert "<script>" not in rendered
    assert "\x1b" not in plain + page
    lines = plain.splitlines()
    columns = [len(re.findall(r"(?<!\\)\|", line)) if line[:1] == "|" else 0 for line in lines]
    for before, after in pairwise(columns):
        assert before == after or 0 in (before, after)  # the rows of a table have its columns
    for title, found in sections.items():
        assert f"## {title}\n" in plain
        assert f"<h2>{title}</h2>" in page
        assert all(section.items or section.rows for section in found)


def test_the_command_writes_both_files(feeds, embedded_url, feed, run_command, tmp_path):
    made = feeds(embedded_url, feed)
    made.answer()
    made.report(1)
    out = tmp_path / "card.html"
    where = (made.name, "--card", "--out", str(out), "--redis", embedded_url)
    code, _, told = run_command("report", *where)
    assert code == 0, told
    assert out.read_text("utf-8").startswith("<!DOCTYPE html>")
    assert out.with_suffix(".md").read_text("utf-8").startswith("# Model card of feed ")
    assert run_command("report", *where)[0] != 0  # they are there
    made.delete()
