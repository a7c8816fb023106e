"""`tail`: answers, reports, rejected input, alarms and events.

True labels and hostile text in answers: `test_answers_shown.py`.
"""

import signal
import subprocess
import sys

import orjson
import pytest
from answered_feed import ROWS
from processes import Process

from online_svm.stream.alarm import Alarm, Moved
from workers.broker.store import Store
from workers.message.encode import encode_alarms
from workers.message.event import encode_event
from workers.reading.answers import newest, payload

OFF = Alarm(5040, "calibration", "class", "b", "bets", 5.7, 5.3, 4000, 0.0625, 0.03, 0.09)
MOVED = Alarm(
    5041, "exchangeability", "scores", "odds", "ranks", 8.0, 7.7, 10, action="refit",
    moved=(Moved("hour", 1.92), Moved("amount", -0.04)),
)  # fmt: skip


@pytest.fixture
def alarmed(embedded_url, feed):
    """A feed with alarms, the last of which another program wrote."""
    with Store(embedded_url, feed) as store:
        store.call("XADD", store.keys.input, "1-0", "x", "[1]")
        for i, alarms in enumerate(([OFF], [OFF, MOVED]), 1):
            store.call("XADD", store.keys.alarms, f"{i}-0", "p", encode_alarms(alarms, 5039 + i))
        yield store
        keys = store.keys
        store.call("DEL", keys.input, keys.out, keys.dlq, keys.alarms, keys.events)


@pytest.fixture
def shown(run_command, embedded_url):
    """Show a stream of a feed, the alarms unless another is named."""

    def show(feed, *arguments):
        stream = () if "--stream" in arguments else ("--stream", "alarms")
        return run_command("tail", feed, *stream, *arguments, "--redis", embedded_url)

    return show


def test_alarms_are_told_in_words_the_newest_last(alarmed, shown):
    off = "the probability of class b is too low by 0.062 (0.030 to 0.090) since n = 4,000"
    first = f"n 5,040  calibration: {off}"
    moved = "the features have changed (watched since n = 10); feature hour has risen by 1.9"
    changed = f"n 5,041  exchangeability: {moved} standard deviations"
    second = f"{changed}  ranks e^8.0 of e^7.7  refit"
    code, out, err = shown(alarmed.keys.feed)
    assert (code, err) == (0, "")
    assert out.splitlines() == [f"{first}  bets e^5.7 of e^5.3"] * 2 + [second]
    assert shown(alarmed.keys.feed, "-n", "1")[1].splitlines() == out.splitlines()[1:]


def test_the_time_of_the_commit_is_told_where_it_is_known(alarmed, shown):
    for at, entry in (("1700000000123-0", "2-0"), ("1700000000124-0", "9-9")):
        alarmed.call("XADD", alarmed.keys.raised, at, "alarm", entry)
    lines = shown(alarmed.keys.feed)[1].splitlines()
    told = [line.endswith("  committed 2023-11-14 22:13:20 UTC") for line in lines]
    assert told == [False, True, True]
    alarmed.call("DEL", alarmed.keys.raised)


def test_a_time_of_no_era_is_not_told(alarmed, shown):
    without = shown(alarmed.keys.feed)
    alarmed.call("XADD", alarmed.keys.raised, f"{2**63}-0", "alarm", "2-0")
    assert shown(alarmed.keys.feed) == without
    alarmed.call("DEL", alarmed.keys.raised)


def test_json_gives_the_payloads(alarmed, shown):
    _, out, _ = shown(alarmed.keys.feed, "--json")
    stored = alarmed.call("XRANGE", alarmed.keys.alarms, "-", "+")
    assert [line.encode() for line in out.splitlines()] == [fields[1] for _, fields in stored]


@pytest.mark.parametrize(
    ("stream", "told"),
    [("met", "report"), ("dlq", "rejected entry"), ("alarms", "alarm"), ("events", "event")],
)
def test_a_stream_that_keeps_nothing_is_told(alarmed, shown, stream, told):
    alarmed.call("DEL", alarmed.keys.alarms)
    alarmed.call("XADD", alarmed.keys.out, "1-0", "p", "{}")
    code, out, err = shown(alarmed.keys.feed, "--stream", stream)
    assert (code, out, err) == (0, "", f"no {told} of {alarmed.keys.feed} is kept\n")


def test_what_another_program_wrote_is_shown_as_that(alarmed, shown):
    alarmed.call("XADD", alarmed.keys.alarms, "3-0", "p", b"\x1b[31m")
    code, out, _ = shown(alarmed.keys.feed, "-n", "1")
    assert (code, out) == (0, "not of this program: \\x1b[31m\n")


def test_follow_shows_an_alarm_as_it_comes(alarmed):
    feed, url = alarmed.keys.feed, alarmed.url
    command = [sys.executable, "-m", "workers.cli", "tail", feed, "--stream", "alarms"]
    command += ["-n", "1", "--follow", "--json"]
    process = Process([*command, "--redis", url], stdout=subprocess.PIPE)
    try:
        assert orjson.loads(process.stdout.readline())["seq"] == 5041
        alarmed.call("XADD", alarmed.keys.alarms, "9-0", "p", encode_alarms([MOVED], 6000))
        assert orjson.loads(process.stdout.readline())["seq"] == 6000
    finally:
        process.kill()
        process.communicate()


REJECTED = ("code", "label", "reason", "y is empty", "size", "12", "head", "x[1]y\x1b")


def test_rejected_input_has_its_reason_and_how_it_began(alarmed, shown):
    alarmed.call("XADD", alarmed.keys.dlq, "7-0", *REJECTED)
    feed = alarmed.keys.feed
    code, out, _ = shown(feed, "--stream", "dlq")
    assert (code, out) == (0, "7-0  label: y is empty  12 bytes: 'x[1]y\\x1b'\n")
    shown = orjson.loads(shown(feed, "--stream", "dlq", "--json")[1])
    assert shown == {"id": "7-0"} | dict(zip(REJECTED[::2], REJECTED[1::2], strict=True))


def test_events_have_their_time_and_who_said_them(alarmed, shown):
    said = encode_event("note", "ann@desk", 3, "deployed v2", {"n": 1200})
    alarmed.call("XADD", alarmed.keys.events, "1700000000000-0", "p", said)
    alarmed.call("XADD", alarmed.keys.events, "1700000000001-0", "p", "[1]")
    feed = alarmed.keys.feed
    note, odd = shown(feed, "--stream", "events")[1].splitlines()
    assert note == "2023-11-14 22:13:20 UTC  note  ann@desk: example 1,200: deployed v2"
    assert odd == "not of this program: [1]"
    shown = orjson.loads(shown(feed, "--stream", "events", "--json")[1].splitlines()[0])
    assert shown == orjson.loads(said) | {"id": "1700000000000-0"}


@pytest.mark.parametrize(("count", "told"), [(1, "1 entry waits"), (3, "3 entries wait")])
def test_tail_says_that_input_waits_where_nothing_is_answered(run, feed, source, count, told):
    run("push", feed, str(source), "--limit", str(count))
    expected = (0, "", f"no answers yet: {told} for a worker\n")
    assert run("tail", feed) == expected
    assert run("tail", feed, "--stream", "met", "--json") == expected


def test_tail_prints_the_payloads_as_they_are_stored(answered, run, redis_url):
    feed, _ = answered
    _, out, _ = run("tail", feed, "--raw", "--count", "0")
    with Store(redis_url, feed) as store:
        stored = [payload(e).decode() for e in newest(store, store.keys.out, 1000)]
    assert out.splitlines() == stored
    _, out, _ = run("tail", feed, "--json", "--stream", "met", "-n", "1")
    assert orjson.loads(out)["n"] == ROWS // 40 * 40


def test_tail_shows_answers_and_rejections_in_words(answered, run):
    feed, _ = answered
    _, out, _ = run("tail", feed, "-n", "2")
    answer, rejection = out.splitlines()
    assert "platt" in answer
    assert answer.endswith("exact")
    assert "rejected: unknown_feature" in rejection or "rejected: missing_feature" in rejection


def test_tail_follows_a_feed_until_it_is_interrupted(answered, redis_url):
    feed, _ = answered
    command = [sys.executable, "-m", "workers.cli", "tail", feed, "-n", "1", "--json", "--follow"]
    tail = Process(
        [*command, "--redis", redis_url],
        stdout=subprocess.PIPE,
        # Where the tests run in the background of a shell, SIGINT is ignored and that is inherited.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    try:
        assert orjson.loads(tail.stdout.readline())["id"] == "bad one"
        with Store(redis_url, feed) as store:
            last = newest(store, store.keys.out, 1)[0][0]
            later = b"%d-0" % (int(last.split(b"-")[0]) + 1)
            store.call("XADD", store.keys.out, later, "p", '{"late":1}')
            try:
                assert tail.stdout.readline() == b'{"late":1}\n'
            finally:
                store.call("XDEL", store.keys.out, later)
                store.call("XSETID", store.keys.out, last)  # as it was: `check` looks at it
        tail.send_signal(signal.SIGINT)
        assert tail.wait(10) == 130
    finally:
        tail.kill()
        tail.wait()
        tail.stdout.close()


def test_dlq_shows_why_an_entry_was_rejected(answered, run):
    feed, _ = answered
    _, out, _ = run("tail", feed, "--stream", "dlq", "--json")
    found = orjson.loads(out)
    assert found["code"] in ("unknown_feature", "missing_feature")
    assert '{"age":1}' in found["head"]
    assert found["size"] == str(len('x{"age":1}ytrueidbad one'))
