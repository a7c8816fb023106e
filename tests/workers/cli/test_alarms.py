"""`alarms`, and what `status` says of alarms."""

import subprocess
import sys
from dataclasses import replace

import orjson
import pytest
from processes import Process

from online_svm.stream.alarm import Alarm, Moved
from workers.broker.store import Store
from workers.message.encode import encode_alarms

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
        store.call("DEL", store.keys.input, store.keys.alarms)


@pytest.fixture
def run(run_command, embedded_url):
    return lambda *arguments: run_command(*arguments, "--redis", embedded_url)


def test_alarms_are_told_in_words_the_newest_last(alarmed, run):
    off = "the probability of class b is too low by 0.062 (0.030 to 0.090) since n = 4,000"
    first = f"n 5,040  calibration: {off}"
    moved = "the features have changed (watched since n = 10); feature hour has risen by 1.9"
    changed = f"n 5,041  exchangeability: {moved} standard deviations"
    second = f"{changed}  ranks e^8.0 of e^7.7  refit"
    code, out, err = run("alarms", alarmed.keys.feed)
    assert (code, err) == (0, "")
    assert out.splitlines() == [f"{first}  bets e^5.7 of e^5.3"] * 2 + [second]
    assert run("alarms", alarmed.keys.feed, "-n", "1")[1].splitlines() == out.splitlines()[1:]


def test_the_time_of_the_commit_is_told_where_it_is_known(alarmed, run):
    for at, entry in (("1700000000123-0", "2-0"), ("1700000000124-0", "9-9")):
        alarmed.call("XADD", alarmed.keys.raised, at, "alarm", entry)
    lines = run("alarms", alarmed.keys.feed)[1].splitlines()
    told = [line.endswith("  committed 2023-11-14 22:13:20 UTC") for line in lines]
    assert told == [False, True, True]
    alarmed.call("DEL", alarmed.keys.raised)


def test_a_time_of_no_era_is_not_told(alarmed, run):
    without = run("alarms", alarmed.keys.feed)
    alarmed.call("XADD", alarmed.keys.raised, f"{2**63}-0", "alarm", "2-0")
    assert run("alarms", alarmed.keys.feed) == without
    alarmed.call("DEL", alarmed.keys.raised)


def test_json_gives_the_payloads(alarmed, run):
    _, out, _ = run("alarms", alarmed.keys.feed, "--json")
    stored = alarmed.call("XRANGE", alarmed.keys.alarms, "-", "+")
    assert [line.encode() for line in out.splitlines()] == [fields[1] for _, fields in stored]


def test_a_feed_without_alarms_is_told(alarmed, run):
    alarmed.call("DEL", alarmed.keys.alarms)
    code, out, err = run("alarms", alarmed.keys.feed)
    assert (code, out, err) == (0, "", f"no alarm of {alarmed.keys.feed} is kept\n")


def test_status_shows_first_the_alarm_that_leaves_no_guarantee(alarmed, run):
    later = [replace(OFF, n=5050 + i, name=f"c{i}") for i in range(4)]
    alarmed.call("XADD", alarmed.keys.alarms, "8-0", "p", encode_alarms(later, 5060))
    _, out, _ = run("status", alarmed.keys.feed)
    told = [line.split()[2:4] for line in out.splitlines() if line.startswith("  alarm ")]
    kinds = [["5,041", "exchangeability:"], ["5,053", "calibration:"], ["5,052", "calibration:"]]
    assert told == kinds
    assert "and 3 open alarms more" in out


def test_status_shows_the_alarms_that_are_open(alarmed, run):
    _, out, _ = run("status", alarmed.keys.feed)
    told = [line.split()[:4] for line in out.splitlines() if line.startswith("  alarm ")]
    assert told == [
        ["alarm", "n", "5,041", "exchangeability:"],
        ["alarm", "n", "5,040", "calibration:"],
    ]
    _, out, _ = run("status", alarmed.keys.feed, "--json")
    assert [alarm["n"] for alarm in orjson.loads(out)["open_alarms"]] == [5040, 5041]


def test_what_another_program_wrote_is_shown_as_that(alarmed, run):
    alarmed.call("XADD", alarmed.keys.alarms, "3-0", "p", b"\x1b[31m")
    code, out, _ = run("alarms", alarmed.keys.feed, "-n", "1")
    assert (code, out) == (0, "not of this program: \\x1b[31m\n")
    code, _, err = run("status", alarmed.keys.feed)
    assert code == 4
    assert "another program" in err


def test_an_unknown_feed_is_an_error(run):
    assert run("alarms", "nobody")[0] == 2


def test_follow_shows_an_alarm_as_it_comes(alarmed):
    feed, url = alarmed.keys.feed, alarmed.url
    command = [sys.executable, "-m", "workers.cli", "alarms", feed, "-n", "1", "--follow", "--json"]
    process = Process([*command, "--redis", url], stdout=subprocess.PIPE)
    try:
        assert orjson.loads(process.stdout.readline())["seq"] == 5041
        alarmed.call("XADD", alarmed.keys.alarms, "9-0", "p", encode_alarms([MOVED], 6000))
        assert orjson.loads(process.stdout.readline())["seq"] == 6000
    finally:
        process.kill()
        process.communicate()


def test_show_is_the_default_and_its_options_may_come_first(run, alarmed):
    feed = alarmed.keys.feed
    shown = run("alarms", feed)
    assert run("alarms", "show", feed) == shown
    assert run("alarms", "--json", feed) == run("alarms", feed, "--json")


def test_an_alarm_is_acknowledged_and_alarms_are_silenced_from_the_command_line(run, alarmed):
    feed = alarmed.keys.feed
    n = run("alarms", feed, "-n", "1")[1].split()[1]
    code, _, err = run("alarms", "ack", feed, n, "--why", "a new form")
    assert (code, "is acknowledged" in err) == (0, True)
    code, _, err = run("alarms", "silence", feed, "--for", "2h", "--why", "planned")
    assert (code, "no alarm is posted until 2" in err) == (0, True)
    events = [fields[1] for _, fields in alarmed.call("XRANGE", alarmed.keys.events, "-", "+")]
    assert [orjson.loads(event)["code"] for event in events[-2:]] == ["acknowledged", "silenced"]


def test_what_is_wrong_with_an_acknowledgement_or_a_silence_is_told_in_one_line(run, alarmed):
    feed = alarmed.keys.feed
    for arguments, said in (
        (("ack", feed, "9,999,999"), "keeps no alarm"),
        (("ack", "nobody", "1"), "nobody"),
        (("silence", feed, "--for", "2w", "--why", "x"), "--for"),
        (("silence", feed, "--for", "2h", "--why", ""), "--why"),
    ):
        code, _, err = run("alarms", *arguments)
        assert code == 2
        assert said in err.splitlines()[-1]


def test_a_note_of_what_is_still_to_come_is_refused(alarmed, run):
    """A mark far beyond the last report would leave the curves no room."""
    alarmed.call("HSET", alarmed.keys.state, "n", 40)
    code, _, err = run("note", alarmed.keys.feed, "deployed v2", "--at", "41")
    assert code == 2
    assert f"--at 41: feed {alarmed.keys.feed!r} has learned 40 examples so far" in err
    assert not alarmed.length(alarmed.keys.events)
    code, _, err = run("note", alarmed.keys.feed, "deployed v2", "--at", "40")
    assert (code, err) == (0, f"{alarmed.keys.feed}: noted at example 40\n")
    alarmed.call("DEL", alarmed.keys.state, alarmed.keys.events)
