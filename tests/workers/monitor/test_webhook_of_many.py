"""One webhook posts the alarms of many feeds: in fair turns, each feed with its own place."""

import json
import time
from contextlib import closing
from dataclasses import asdict

import pytest
from alarm_receiver import alarm, pending, posting, raise_alarms, receiving
from drifting import CHEAP_FEED, inverted
from many_feeds import has_answered, running, settings
from structlog.testing import capture_logs
from world import push, wait_until

from workers.broker.connection import Connection
from workers.broker.store import Store
from workers.config.settings import WorkerSettings
from workers.monitor.delivery_queue import AlarmQueue
from workers.monitor.watch import WorkerWatch
from workers.monitor.webhook import Webhooks
from workers.monitor.webhook_post import Receiver
from workers.reading.answers import message
from workers.reading.incidents import ReportedOpenAlarms, known_alarms, timeline
from workers.stop import Stop

FOR_EVER = 3600.0
"""Seconds between two looks: what is posted then was told of."""


pytestmark = pytest.mark.servers("embedded")  # where servers differ, a test names others


@pytest.fixture
def feeds(redis_url, feed):
    """Make stores of feeds that were answered before, without alarms."""
    stores = []

    def make(*suffixes):
        made = [Store(redis_url, f"{feed}-{suffix}", block_ms=20) for suffix in suffixes]
        for store in made:
            store.call("HSET", store.keys.state, "cursor", "1-0")
        stores.extend(made)
        return made

    yield make
    for store in stores:
        store.close()


def begun(webhook, *stores):
    """Let a webhook deliver the alarms of feeds."""
    added = [webhook.add(store.keys.feed) for store in stores]
    for one in added:
        one.on_started(b"1-0")
    return added


def test_a_feed_with_many_alarms_does_not_hold_up_another(feeds, redis_url):
    busy, quiet = feeds("busy", "quiet")
    raise_alarms(busy, 50, first=2, together=4)
    raise_alarms(quiet, 3, first=2)
    with receiving() as received, posting(redis_url, received, look=FOR_EVER) as webhook:
        received.blocks.clear()  # the first post ends once both feeds are there
        begun(webhook, busy, quiet)
        received.blocks.set()
        received.wait(53)
        wait_until(lambda: pending(busy) == pending(quiet) == 0)
    of_quiet = [i for i, key in enumerate(received.keys) if key.startswith(quiet.keys.feed)]
    assert of_quiet[-1] < 12, "the feeds take turns, an alarm each"
    of_busy = [key for key in received.keys if key.startswith(busy.keys.feed)]
    assert of_busy == [f"{busy.keys.feed}/{i}-0/began" for i in range(2, 52)]


def test_a_feed_whose_alarms_are_not_taken_does_not_hold_up_another(feeds, redis_url):
    refused, taken = feeds("refused", "taken")
    raise_alarms(refused, 2, first=2, together=2)
    raise_alarms(taken, 5, first=2)
    with receiving() as received, posting(redis_url, received, look=FOR_EVER) as webhook:
        received.refused = {refused.keys.feed}
        bad, good = begun(webhook, refused, taken)
        wait_until(lambda: good.delivered == 5 and bad.failures["status 500"] >= 3)
        assert bad.delivered == 0
        of_taken = {f"{taken.keys.feed}/{i}-0/began" for i in range(2, 7)}
        first = f"{refused.keys.feed}/2-0/began"
        assert set(received.keys) == {first} | of_taken, "within a feed the order is kept"
        received.refused = set()
        wait_until(lambda: bad.delivered == 2)


def test_an_end_is_posted_at_once_whatever_was_reported_before(feeds, redis_url):
    """The alarm came after a report without any, and before the one that lists it."""
    (store,) = feeds("a")
    report(store, "9-1", 9)
    with receiving() as received, posting(redis_url, received, look=FOR_EVER) as webhook:
        (alarms,) = begun(webhook, store)
        raise_alarms(store, 1, first=10, closed=False)
        alarms.raised()
        received.wait(1)
        wait_until(lambda: pending(store) == 0)
        time.sleep(0.1)  # the turn after it has looked for reports
        report(store, "10-1", 110, alarm(100))
        alarms.reported()
        time.sleep(0.1)
        report(store, "11-1", 120)
        alarms.reported()
        assert received.wait(2)[-1]["what"] == "ended"


def report(store, at, n, *alarms):
    said = {"n": n, "monitors": {"open": [asdict(one) for one in alarms]}}
    store.call("XADD", store.keys.met, at, "p", json.dumps(said))


def test_a_removed_feed_resumes_after_its_last_delivered_alarm(feeds, redis_url):
    store, other = feeds("a", "b")
    with receiving() as received, posting(redis_url, received) as webhook:
        alarms, others = begun(webhook, store, other)
        raise_alarms(store, 1, first=2)
        wait_until(lambda: alarms.delivered == 1 and not pending(store))
        webhook.remove(alarms)
        raise_alarms(store, 2, first=3)
        raise_alarms(other, 1, first=2)
        wait_until(lambda: others.delivered == 1)
        time.sleep(0.1)
        assert alarms.delivered == 1
        begun(webhook, store)
        received.wait(4)
    of_store = [key for key in received.keys if key.startswith(store.keys.feed)]
    assert of_store == [f"{store.keys.feed}/{i}-0/began" for i in (2, 3, 4)]


def test_a_feed_that_was_taken_over_is_no_longer_posted(feeds, redis_url):
    (store,) = feeds("a")
    raise_alarms(store, 1, first=2)
    with receiving() as received, posting(redis_url, received) as webhook:
        received.status = 500
        (alarms,) = begun(webhook, store)
        received.wait(1)
        alarms.on_stopped()
        seen = len(received.requests)
        time.sleep(0.4)  # several pauses between attempts
        assert len(received.requests) <= seen + 1, "one may have been on its way"
        assert pending(store) == 1, "it is left to whoever has the feed now"


def test_a_fault_at_one_feed_is_named_and_leaves_the_others_their_alarms(
    feeds, redis_url, monkeypatch
):
    broken, sound = feeds("broken", "sound")
    deliver = Receiver.post

    def post(self, sent):
        if sent.key.startswith(broken.keys.feed):
            raise ZeroDivisionError
        deliver(self, sent)

    monkeypatch.setattr(Receiver, "post", post)
    for store in (broken, sound):
        raise_alarms(store, 3, first=2)
    with capture_logs() as logs, receiving() as received, posting(redis_url, received) as webhook:
        begun(webhook, broken, sound)
        assert {message["feed"] for message in received.wait(3)} == {sound.keys.feed}
        wait_until(lambda: any(log.get("reason") == "ZeroDivisionError" for log in logs))


def taken(queue):
    """Acknowledge all that a queue has; return the IDs, and the lost entries so far."""
    found = []
    while entry := queue.next():
        found.append(entry[0])
        queue.done(entry)
    return found, queue.lost


@pytest.mark.servers("embedded", "system")
def test_alarms_that_were_trimmed_unread_are_counted_once(feeds, redis_url):
    (store,) = feeds("a")

    def trim(kept):
        store.call("XTRIM", store.keys.alarms, "MAXLEN", kept)

    with closing(Connection(redis_url, Stop())) as connection:
        queue, later = (AlarmQueue(connection, store.keys) for _ in range(2))
        assert taken(queue) == ([], 0)
        raise_alarms(store, 6, first=2)
        trim(2)
        assert taken(queue) == ([b"6-0", b"7-0"], 4)
        trim(1)  # these were delivered
        raise_alarms(store, 8, first=10)
        read = queue.next()
        trim(3)  # one is read, four are not
        queue.done(read)
        assert taken(queue) == ([b"15-0", b"16-0", b"17-0"], 8)
        raise_alarms(store, 3, first=20)
        trim(0)
        assert taken(later) == ([], 3), "by the next process"
        raise_alarms(store, 1, first=30)
        assert taken(queue) == ([b"30-0"], 8)


def test_feeds_whose_settings_name_other_receivers_do_not_wait_for_one_another(feeds, redis_url):
    slow, fast, silent = feeds("slow", "fast", "silent")
    for store in (slow, fast, silent):
        raise_alarms(store, 2, first=2)
    webhooks = Webhooks(redis_url)
    with receiving() as stuck, receiving() as free:
        stuck.blocks.clear()
        wanted = [
            webhooks.add(slow.keys.feed, WorkerSettings(alarm_url=stuck.url)),
            webhooks.add(fast.keys.feed, WorkerSettings(alarm_url=free.url)),
        ]
        assert webhooks.add(silent.keys.feed, WorkerSettings()) is None
        for one in wanted:
            one.on_started(b"1-0")
        free.wait(2)
        stuck.wait(1)
        assert wanted[0].delivered == 0
        webhooks.close()


def test_a_key_that_went_away_after_the_start_is_told_and_stops_no_feed(redis_url, tmp_path):
    gone = WorkerSettings(alarm_url="http://127.0.0.1:1/", alarm_secret_file=tmp_path / "gone")
    assert Webhooks(redis_url).add("a", gone) is None


def test_a_process_of_many_feeds_posts_the_alarms_that_its_feeds_raise(redis_url, feed):
    stores = [Store(redis_url, f"{feed}-{name}", block_ms=20) for name in "ab"]
    X, y = inverted(600, 400, 600)
    given = [("x", str(x.tolist()), "y", label) for x, label in zip(X, y, strict=True)]
    for store in stores:
        store.register()
        push(store, given)
    with receiving() as received:
        webhooks = Webhooks(redis_url)
        watch = WorkerWatch(webhooks=webhooks)
        cheap = settings(**CHEAP_FEED, alarm_url=received.url)
        with running([f"{feed}-*"], redis_url, settings=cheap, watch=watch):
            wait_until(lambda: all(has_answered(store, 600) for store in stores))
            raised = [store.length(store.keys.alarms) for store in stores]
            assert min(raised) > 0, "the inverted labels were to raise alarms"
            wait_until(lambda: all(posted(store, received) == told_of(store) for store in stores))
        webhooks.close()
    for store in stores:
        store.close()


def told_of(store):
    """Return the IDs of the deliveries: the timeline of all alarms and reports."""
    alarms, reports = (
        [(entry[0], message(entry)) for entry in store.call("XRANGE", stream, "-", "+")]
        for stream in (store.keys.alarms, store.keys.met)
    )
    marks = [ReportedOpenAlarms.of(*report) for report in reports]
    events = timeline(known_alarms(alarms), marks)
    return {one.entry.decode() for one in events if one.step != "went_on"}


def posted(store, received):
    found = (key for key in received.keys if key.startswith(f"{store.keys.feed}/"))
    return {key.split("/")[1] for key in found}
