"""Progress of workers and pushes: when a line is due, and what it tells."""

import dataclasses
import io
import re
import sys
import time

import orjson
import pytest
import structlog
from world import wait_until

from online_svm.stream.validity_report import LabelReport, MethodReport, ValidityReport
from workers.cli import progress
from workers.cli.progress import LoggedProgress, WorkerProgress, push_progress
from workers.feed.position import Position
from workers.feed.state import RejectedEntry
from workers.session.answer import Outcome

ALARM = {
    "n": 5040, "kind": "calibration", "scope": "class", "name": "b\x1b[2J", "monitor": "bets",
    "log_wealth": 5.73, "threshold": 5.3, "since": 4000, "estimate": -0.05, "lower": -0.09,
    "upper": -0.02, "announced": 0.9, "action": "report",
}  # fmt: skip


def outcome(before, after, accuracy=None, rejected=0):
    label = LabelReport(accuracy=accuracy, lower=0.7, probability=0.75, upper=0.8, paper_p=None)
    method = MethodReport(predicted=label, svm=label, log_loss=None, brier=None, clipped=0)
    report = ValidityReport(n=after, scored=after, headline=method, venn=method, maps={})
    start, end = Position(b"1-1", before, before), Position(b"1-2", after, after - 1)
    letters = [RejectedEntry(b"1-2", "label", "{}", 1, b"")] * rejected
    ids = [b"1-2"] * (after - before)
    return Outcome(start, end, ids, [], [], [], letters, [report])


def alarmed():
    payload = orjson.dumps({"v": 2, "seq": 30, "alarms": [ALARM, ALARM | {"name": "c"}]})
    return dataclasses.replace(outcome(10, 30), alarms=[(b"1-2", payload)])


@pytest.fixture
def told(monkeypatch):
    """Return the lines of a progress that gets outcomes at these seconds, and then is closed."""

    def told(turns, every=1e9, is_quiet=False):
        now = [0.0]
        monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
        target = io.StringIO()
        tell = WorkerProgress(target, every, is_quiet=is_quiet)
        for now[0], feed, given in turns:
            tell(feed, given)
        tell.close()
        return target.getvalue().splitlines()

    return told


SAID = "announced 90 of 100, true were 85 (81 to 88), since example 4,000"
FIRST = f"alarm: at example 5,040: class b\\x1b[2J: {SAID}"
SECOND = f"alarm: at example 5,040: class c: {SAID}"
REJECTED = "(online-svm tail f --stream dlq), stopped"
LINES = {
    "nothing was answered": ((), {}, []),
    "it stops": (((0, "f", outcome(0, 20)),), {}, ["f: 20 answered, 19 learned, stopped"]),
    "rejected entries": (
        ((0, "f", outcome(0, 20, rejected=2)), (0, "f", outcome(20, 30)),
         (0, "f", outcome(30, 40, rejected=1))), {},
        [f"f: 40 answered, 39 learned, 3 rejected {REJECTED}"]),
    "rejected since it went on": (
        ((0, "f", outcome(20, 30, rejected=1)),), {},
        [f"f: 30 answered, 29 learned, 1 rejected since this worker began {REJECTED}"]),
    "alarms as they come, and no cursor moved by their text": (
        ((0, "f", alarmed()),), {},
        [f"f: {FIRST}", f"f: {SECOND}", "f: 30 answered, 29 learned, stopped"]),
    "rate and validity when a line is due": (
        ((1.0, "f", outcome(10, 30, 0.5)), (4.0, "f", outcome(30, 50))), {"every": 2.0},
        ["f: 50 answered, 49 learned, 10/s  accuracy 0.500, announced [0.700, 0.800]",
         "f: 50 answered, 49 learned, stopped  accuracy 0.500, announced [0.700, 0.800]"]),
    "of several feeds one line that names those with most": (
        ((0, "a", outcome(0, 3, rejected=1)), (2.0, "b", outcome(0, 2000)), (2.0, "b", alarmed())),
        {"every": 2.0},
        ["2 feeds: 2,003 answered, 1 rejected, 1,002/s  most: b 2,000, a 3", f"b: {FIRST}",
         f"b: {SECOND}", "2 feeds: 2,023 answered, 1 rejected, stopped"]),
}  # fmt: skip


@pytest.mark.parametrize(("turns", "options", "lines"), LINES.values(), ids=LINES)
def test_a_worker_tells(told, turns, options, lines):
    assert told(turns, **options) == lines


def test_a_quiet_worker_tells_alarms_and_where_it_stopped_alone(told):
    turns = (0, "f", outcome(0, 10)), (0, "f", alarmed())
    lines = [f"f: {FIRST}", f"f: {SECOND}", "f: 30 answered, 29 learned, stopped"]
    assert told(turns, every=0.0, is_quiet=True) == lines


def test_a_feed_that_waits_shows_how_far_it_is_once():
    target = io.StringIO()
    tell = WorkerProgress(target, every=0.02)
    tell("f", outcome(0, 20))
    wait_until(target.getvalue)
    time.sleep(0.1)  # several lines would be due
    assert target.getvalue().count("f: 20 answered, 19 learned, ") == 1
    tell.close()


def test_an_alarm_is_an_event_of_the_log_and_each_figure_a_field():
    tell = LoggedProgress(every=1e9)
    with structlog.testing.capture_logs() as logged:
        tell("a", alarmed())
        tell("b", outcome(0, 5))
        tell.close()
    *alarms, last = logged
    assert [(event["event"], event["name"]) for event in alarms] == [
        ("alarm", "b\x1b[2J"), ("alarm", "c"),
    ]  # fmt: skip
    assert alarms[1]["words"] == f"class c: {SAID}"
    assert last == {"event": "stopped", "log_level": "info", "feeds": 2, "answered": 25}


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_push_shows_a_bar_on_a_terminal_and_plain_lines_elsewhere(monkeypatch, is_terminal):
    shown = io.StringIO()
    shown.isatty = lambda: is_terminal
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setattr(progress, "PROGRESS_SECONDS", 0.0)
    with push_progress(1000) as tell:
        tell(500)
    if is_terminal:
        assert "pushing" in shown.getvalue()
    else:
        assert re.fullmatch(r"500 of 1,000 pushed, [\d,]+/s, 0 s left\n", shown.getvalue())


def test_what_takes_long_says_what_it_does_and_how_far_it_is(capsys, monkeypatch):
    monkeypatch.setattr(progress, "PROGRESS_SECONDS", 0.01)

    def told(pattern):
        seen = []

        def is_told():
            seen.append(capsys.readouterr().err)
            return re.search(pattern, "".join(seen), re.MULTILINE)

        wait_until(is_told, why=f"{pattern} is told")

    with progress.doing("exporting", 40) as counted:
        told(r"^exporting \(0 s\)$")
        counted(10)
        told(r"^exporting: 10 of 40, [\d,]+/s, \d+ s left$")
        counted(40)
        told(r"^exporting: all 40, finishing \(\d+ s\)$")
    capsys.readouterr()
    time.sleep(0.05)
    assert capsys.readouterr().err == ""
