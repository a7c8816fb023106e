"""Labels that do not come are seen at once, though no report comes without them."""

import time

import orjson
import pytest
from monitored_feed import Watched, working
from session_steps import advance

from workers.broker.store import Store
from workers.cli.status import describe
from workers.dashboard.fact_cards import FactsCard
from workers.dashboard.feed_follower import FeedFollower
from workers.dashboard.shown_feed import Choice, Excerpt
from workers.errors import StateLost
from workers.feed.state_fields import PENDING
from workers.reading.label_facts import pending_text
from workers.reading.lag import lag
from workers.reading.status import read_status
from workers.session.telemetry import Telemetry

AGO = 7500.0
"""Seconds since the first example came."""

NAMES = ("pending_examples", "pending_labels", "pending_label_seconds")


def add(store, count, began, step=1):
    """Append examples without labels, `step` milliseconds apart."""
    rows = [
        (b"%d-0" % (began + step * i), [b"x", b"[%d]" % (i % 7), b"id", b"%d" % i])
        for i in range(count)
    ]
    store.append(store.keys.input, rows)


def work(store, upto):
    with working(store, Telemetry(), horizon=10_000) as session:
        while session.position.seq < upto:
            advance(session)
            session.finish_commit()
        session.snapshot()


def of_metrics(store):
    """Return the metrics of a worker."""
    found = Watched(store)
    figures = [found(name) for name in NAMES]
    found.close()
    return figures


def on_the_page(url, feed):
    """Return the facts on the page."""
    follower = FeedFollower(url, feed)
    follower.update()
    follower.close()
    (section,) = FactsCard.sections(Excerpt.of(follower.shown, Choice()))
    return dict(section.rows)


def test_nine_hundred_answers_without_a_label_show_everywhere_though_no_label_ever_came(store):
    began = int((time.time() - AGO) * 1000)
    add(store, 900, began, step=8000)
    work(store, 900)
    assert store.length(store.keys.met) == 0
    url, feed = store.url, store.keys.feed
    age = 899 * 8
    pending = {"pending": 900, "unlabelled": 900, "ahead_now": 0, "seconds": age}
    assert read_status(store).pending == pending
    text = "900 examples wait for a label, the oldest for 1 h 59 min"
    assert f"labels     {text}" in describe(read_status(store))
    told = of_metrics(store)
    assert told == [900, 900, age]
    assert on_the_page(url, feed)["labels"] == text


def test_pending_labels_are_counted_across_a_restart(store):
    began = int((time.time() - AGO) * 1000)
    add(store, 30, began)
    work(store, 30)
    for i in (0, 1, 2, 5):
        store.call("XADD", store.keys.input, "*", "for", str(i), "y", "a")
    store.call("XADD", store.keys.input, "*", "for", "5", "y", "a")  # once more
    work(store, 35)
    assert lag(store).labels[:] == (30, 26, 0, 26, 5)
    assert "answered   35 entries (5 labels among them), 0 learned" in describe(read_status(store))
    assert "30 examples wait, 26 of them without a label" in describe(read_status(store))


def test_without_missing_labels_or_a_horizon_nothing_has_an_age(store):
    store.call("XADD", store.keys.input, "1-0", "x", "[1]", "y", "a")
    work(store, 1)
    assert lag(store).labels[:] == (1, 0, 0, None, 0)
    assert of_metrics(store) == [1, 0, 0]
    assert pending_text(read_status(store).pending) == "1 example waits, 0 of them without a label"
    with Store(store.url, f"{store.keys.feed}-at-once") as other:
        other.call("XADD", other.keys.input, "1-0", "x", "[1]", "y", "a")
        with working(other, Telemetry()) as session:
            advance(session)
            session.finish_commit()
        assert read_status(other).pending is None
        assert of_metrics(other) == [None] * 3


def test_a_newer_count_stands_in_the_place_of_the_older_one_of_the_report(store):
    counts = {"pending": 0, "unlabelled": 0, "late": 12}
    report = {
        "n": 12,
        "scored": 12,
        "headline": {"predicted": {"accuracy": None}},
        "labels": {"counts": counts, "accuracy": None, "brier": None},
    }
    add(store, 5, int(time.time() * 1000))
    work(store, 5)
    store.call("XADD", store.keys.met, "*", "p", orjson.dumps(report))
    told = describe(read_status(store))
    assert "5 examples wait for a label" in told
    assert "12 came late" in told


@pytest.mark.parametrize(
    "text", ["", "1 2 3", "a b 0 - 0", "1 1 0 x 0", "1 1 1 1 x", "1 1 1 1 1 1"]
)
def test_a_damaged_count_is_named(store, text):
    add(store, 1, 1)
    work(store, 1)
    store.call("HSET", store.keys.state, PENDING, text)
    with pytest.raises(StateLost, match="st is damaged"):
        lag(store)
