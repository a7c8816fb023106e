"""The demonstration, run as a user runs it."""

import io
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from matplotlib.figure import Figure
from processes import Process
from rich.console import Console

from online_svm.stream.alarm import Alarm
from workers.demo import run
from workers.demo.feeds import DemoFeed, Progress
from workers.demo.view import Rate, draw_curves, line, render
from workers.reading.incidents import RaisedAlarm


def processes_that_mention(text: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it ended meanwhile
            found.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return [line for line in found if text in line]


@pytest.mark.timeout(300)
def test_the_demo_answers_three_feeds_draws_the_curves_and_leaves_nothing(tmp_path: Path) -> None:
    picture = tmp_path / "curves.png"
    command = [sys.executable, "-m", "workers.cli", "demo", "--picture", str(picture)]
    with Process([*command, "--speed", "20"], stdout=subprocess.PIPE, text=True) as ran:
        printed = ran.communicate(timeout=240)[0]
    assert ran.returncode == 0
    report = (tmp_path / "report.html").read_text("utf-8")
    assert report.startswith("<!DOCTYPE html>")
    assert "at example 1,200: feature 1 is stuck at 0 after 1,200 examples" in report
    assert "feature 1 varies less than usual" in report  # the same number
    said = " ".join(printed.split())  # lines wrap at the terminal's width
    assert "1,250 examples answered" in said
    assert "2,310 examples answered" in said
    assert "2,400 examples answered" in said
    found = re.search(r"sensors: alarm at example 1,\d{3}, (\d+) after the drift: the ", said)
    assert found is not None
    assert int(found[1]) < 200
    assert said.startswith("reading the data ... Redis, embedded and private")
    assert printed.count("log loss") == 3, "a table for each feed, once"
    assert "◆ accuracy so far █ probability announced so far" in said
    assert picture.read_bytes().startswith(b"\x89PNG")
    server = re.search(r"unix://(\S+)/redis\.sock", said)
    assert server is not None
    assert not Path(server[1]).exists()
    # The server and the workers were started with this directory in their arguments.
    assert processes_that_mention(server[1]) == []


def test_the_workers_of_the_demonstration_do_not_see_the_settings_of_the_user(monkeypatch):
    monkeypatch.setenv("ONLINE_SVM_REDIS_PASSWORD_FILE", "/nowhere")
    monkeypatch.setenv("XDG_STATE_HOME", "/tmp")
    left = run._without_settings()
    assert left["XDG_STATE_HOME"] == "/tmp"
    assert not any(name.startswith("ONLINE_SVM_") for name in left)


def test_a_plain_line_claims_no_accuracy_within_the_bounds():
    feed = Progress(DemoFeed("f", "", "", 1.0), total=200, answered=100)
    assert line(feed) == "f: 100 of 200 answered"
    feed.reports.append({"headline": {"predicted": OWN}})
    assert line(feed).endswith(", accuracy 0.872, announced [0.847, 0.869]")


OWN = {"accuracy": 0.872, "lower": 0.847, "probability": 0.85, "upper": 0.869}
BARE = {"accuracy": 0.9, "lower": None, "probability": 0.85, "upper": None}
WITH_INTERVAL = {"predicted": OWN, "log_loss": 0.338, "brier": 0.096}
OF_A_MAP = {"predicted": BARE, "log_loss": 10.125, "brier": 0.1}
REPORT = {
    "n": 25, "scored": 25, "headline": WITH_INTERVAL, "venn": WITH_INTERVAL,
    "maps": dict.fromkeys(("platt", "isotonic", "binning"), OF_A_MAP),
}  # fmt: skip


def rates():
    return {plan.feed: Rate() for plan in run.PLANS}


def feeds_at_the_end():
    return [Progress(plan, total=123_456, answered=123_456, reports=[REPORT]) for plan in run.PLANS]


def shown(feeds, **options):
    """Return the lines of the live view."""
    console = Console(file=io.StringIO(), width=80, color_system=None, **options)
    console.print(render(feeds, rates()))
    return console.file.getvalue().splitlines()


def test_the_live_view_fits_80_columns_and_24_lines_and_wraps_nothing():
    lines = shown(feeds_at_the_end(), force_terminal=True)
    assert {len(line) for line in lines} == {80}
    assert len(lines) < 24
    for word in ("headline", "venn", "platt", "isotonic", "binning"):
        table = [line.split()[1:] for line in lines if f" {word} " in line]
        assert len(table) == (3 if word == "headline" else 2)
        assert all(row[-2] == "0.096" or row[-2] == "0.100" for row in table), "not in one line"
    assert sum("[0.847, 0.869]" in line for line in lines) == 5
    assert any("feature 1 is stuck at 0 after 1,200 examples" in line for line in lines)


def raised(example, name):
    alarm = Alarm(example, "calibration", "class", name, "bets", 5.7, 5.3, 10)
    return RaisedAlarm(b"1-0", example - 1, alarm)


def test_the_live_view_tells_the_first_alarm_after_the_drift():
    plan = run.PLANS[2]
    feed = Progress(plan, total=2400, answered=1300, reports=[REPORT])
    feed.alarms = [raised(901, "a")]
    assert any("is stuck at 0" in line for line in shown([feed]))
    feed.alarms.append(raised(1241, "\x1b[2Ja"))
    said = "alarm at example 1,241, 41 after the drift: class \\x1b"
    assert said in "\n".join(shown([feed]))


def test_the_live_view_says_why_it_stands_still_at_the_first_refit():
    feed = Progress(run.PLANS[0], total=1250, answered=9)
    for feed.reports, state in ([], "first refit ..."), ([REPORT], "0/s"):
        assert f" 9 of 1,250 answered  {state} " in shown([feed])[1]


@pytest.mark.parametrize("is_terminal", [True, False])
def test_the_results_stand_once(tmp_path, monkeypatch, is_terminal):
    monkeypatch.setattr(run, "draw_curves", lambda *_: None)
    console = Console(file=io.StringIO(), width=80, force_terminal=is_terminal, color_system=None)
    feeds = feeds_at_the_end()
    with run._display(feeds, rates(), console) as show:
        show()
    live = console.file.getvalue()
    run._conclude(feeds, tmp_path / "curves.png", console)
    concluded = console.file.getvalue().removeprefix(live)
    # What the live view shows last stays on a terminal.
    assert ("log loss" in live, "log loss" in concluded) == (is_terminal, not is_terminal)
    assert concluded.rstrip().endswith("curves.png")


def test_each_kind_of_line_of_the_curves_is_in_a_legend(tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *_, **__: drawn.append(figure))
    draw_curves({"f": [REPORT, REPORT | {"n": 50, "scored": 50}]}, tmp_path / "curves.png")
    _, venn, platt, *_ = (axes.get_legend() for axes in drawn[0].axes)
    assert [text.get_text() for text in venn.texts] == [
        "mean lower and upper probability", "accuracy",
    ]  # fmt: skip
    assert [text.get_text() for text in platt.texts] == ["mean probability", "accuracy"]
