"""`tail`: answers, reports, rejected input, alarms and events.

True labels and hostile text in answers: `test_answers_shown.py`.
"""

import signal
import subprocess
import sys

import orjson
import pytest
from processes import Process

from online_svm.stream.alarm import Alarm, Moved
from workers.feed.codes import encode_event
from workers.message.encode import encode_alarms

OFF = Alarm(5040, "calibration", "class", "b", "bets", 5.7, 5.3, 4000, -0.05, -0.09, -0.02, 0.9)
MOVED = Alarm(
    5041, "exchangeability", "scores", "odds", "ranks", 8.0, 7.7, 10, action="refit",
    moved=(Moved("hour", 1.92), Moved("amount", -0.04)),
)  # fmt: skip
REJECTED = ("code", "label", "about", '{"case":"label_length","most":256}', "size", "12")
REJECTED += ("head", "x[1]y\x1b")
OF_4 = ("code", "label", "reason", "y is empty", "size", "12", "head", "x[1]y\x1b")


@pytest.fixture
def alarmed(store):
    """A feed with alarms."""
    store.call("XADD", store.keys.input, "1-0", "x", "[1]")
    for i, alarms in enumerate(([OFF], [OFF, MOVED]), 1):
        store.call("XADD", store.keys.alarms, f"{i}-0", "p", encode_alarms(alarms, 5039 + i))
    return store


@pytest.fixture
def shown(run, feed):
    """Return what is shown of a stream of the feed, without complaints."""

    def show(stream, *arguments):
        code, out, err = run("tail", feed, "--stream", stream, *arguments)
        assert (code, err) == (0, "")
        return out.splitlines()

    return show


def test_alarms_are_told_in_words_the_newest_last_or_as_their_payloads(alarmed, shown):
    off = "class b: announced 90 of 100, true were 85 (81 to 88), since example 4,000"
    moved = "the features have changed (watched since example 10); feature hour has risen by 1.9"
    second = f"at example 5,041: {moved} standard deviations; refit"
    lines = shown("alarms")
    assert lines == [f"at example 5,040: {off}"] * 2 + [second]
    assert shown("alarms", "-n", "1") == lines[1:]
    stored = alarmed.call("XRANGE", alarmed.keys.alarms, "-", "+")
    assert [line.encode() for line in shown("alarms", "--json")] == [f[1] for _, f in stored]
    alarmed.call("XADD", alarmed.keys.alarms, "3-0", "p", b"\x1b[31m")
    assert shown("alarms", "-n", "1") == ["not of this program: \\x1b[31m"]


def test_the_time_of_the_commit_is_told_where_it_is_known(alarmed, shown):
    for at, entry in (("1700000000123-0", "2-0"), ("1700000000124-0", "9-9")):
        alarmed.call("XADD", alarmed.keys.raised, at, "alarm", entry)
    told = [line.endswith("  committed 2023-11-14 22:13:20 UTC") for line in shown("alarms")]
    assert told == [False, True, True]
    alarmed.call("DEL", alarmed.keys.raised)
    alarmed.call("XADD", alarmed.keys.raised, f"{2**63}-0", "alarm", "2-0")  # of no era
    assert not any("committed" in line for line in shown("alarms"))


NOTHING = {"met": "report", "dlq": "rejected entry", "alarms": "alarm", "events": "event"}


@pytest.mark.parametrize(("stream", "told"), NOTHING.items())
def test_a_stream_that_keeps_nothing_is_told(store, run, feed, stream, told):
    store.call("XADD", store.keys.out, "1-0", "p", "{}")
    assert run("tail", feed, "--stream", stream) == (0, "", f"no {told} of {feed} is kept\n")


def test_rejected_input_has_its_reason_and_how_it_began(alarmed, shown):
    alarmed.call("XADD", alarmed.keys.dlq, "7-0", *REJECTED)
    alarmed.call("XADD", alarmed.keys.dlq, "8-0", *OF_4)
    assert shown("dlq") == [
        "7-0  label: a label has 1 to 256 characters  12 bytes: 'x[1]y\\x1b'",
        "8-0  label: y is empty  12 bytes: 'x[1]y\\x1b'",
    ]
    told, of_4 = map(orjson.loads, shown("dlq", "--json"))
    stored = {"id": "7-0"} | dict(zip(REJECTED[::2], REJECTED[1::2], strict=True))
    assert told == stored | {"reason": "a label has 1 to 256 characters"}
    assert of_4 == {"id": "8-0"} | dict(zip(OF_4[::2], OF_4[1::2], strict=True))


def test_events_have_their_time_and_who_said_them(alarmed, shown):
    said = encode_event("note", "ann@desk", 3, "deployed v2", {"n": 1200})
    alarmed.call("XADD", alarmed.keys.events, "1700000000000-0", "p", said)
    alarmed.call("XADD", alarmed.keys.events, "1700000000001-0", "p", "[1]")
    assert shown("events") == [
        "2023-11-14 22:13:20 UTC  note  ann@desk: example 1,200: deployed v2",
        "not of this program: [1]",
    ]
    told = orjson.loads(shown("events", "--json")[0])
    assert told == orjson.loads(said) | {"id": "1700000000000-0"}


@pytest.mark.parametrize(("count", "told"), [(1, "1 entry waits"), (3, "3 entries wait")])
def test_tail_says_that_input_waits_where_nothing_is_answered(run, feed, source, count, told):
    run("push", feed, str(source), "--limit", str(count))
    expected = (0, "", f"no answers yet: {told} for a worker\n")
    assert run("tail", feed) == expected
    assert run("tail", feed, "--stream", "met", "--json") == expected


def test_tail_follows_a_feed_until_it_is_interrupted(store, redis_url, feed):
    store.call("XADD", store.keys.out, "1-0", "p", '{"id":"first"}')
    command = [sys.executable, "-m", "workers.cli", "tail", feed, "-n", "1", "--json", "--follow"]
    with Process(
        [*command, "--redis", redis_url],
        stdout=subprocess.PIPE,
        # Where the tests run in the background of a shell, SIGINT is ignored and that is inherited.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as tail:
        assert orjson.loads(tail.stdout.readline())["id"] == "first"
        store.call("XADD", store.keys.out, "2-0", "p", '{"late":1}')
        assert tail.stdout.readline() == b'{"late":1}\n'
        tail.send_signal(signal.SIGINT)
        assert tail.wait() == 130
