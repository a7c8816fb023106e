import dataclasses
import io
import sys
import time

import orjson
import structlog

from online_svm.stream.prediction import LabelReport, MethodReport, ValidityReport
from workers.cli import progress, worker_progress
from workers.cli.progress import push_progress
from workers.cli.worker_progress import LoggedProgress, WorkerProgress
from workers.feed.commit import RejectedEntry
from workers.feed.position import Position
from workers.session.answer import Outcome


def outcome(before, after, accuracy=None, rejected=0):
    label = LabelReport(accuracy=accuracy, lower=0.7, probability=0.75, upper=0.8, paper_p=None)
    method = MethodReport(predicted=label, svm=label, log_loss=None, brier=None, clipped=0)
    report = ValidityReport(n=after, scored=after, headline=method, venn=method, maps={})
    start, end = Position(b"1-1", before, before), Position(b"1-2", after, after - 1)
    letters = [RejectedEntry(b"1-2", "label", "y is empty", 1, b"")] * rejected
    ids = [b"1-2"] * (after - before)
    return Outcome(start, end, ids, [], [], [], letters, [report])


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_the_worker_tells_its_rate_and_validity_when_a_line_is_due(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(worker_progress.time, "monotonic", lambda: now[0])
    target = io.StringIO()
    tell = WorkerProgress(target, every=2.0)
    now[0] = 1.0
    tell("f", outcome(10, 30, 0.5))
    assert target.getvalue() == ""
    now[0] = 4.0
    tell("f", outcome(30, 50))
    assert target.getvalue() == (
        "f: 50 answered, 49 learned, 10/s  accuracy 0.500, announced [0.700, 0.800]\n"
    )


def test_a_feed_that_waits_shows_how_far_it_is(monkeypatch):
    target = io.StringIO()
    tell = WorkerProgress(target, every=0.05)
    tell("f", outcome(0, 20))
    deadline = time.monotonic() + 10
    while not target.getvalue() and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.15)
    assert target.getvalue().count("f: 20 answered, 19 learned, ") == 1  # said once, not for ever
    tell.close()


ALARM = {
    "n": 5040, "kind": "calibration", "scope": "class", "name": "b\x1b[2J", "monitor": "bets",
    "log_wealth": 5.73, "threshold": 5.3, "since": 4000, "estimate": 0.062, "lower": 0.03,
    "upper": 0.094, "action": "report",
}  # fmt: skip


def alarmed():
    payload = orjson.dumps({"v": 2, "seq": 30, "alarms": [ALARM, ALARM | {"name": "c"}]})
    return dataclasses.replace(outcome(10, 30), alarms=[(b"1-2", payload)])


def test_an_alarm_is_told_when_it_comes_and_its_text_moves_no_cursor():
    target = io.StringIO()
    tell = WorkerProgress(target, every=1e9)
    tell("f", alarmed())
    tell.close()
    first, second, last = target.getvalue().splitlines()
    said = "is too low by 0.062 (0.030 to 0.094) since n = 4,000  bets e^5.7 of e^5.3"
    head = "f: alarm: n 5,040  calibration: the probability of class"
    assert first == f"{head} b\\x1b[2J {said}"
    assert second == f"{head} c {said}"
    assert last.endswith("stopped")


def test_a_quiet_worker_tells_alarms_and_where_it_stopped_alone():
    target = io.StringIO()
    tell = WorkerProgress(target, every=0.0, is_quiet=True)
    tell("f", outcome(0, 10))
    tell("f", alarmed())
    tell.close()
    first, second, last = target.getvalue().splitlines()
    assert first.startswith("f: alarm: n 5,040")
    assert second.startswith("f: alarm: n 5,040")
    assert last == "f: 30 answered, 29 learned, stopped"


def test_an_alarm_is_an_event_of_the_log(capsys):
    tell = LoggedProgress(every=1e9)
    with structlog.testing.capture_logs() as logged:
        tell("f", alarmed())
        tell.close()
    told = [event for event in logged if event["event"] == "alarm"]
    assert [event["name"] for event in told] == ["b\x1b[2J", "c"]
    assert told[1]["words"] == (
        "the probability of class c is too low by 0.062 (0.030 to 0.094) since n = 4,000"
    )


def test_a_worker_that_stops_tells_where(monkeypatch):
    target = io.StringIO()
    tell = WorkerProgress(target, every=1e9)
    tell.close()
    assert target.getvalue() == ""
    tell("f", outcome(0, 20))
    tell.close()
    assert target.getvalue() == "f: 20 answered, 19 learned, stopped\n"


def test_a_worker_tells_how_many_it_rejected_and_where_to_see_why():
    target = io.StringIO()
    tell = WorkerProgress(target, every=1e9)
    tell("f", outcome(0, 20, rejected=2))
    tell("f", outcome(20, 30))
    tell("f", outcome(30, 40, rejected=1))
    tell.close()
    expected = "f: 40 answered, 39 learned, 3 rejected (online-svm tail f --stream dlq), stopped\n"
    assert target.getvalue() == expected


def test_a_worker_that_went_on_does_not_pass_its_rejections_for_all_of_the_feed():
    target = io.StringIO()
    tell = WorkerProgress(target, every=1e9)
    tell("f", outcome(20, 30, rejected=1))
    tell.close()
    counts = "29 learned, 1 rejected since this worker began"
    assert f"{counts} (online-svm tail f --stream dlq)" in target.getvalue()


def test_of_several_feeds_one_line_tells_all_and_names_those_with_most(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(worker_progress.time, "monotonic", lambda: now[0])
    target = io.StringIO()
    tell = WorkerProgress(target, every=2.0)
    tell("a", outcome(0, 3, rejected=1))
    now[0] = 2.0
    tell("b", outcome(0, 2000))
    tell("b", alarmed())
    tell.close()
    line, first, second, last = target.getvalue().splitlines()
    assert line == "2 feeds: 2,003 answered, 1 rejected, 1,002/s  most: b 2,000, a 3"
    assert first.startswith("b: alarm: n 5,040")
    assert second.startswith("b: alarm: n 5,040")
    assert last == "2 feeds: 2,023 answered, 1 rejected, stopped"


def test_the_log_of_several_feeds_has_each_figure_in_a_field():
    tell = LoggedProgress(every=1e9)
    with structlog.testing.capture_logs() as logged:
        tell("a", outcome(0, 3))
        tell("b", outcome(0, 5))
        tell.close()
    assert logged == [{"event": "stopped", "log_level": "info", "feeds": 2, "answered": 8}]


def test_a_push_shows_plain_lines_where_there_is_no_terminal(monkeypatch, capsys):
    monkeypatch.setattr(progress, "EVERY", 0.0)
    with push_progress(1000) as tell:
        tell(500)
    assert capsys.readouterr().err == "500 of 1,000 pushed\n"


def test_a_push_shows_a_bar_on_a_terminal(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with push_progress(1000) as tell:
        tell(500)
    assert "pushing" in terminal.getvalue()
