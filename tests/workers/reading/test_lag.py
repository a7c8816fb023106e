"""The lag of a feed is measured in one place, and everybody shows it."""

import time

import pytest
from monitored_feed import Watched

from online_svm.config import PredictorConfig
from workers.broker.connection import client
from workers.broker.store import Store
from workers.config.settings import Limits
from workers.dashboard.feed_follower import FeedFollower
from workers.errors import StateLost
from workers.feed.pinned_config import pinned_config
from workers.feed.position import LAST_ID
from workers.reading.lag import MAX_COUNTED, Lag, lag, lags
from workers.reading.status import read_status

AGO = 300.0
"""Seconds for which the oldest entry waits."""


def add(store, count, first=0):
    """Append entries, the one of number 0 so many seconds ago."""
    began = int((time.time() - AGO) * 1000)
    rows = [(b"%d-%d" % (began, first + i + 1), [b"x", b"[1]"]) for i in range(count)]
    store.append(store.keys.input, rows)
    return [row[0] for row in rows]


def answered(store, ids, count):
    """Have the first entries answered, as a commit says so."""
    store.call("HSET", store.keys.state, "cursor", ids[count - 1], "seq", count)


def begin(store):
    store.fence("test", pinned_config(PredictorConfig(), Limits()))


def shown(url, feed):
    """Return the lag that status, the metrics and the page show."""
    with Store(url, feed) as store:
        told = read_status(store)
        metrics, page = Watched(store), FeedFollower(url, feed)
        page.update()
        seen, held = (metrics("lag_entries"), metrics("lag_seconds")), page.shown.status
        for opened in (metrics, page):
            opened.close()
    return [(told.waiting, told.waiting_seconds), seen, (held.waiting, held.waiting_seconds)]


@pytest.mark.parametrize(("has_begun", "count", "done", "trimmed"), [
    (True, 7, 0, 0), (True, 7, 3, 0), (True, 7, 3, 3), (True, 7, 7, 2), (False, 5, 0, 0),
])  # fmt: skip
def test_status_metrics_and_page_show_the_same_lag(store, has_begun, count, done, trimmed):
    if has_begun:
        begin(store)
    ids = add(store, count)
    if done:
        answered(store, ids, done)
    if trimmed:
        store.call("XTRIM", store.keys.input, "MAXLEN", count - trimmed)
    found = shown(store.url, store.keys.feed)
    assert [entries for entries, _ in found] == [count - done] * 3
    age = AGO if count > done else 0.0
    assert all(age <= seconds < age + 30 * (age > 0) + 1 for _, seconds in found)


def test_a_feed_at_the_last_id_has_no_lag(store):
    begin(store)
    last = LAST_ID.decode()
    store.call("XADD", store.keys.input, last, "x", "[1]")
    store.call("HSET", store.keys.state, "cursor", last, "seq", 1)
    with Store(store.url, f"{store.keys.feed}-other") as other:
        add(other, 2)
        found = lags([store, other])
    assert {feed: each.entries for feed, each in found.items()} == {
        store.keys.feed: 0,
        other.keys.feed: 2,
    }


def test_more_than_is_counted_is_exact_unless_the_stream_also_holds_what_is_answered(store):
    begin(store)
    ids = add(store, MAX_COUNTED + 50)
    assert lag(store)[:2] == (MAX_COUNTED + 50, False)
    answered(store, ids, 10)
    counts = int(store.server()["redis_version"].split(".")[0]) >= 7
    assert lag(store)[:2] == ((MAX_COUNTED + 40, False) if counts else (MAX_COUNTED, True))
    assert {entries for entries, _ in shown(store.url, store.keys.feed)} == {lag(store).entries}


def test_who_may_not_ask_about_streams_counts_what_waits(store):
    begin(store)
    answered(store, add(store, 9), 4)
    with client(store.url) as admin:
        admin.execute_command(
            "ACL", "SETUSER", "reader", "reset", "on", ">pw", "~*", "+@all", "-xinfo"
        )
        try:
            with Store(store.url.replace("unix://", "unix://reader:pw@"), store.keys.feed) as found:
                assert lag(found)[:2] == (5, False)
        finally:
            admin.execute_command("ACL", "DELUSER", "reader")


def test_a_damaged_feed_is_named_alone_and_left_out_among_others(store):
    with Store(store.url, f"{store.keys.feed}-whole") as whole:
        add(whole, 2)
        begin(store)
        add(store, 2)
        for field, value in (("cursor", "soon"), ("seq", "-1"), ("gone", "1")):
            before = store.call("HGET", store.keys.state, field)
            store.call("HSET", store.keys.state, field, value)
            with pytest.raises(StateLost, match=f"{store.keys.feed}}}:st is damaged"):
                lag(store)
            assert list(lags([store, whole])) == [whole.keys.feed]
            store.call("HSET", store.keys.state, field, before or "- 0-0")
        store.call("DEL", store.keys.input)
        store.call("SET", store.keys.input, "x")
        assert list(lags([store, whole])) == [whole.keys.feed]
        whole.call("DEL", whole.keys.input)
        assert lag(whole) == Lag(0, False, 0.0)
