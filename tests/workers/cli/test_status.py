"""`status`: one feed in full, all of them in a table, and what scripts can tell from it."""

import os
import pty
import re
import sys
from dataclasses import replace

import numpy as np
import orjson
import pytest
from answered_feed import ROWS
from processes import Process
from shipped_redis import PROGRAMS

from online_svm.config import PredictorConfig
from online_svm.config.groups import WindowConfig
from online_svm.metrics.agreement import Agreement
from online_svm.metrics.window_ring import SLICE_VALUES, SliceValues
from online_svm.metrics.windowed_validity import WindowedValidity
from online_svm.predictor.answer_scoring import StreamValidity
from online_svm.stream.alarm import Alarm, Moved
from online_svm.stream.prediction import ScoredRows
from workers.broker import embedded
from workers.broker.leases import Holder
from workers.broker.store import Store
from workers.cli.status import fact_lines
from workers.config.settings import Limits
from workers.feed.keys import REGISTRY
from workers.feed.pinned_config import pinned_config
from workers.feed.state_fields import PendingLabels
from workers.message.encode import encode_alarms, encode_report
from workers.reading.facts import facts
from workers.reading.lag import Lag
from workers.reading.status import FeedStatus
from workers.reading.verdict import verdict


@pytest.fixture
def url(request):
    """A server of the test's own: the table shows all feeds of a server."""
    with embedded.temporary(PROGRAMS[getattr(request, "param", "embedded")]()) as server:
        yield server.url


@pytest.fixture
def run(run_command, url):
    """Run `status`; return exit code, standard output, standard error."""
    return lambda *arguments: run_command("status", *arguments, "--redis", url)


REPORT = {"n": 100, "scored": 90, "headline": {"predicted": {
    "accuracy": 0.9, "lower": 0.8, "probability": 0.85, "upper": 0.95}}}  # fmt: skip


def begin(url, feed, waiting=0, holder=None, report=None):
    """Make a feed with entries that wait, perhaps a worker that holds it, perhaps a report."""
    with Store(url, feed) as store:
        store.register()
        for i in range(1, waiting + 1):
            store.call("XADD", store.keys.input, f"{i}-0", "x", "[1]")
        if holder is not None:
            store.call("SET", store.keys.lease, Holder.here(holder).encode())
        if report is not None:
            store.call("XADD", store.keys.met, "*", "p", orjson.dumps(report))


def test_a_feed_without_a_worker_says_so_and_a_script_can_tell(run, url):
    begin(url, "idle", waiting=2)
    begin(url, "busy", waiting=2, holder="host-1")
    code, out, err = run("idle")
    assert (code, err) == (0, "")
    assert "  worker     none holds the lease, so nothing is answered (0 so far)\n" in out
    assert orjson.loads(run("idle", "--json")[1])["holder"] is None
    assert run("idle", "--check") == (1, out, "idle: no worker\n")
    code, out, err = run("busy", "--check")
    assert (code, "  worker     host-1 (0 so far)\n" in out, err) == (0, True, "")


def test_the_check_of_all_feeds_names_each_without_a_worker(run, url):
    for name, holder in (("a", None), ("b", "host-1"), ("c", None)):
        begin(url, name, waiting=1, holder=holder)
    code, out, err = run("--check", "--json")
    assert (code, err) == (1, "a: no worker\nc: no worker\n")
    assert [orjson.loads(line)["feed"] for line in out.splitlines()] == ["a", "b", "c"]


def test_a_feed_that_cannot_be_shown_does_not_pass_the_check(run, url):
    begin(url, "b", waiting=1, holder="host-1")
    with Store(url, "gone") as store:
        store.register()
        store.call("SADD", REGISTRY, "\x1b[2J")
    code, out, err = run("--check")
    assert code == 1
    assert "gone: no feed" in err
    assert "1 name no feed has: \\x1b[2J" in err
    assert "\x1b" not in out + err
    assert run()[0] == 0


@pytest.mark.parametrize(
    ("url", "behind", "shown", "cell"),
    [
        ("embedded", 1000, "1,000", "1,000"), ("oldest", 999, "999", "999"),
        ("oldest", 1000, "1,000 or more", "1,000+"),
    ],
    indirect=["url"],
)  # fmt: skip
def test_what_waits_behind_kept_entries_is_marked_where_it_was_not_counted(
    run, url, behind, shown, cell
):
    begin(url, "f", waiting=behind + 1)
    with Store(url, "f") as store:
        store.fence("test", pinned_config(PredictorConfig(), Limits()))
        store.call("HSET", store.keys.state, "cursor", "1-0", "seq", 1)
    found = orjson.loads(run("f", "--json")[1])
    assert found["waiting"] == behind
    assert found["waiting_is_at_least"] is cell.endswith("+")
    assert f"  waiting    {shown}\n" in run("f")[1]
    assert f" {cell} " in run()[1]


def test_all_feeds_are_one_table_with_a_line_a_feed(run, url):
    assert run()[1].startswith("no feeds yet: online-svm push FEED SOURCE")
    none = dict.fromkeys(("accuracy", "lower", "probability", "upper"))
    young = {"n": 1, "scored": 0, "headline": {"predicted": none}}
    begin(url, "mail", waiting=3, holder="host-1", report=REPORT)
    begin(url, "web", waiting=1)
    begin(url, "young", holder="a\x1b[2J", report=young)
    report = made_report(["yes", "no"] * 60, np.full(120, 0.5)) | {"headline": REPORT["headline"]}
    begin(url, "recent", holder="host-2", report=report)
    lines = [re.split(r"  +", line.strip()) for line in run()[1].splitlines()]
    assert lines[0] == ["0 of 4 feeds well, 2 not, 2 to be seen"]
    assert lines[1] == ["verdict", "feed", "answered", "waiting", "rejected"]
    assert [line[1:] for line in lines[2:]] == [  # the worst first
        ["mail", "0", "3", "0"],
        ["web", "0", "1", "0"],
        ["recent", "0", "0", "0"],
        ["young", "0", "0", "0"],
    ]
    assert lines[5][0] == "Too early to say (needs about 100 more labels): 0 answers scored"
    assert lines[4][0] == (
        "Too early to say (needs about 270 more labels): announced 50 of 100, right were 50, over "
        "all 120"
    )
    found = [orjson.loads(line) for line in run("--json")[1].splitlines()]
    told = {one["feed"]: one["verdict"]["sentence"] for one in found}
    assert [told[line[1]] for line in lines[2:]] == [line[0] for line in lines[2:]]


def on_a_terminal(columns, *command):
    """Return the lines that a command writes to a terminal of so many columns."""
    ours, theirs = pty.openpty()
    environment = os.environ | {"COLUMNS": str(columns), "TERM": "xterm"}
    process = Process(
        [sys.executable, "-m", "workers.cli", *command], stdout=theirs, env=environment
    )
    os.close(theirs)
    written = b""
    try:
        while part := os.read(ours, 4096):
            written += part
    except OSError:  # how Linux tells that the other side is closed
        pass
    os.close(ours)
    assert process.wait(60) == 0
    return re.sub(r"\x1b\[[\d;]*m", "", written.decode()).splitlines()


def test_the_table_fits_a_terminal_of_80_columns_and_is_whole_in_a_pipe(run, url):
    long = "x" * 64
    begin(url, long, waiting=1, holder="a-host-of-a-cloud-with-a-name.eu-central-1.example")
    begin(url, "mail", waiting=1_000, report=REPORT)
    lines = on_a_terminal(80, "status", "--redis", url)
    assert len(lines) == 4
    assert max(map(len, lines)) <= 80
    assert lines[1].split()[-1] == "rejected"
    assert lines[2].startswith("No worker has")
    assert "1,000" in lines[2] + lines[3]
    assert "No worker has begun this feed; 1,000 entries wait, the oldest for " in run()[1]
    assert f"  {long}  " in run()[1]


def made_report(labels, probability_of_yes, slices=None, most=SLICE_VALUES):
    """Return the payload of a report made of these answers."""
    rows = len(labels)
    point = np.stack([1 - probability_of_yes, probability_of_yes], axis=1)
    n, columns = np.arange(rows), np.array([label == "yes" for label in labels], dtype=np.int64)
    config = WindowConfig(slices=() if slices is None else ("country",))
    values = SliceValues(len(config.slices), most)
    sent = None if slices is None else [(value,) for value in slices]
    windows, validity = WindowedValidity(config), StreamValidity([])
    windows.update(
        ScoredRows(
            n, ("no", "yes"), columns, point, point, point, point, point, n, 1,
            values.codes(sent, rows),
        )
    )  # fmt: skip
    agreement = Agreement(tolerance=0.02)
    agreement.add(point, columns, ("no", "yes"))
    report = replace(
        validity.report(rows), windowed=windows.report(values), agreement=agreement.report()
    )
    return orjson.loads(encode_report(report, rows))


def test_the_worst_class_and_the_worst_slice_are_those_farthest_off_by_chance(run, url):
    labels = ["no"] * 90 + ["yes"] * 10
    countries = ["DE"] * 80 + ["\x1b[2J"] * 20
    begin(url, "f", report=made_report(labels, np.full(100, 0.05), countries))
    out = run("f")[1]
    assert [line.strip() for line in out.splitlines()[:7]] == [
        "feed f",
        "verdict    No worker has begun this feed.",
        "Start one: online-svm worker f",
        "accuracy   .900 (.824 to .951) right, .950 announced in .950 to .950, over the last 100 "
        "scored (-2.3 standard deviations)",
        "log loss   .346 (.172 to .520)",
        "Brier      .092 (.039 to .146) = miscalibration .003 - discrimination .000 + "
        "uncertainty .090",
        "error      calibration error below .097",
    ]
    assert (
        "class      worst class yes: came in .100 (.049 to .176), .050 announced, over 10 (+2.3 "
        "standard deviations)" in out
    )
    assert (
        "slice      worst country = \\x1b[2J: .500 (.272 to .728) right, .950 announced, over 20 "
        "(-9.2 standard deviations)" in out
    )
    found = orjson.loads(run("f", "--json")[1])
    assert found["validity"]["windowed"]["slices"]["country"][0]["value"] == "DE"
    # Values beyond the limit are shown together.
    countries = ["DE"] * 10 + [f"v{i}" for i in range(20)]
    begin(url, "g", report=made_report(["no"] * 30, np.full(30, 0.4), countries, most=1))
    assert "worst country: all other values: 1.000 (" in run("g")[1]


OFF = Alarm(5040, "calibration", "class", "b", "bets", 5.7, 5.3, 4000, -0.05, -0.09, -0.02, 0.9)
MOVED = Alarm(
    5041, "exchangeability", "scores", "odds", "ranks", 8.0, 7.7, 10, moved=(Moved("hour", 1.92),)
)


def raise_alarms(url, feed, *entries):
    with Store(url, feed) as store:
        for i, alarms in enumerate(entries, 1):
            store.call("XADD", store.keys.alarms, f"{i}-0", "p", encode_alarms(alarms, 5039 + i))


def test_the_open_alarms_come_first_of_one_test_the_newest(run, url):
    begin(url, "f", waiting=1)
    raise_alarms(url, "f", [OFF], [OFF, MOVED])
    lines = run("f")[1].splitlines()
    at = lines.index("  incident   since example 5,040, 3 alarms, of calibration, exchangeability")
    assert lines[at + 1 : at + 3] == [
        "  alarm      at example 5,041: the features have changed (watched since example 10); "
        "feature hour has risen by 1.9 standard deviations",
        "             at example 5,040: class b: announced 90 of 100, true were 85 (81 to 88), "
        "since example 4,000",
    ]
    found = orjson.loads(run("f", "--json")[1])
    assert found["open_alarms"] == [orjson.loads(orjson.dumps(alarm)) for alarm in (OFF, MOVED)]
    assert [part["n"] for part in found["incident"]["parts"]] == [5040, 5040, 5041]


def test_open_notices_are_in_the_verdict_the_lines_and_the_json(run, url):
    begin(url, "f", waiting=1)
    shares = {"announced": 0.02, "happened": 0.05, "lower": 0.04, "upper": 0.061}
    notice = {
        "n": 90,
        "scope": "class",
        "name": "b",
        "direction": "low",
        "since": 60,
        "examples": 9,
    }
    notices = [notice | shares, notice | shares | {"name": "c"}, {"n": "another program's"}]
    with Store(url, "f") as store:
        report = REPORT | {"monitors": {"alarms": 0, "open": [], "notices": notices, "tests": []}}
        store.call("XADD", store.keys.met, "1-0", "p", orjson.dumps(report))
    words = "class b: announced 2.0 of 100, true were 5.0 (4.0 to 6.1), in 9 since example 60"
    out = run("f")[1]
    assert f"  notice     {words}\n" in out
    assert words.replace("class b", "class c") in out
    found = orjson.loads(run("f", "--json")[1])
    assert found["notices"] == notices[:2]
    status = FeedStatus(feed="f", holder="host-1", report=report)
    told = verdict(status)
    assert (told.level, told.sentence) == ("care", f"Off: {words}")
    assert told.advice == "And 1 other notice."


def test_the_first_alarm_is_the_one_that_leaves_no_guarantee(run, url):
    begin(url, "f", waiting=1)
    raise_alarms(url, "f", [MOVED], [replace(OFF, n=5050 + i, name=f"c{i}") for i in range(5)])
    out = run("f")[1]
    told = re.findall(r"^  .{9}  at example ([\d,]+): ", out, re.MULTILINE)
    assert told == ["5,041", "5,054", "5,053"]
    assert "and 3 other tests" in out
    with Store(url, "f") as store:
        store.call("XADD", store.keys.alarms, "3-0", "p", "\x1b[31m")
    code, _, err = run("f")
    assert (code, "another program" in err) == (4, True)


def test_the_status_of_a_feed_that_was_answered_names_reports_and_snapshots(
    run_command, answered, answered_url
):
    out = run_command("status", answered[0], "--redis", answered_url)[1]
    assert out.startswith("feed answered\n")
    assert f" scored of the first {ROWS // 40 * 40} learned\n" in out
    assert f"\n  answered   {ROWS + 1} entries, {ROWS} learned, up to " in out
    assert f"\n  kept       {ROWS + 1} answers, {ROWS // 40} reports, 1 rejected\n" in out
    assert re.search(rf"\n  snapshots  at n = {ROWS}( and \d+)?\n", out)


def test_labels_that_come_late_have_lines():
    counts = {"pending": 100, "unlabelled": 40, "late": 1200, "censored": 3, "seconds": 7500.0}
    bounds = {"lower": 0.7, "estimate": 0.72, "upper": 0.74}
    labels = {"counts": counts, "accuracy": bounds, "brier": None}
    lines = fact_lines(facts(FeedStatus(feed="f", report=REPORT | {"labels": labels})))
    assert lines == [
        ("in all", ".900 (.819 to .953) right, .850 announced in .800 to .950, over 90 scored of "
                   "the first 100 learned"),
        ("labels", "100 examples wait, 40 of them without a label, the oldest for 2 h 5 min"),
        ("", "1,200 came late, 3 examples whose horizon passed without one"),
        ("", "accuracy in the end from .700 to .740; .720 if the probabilities are right"),
    ]  # fmt: skip
    pending = Lag(0, False, 0.0, PendingLabels(100, 40))
    lines = fact_lines(facts(FeedStatus(feed="f", lag=pending)))
    assert [name for name, _ in lines] == ["labels", ""]
    assert "unless --maturity arrival" in lines[1][1]
