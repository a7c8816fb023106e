"""A notice is posted if asked; one that is silenced is shown with its note, until it ends."""

import json
from collections import Counter

import orjson
import pytest
from alarm_receiver import cursor, delivering, pending, posting, raise_alarms, receiving
from drifting import CHEAP_FEED, inverted
from world import World, wait_until

from workers.admin.notes import silence, silence_notice
from workers.dashboard.past_run import read_past
from workers.errors import BadConfiguration
from workers.monitor.delivery_queue import NoticeChanges
from workers.reading.facts import facts
from workers.reading.status import FeedStatus, read_many, with_outputs

pytestmark = pytest.mark.servers("embedded")  # where servers differ, a test asks for both

CODE = "feature:1:risen"
MOVED = {"since": 400, "feature": 1, "direction": "risen", "rank": 0.93}
OFF = {
    "n": 430, "scope": "class", "name": "b", "direction": "low", "since": 90, "examples": 90,
    "announced": 0.02, "happened": 0.05, "lower": 0.04, "upper": 0.061,
}  # fmt: skip


@pytest.fixture
def begun(store):
    """A feed that was answered before, without reports."""
    store.call("HSET", store.keys.state, "cursor", "2-0", "n", 40)
    store.call("XADD", store.keys.input, "1-0", "x", "[1]")
    return store


def report(store, n, *features, notices=()):
    monitors = {"alarms": 0, "open": [], "notices": notices, "features": features, "tests": []}
    payload = {"n": n, "scored": n, "monitors": monitors}
    store.call("XADD", store.keys.met, f"{n}-1", "p", json.dumps(payload))


def told(received):
    return [(m["what"], m["entry"], m["notice"]["code"]) for m in received.messages]


def test_a_worker_posts_a_notice_that_is_not_silenced_and_one_that_begins_anew(
    embedded_url, feed, run_command
):
    """Feature 1 moves at rows 400 and 1,000; between the two its notice is silenced, and ends."""
    X, y = inverted(1100, 1100, 1100)
    X[400:430, 1] += 3.0
    X[1000:1022, 1] += 3.0
    rows = [["x", str(x.tolist()), "y", str(label)] for x, label in zip(X, y, strict=True)]
    settings = CHEAP_FEED | {"metrics_every": 10}
    with receiving() as received, World(embedded_url, feed, run_command, **settings) as world:
        world.worker("--alarm-url", received.url, "--alarm-notices")
        world.wait_for(world.push(rows[:440]))
        (began,) = posted(received, 1)
        assert (began["what"], began["notice"]["code"]) == ("notice_began", CODE)
        assert began["verdict"]["sentence"] == f"Take care: {began['notice']['words']}"
        told = world.run("note", feed, "a new sensor", "--silence", CODE)
        assert (told[0], "silenced until it ends: feature 1 has risen" in told[2]) == (0, True)
        shown = world.run("status", feed)[1]
        (line,) = [one for one in shown.splitlines() if one.startswith("  silenced ")]
        assert "feature 1 has risen" in line
        assert line.endswith(": a new sensor")
        assert "Take care: feature" not in shown
        found = orjson.loads(world.run("status", feed, "--json")[1])
        (silenced,) = found["silenced_notices"]
        assert (found["notices"], silenced["note"]) == ([], "a new sensor")
        world.wait_for(world.push(rows[440:990]))
        assert orjson.loads(world.run("status", feed, "--json")[1])["silenced_notices"] == []
        world.wait_for(world.push(rows[990:1022]))
        _, again = posted(received, 2)
        assert (again["what"], again["notice"]["code"]) == ("notice_began", CODE)
        assert "Take care: feature" in world.run("status", feed)[1]


def posted(received, count):
    """Wait for so many posts of notices; beside them an alarm may be posted."""
    wait_until(lambda: len(of_notices(received)) >= count)
    return of_notices(received)


def of_notices(received):
    return [message for message in received.messages if "notice" in message]


def test_each_beginning_and_end_is_posted_once_whatever_the_receiver_and_the_process_do(begun):
    with receiving() as received:
        received.status = 500
        report(begun, 420)
        report(begun, 430, MOVED, notices=[OFF])
        with posting(begun.url, received) as webhook:
            first = webhook.add(begun.keys.feed, has_notices=True)
            first.on_started(cursor(begun))
            wait_until(lambda: first.failures["status 500"] >= 3)
        received.status = 204
        received.requests.clear()
        report(begun, 440, notices=[OFF | {"n": 435, "since": 100}])
        for _ in range(2):  # the second process finds all of them done
            with posting(begun.url, received) as webhook:
                alarms = webhook.add(begun.keys.feed, has_notices=True)
                alarms.on_started(cursor(begun))
                wait_until(lambda: len(received.requests) == 5)
                wait_until(lambda: position(begun) == b"440-1")
    assert told(received) == [
        ("notice_began", "430-1", "class:b:low"), ("notice_began", "430-1", CODE),
        ("notice_ended", "440-1", "class:b:low"), ("notice_ended", "440-1", CODE),
        ("notice_began", "440-1", "class:b:low"),
    ]  # fmt: skip
    assert Counter(received.keys).most_common(1)[0][1] == 1
    headers = {name.lower(): value for name, value in received.requests[-1][0].items()}
    assert headers["ce-type"] == "online-svm.notice.began"
    assert headers["ce-id"] == received.keys[-1] == f"{begun.keys.feed}/440-1/notice_2_began"


def position(store):
    groups = store.call("XINFO", "GROUPS", store.keys.met)
    found = (dict(zip(one[::2], one[1::2], strict=True)) for one in groups)
    return next(one[b"last-delivered-id"] for one in found if one[b"name"] == b"osvm-notices")


def test_notices_that_are_not_asked_for_are_not_posted(begun):
    report(begun, 420)
    report(begun, 430, MOVED)
    with receiving() as received, delivering(begun, received):
        raise_alarms(begun, 1, 431)
        received.wait(1)
        wait_until(lambda: pending(begun) == 0)
    assert received.keys == [f"{begun.keys.feed}/431-0/began"]


def test_a_long_quiet_feed_stores_its_position(begun):
    for n in range(100, 210):
        report(begun, n)
    changes = NoticeChanges(begun)
    assert changes.next() is None
    assert position(begun) == b"209-1"


def test_a_silenced_notice_is_in_facts_report_and_metrics_as_such(begun):
    report(begun, 430, MOVED, notices=[OFF])
    silence_notice(begun, "class:b:low", "the new  form\n")
    status = with_outputs(begun, FeedStatus(feed=begun.keys.feed))
    assert [notice.code for notice in status.notices] == [CODE]
    lines = [(fact.name, fact.sentence) for fact in facts(status)]
    assert ("notice", status.notices[0].words) in lines
    (known,) = status.silenced_notices
    assert known.words.endswith(": the new form")
    assert ("silenced", known.words) in lines
    assert facts(read_past(begun).status)[:2] == facts(status)[:2]
    assert read_many([begun], in_detail=True)[begun.keys.feed].notices == status.notices
    silence(begun, 0, "mended")
    assert len(with_outputs(begun, status).notices) == 2


def test_only_an_open_notice_is_silenced(begun):
    with pytest.raises(BadConfiguration, match="no open notice 'class:b:low'; open: none"):
        silence_notice(begun, "class:b:low", "known")
    report(begun, 430, MOVED)
    with pytest.raises(BadConfiguration, match=f"open: {CODE}"):
        silence_notice(begun, "class:b:low", "known")
    with pytest.raises(BadConfiguration, match="say why"):
        silence_notice(begun, CODE, " ")
