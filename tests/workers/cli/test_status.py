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

from online_svm.config import PredictorConfig
from online_svm.config.groups import WindowConfig
from online_svm.metrics.windowed.slice_values import SLICE_VALUES, SliceValues
from online_svm.metrics.windowed.windowed_validity import WindowedValidity
from online_svm.predictor.stream_validity import StreamValidity
from online_svm.stream.alarm import Alarm, Moved
from online_svm.stream.scored_rows import ScoredRows
from workers.broker import embedded
from workers.broker.lease import Holder
from workers.broker.store import Store
from workers.config.settings import Limits
from workers.feed.agreement import agreement
from workers.feed.keys import REGISTRY
from workers.message.encode import encode_alarms, encode_report
from workers.reading.stream_info import COUNTED


@pytest.fixture
def url():
    """A server of the test's own: the table shows all feeds of a server."""
    with embedded.temporary() as server:
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
    code, out, err = run("idle")
    assert (code, err) == (0, "")
    assert "  worker     none holds the lease, so nothing is answered (0 so far)\n" in out
    assert orjson.loads(run("idle", "--json")[1])["holder"] is None
    code, checked, err = run("idle", "--check")
    assert (code, checked, err) == (1, out, "idle: no worker\n")


def test_a_feed_with_a_worker_passes_the_check(run, url):
    begin(url, "busy", waiting=2, holder="host-1")
    code, out, err = run("busy", "--check")
    assert (code, err) == (0, "")
    assert "  worker     host-1 (0 so far)\n" in out


def test_the_check_of_all_feeds_names_each_without_a_worker(run, url):
    begin(url, "a", waiting=1)
    begin(url, "b", waiting=1, holder="host-1")
    begin(url, "c", waiting=1)
    code, out, err = run("--check", "--json")
    assert code == 1
    assert err == "a: no worker\nc: no worker\n"
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


def test_what_waits_is_exact_where_nothing_is_kept_before_it(run, url):
    begin(url, "new", waiting=COUNTED + 5)
    found = orjson.loads(run("new", "--json")[1])
    assert (found["waiting"], found["waiting_is_at_least"]) == (COUNTED + 5, False)
    assert "  waiting    1,005\n" in run("new")[1]


@pytest.mark.parametrize(
    ("behind", "shown", "cell"), [(999, "999", "999"), (1000, "1,000 or more", "1,000+")]
)
def test_what_waits_behind_kept_entries_is_marked_where_it_was_not_counted(
    run, url, behind, shown, cell
):
    begin(url, "f", waiting=behind + 1)
    with Store(url, "f") as store:
        store.fence("test", agreement(PredictorConfig(), Limits()))
        store.call("HSET", store.keys.state, "cursor", "1-0", "seq", 1)
    found = orjson.loads(run("f", "--json")[1])
    assert found["waiting"] == behind
    assert found["waiting_is_at_least"] is (behind == COUNTED)
    assert f"  waiting    {shown}\n" in run("f")[1]
    assert f" {cell} " in run()[1]


def test_all_feeds_are_one_table_with_a_line_a_feed(run, url):
    begin(url, "mail", waiting=3, holder="host-1", report=REPORT)
    begin(url, "web", waiting=1)
    begin(url, "young", holder="a\x1b[2J", report={"n": 1, "scored": 0, "headline": {"predicted": {
        "accuracy": None, "lower": None, "probability": None, "upper": None}}})  # fmt: skip
    _, out, _ = run()
    assert [line.split() for line in out.splitlines()] == [
        ["feed", "worker", "answered", "waiting", "rejected", "accuracy", "announced"],
        ["mail", "host-1", "0", "3", "0", "0.900", "0.850"],
        ["web", "none", "0", "1", "0", "-", "-"],
        ["young", "a\\x1b[2J", "0", "0", "0", "-", "-"],
    ]


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
    assert len(lines) == 3
    assert max(map(len, lines)) <= 80
    assert lines[0].split()[-1] == "announced"
    assert "0.850" in lines[1] + lines[2]
    assert f"{long}  a-host-of-a-cloud-with-a-name.eu-central-1.example " in run()[1]


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
    report = replace(validity.report(rows), windowed=windows.report(values))
    return orjson.loads(encode_report(report, rows))


def test_the_recent_figures_come_first_with_the_parts_of_the_brier_score(run, url):
    labels, p = ["yes", "no"] * 100, np.tile([0.75, 0.25], 100)
    begin(url, "f", report=made_report(labels, p))
    lines = run("f")[1].splitlines()
    assert lines[:6] == [
        "feed f",
        "  recent     accuracy 1.000 against probability 0.750 in [0.750, 0.750] over the last "
        "200 scored (+8.2 standard deviations)",
        "             log loss 0.288, Brier score 0.062 = miscalibration 0.062 - discrimination "
        "0.250 + uncertainty 0.250",
        "             calibration error 0.250, debiased",
        "             worst class yes: frequency 0.500 against probability 0.500 "
        "(+0.0 standard deviations)",
        "  validity   nothing scored yet",
    ]


def test_the_worst_class_and_the_worst_slice_are_those_farthest_off_by_chance(run, url):
    labels = ["no"] * 90 + ["yes"] * 10
    countries = ["DE"] * 80 + ["\x1b[2J"] * 20
    begin(url, "f", report=made_report(labels, np.full(100, 0.05), countries))
    out = run("f")[1]
    assert "worst class yes: frequency 0.100 against probability 0.050 (+2.3 standard" in out
    assert (
        "worst slice country \\x1b[2J: accuracy 0.500 against probability 0.950 in [0.950, 0.950] "
        "over 20 (-9.2 standard deviations)" in out
    )
    found = orjson.loads(run("f", "--json")[1])
    assert found["validity"]["windowed"]["slices"]["country"][0]["value"] == "DE"


def test_values_beyond_the_limit_are_shown_together(run, url):
    labels = ["no"] * 30
    countries = ["DE"] * 10 + [f"v{i}" for i in range(20)]
    begin(url, "f", report=made_report(labels, np.full(30, 0.4), countries, most=1))
    assert "worst slice country any other: accuracy 1.000" in run("f")[1]


def test_the_table_shows_the_recent_accuracy_of_a_feed_that_has_one(run, url):
    report = made_report(["yes", "no"] * 10, np.full(20, 0.7)) | {"headline": REPORT["headline"]}
    begin(url, "f", report=report)
    assert run()[1].splitlines()[1].split()[-2:] == ["0.500", "0.700"]


OFF = Alarm(5040, "calibration", "class", "b", "bets", 5.7, 5.3, 4000, 0.0625, 0.03, 0.09)
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
    told = [line.split()[:4] for line in run("f")[1].splitlines() if line.startswith("  alarm ")]
    assert told == [
        ["alarm", "n", "5,041", "exchangeability:"],
        ["alarm", "n", "5,040", "calibration:"],
    ]
    found = orjson.loads(run("f", "--json")[1])["open_alarms"]
    assert found == [orjson.loads(orjson.dumps(alarm)) for alarm in (OFF, MOVED)]


def test_the_first_alarm_is_the_one_that_leaves_no_guarantee(run, url):
    begin(url, "f", waiting=1)
    raise_alarms(url, "f", [MOVED], [replace(OFF, n=5050 + i, name=f"c{i}") for i in range(5)])
    _, out, _ = run("f")
    told = [line.split()[2:4] for line in out.splitlines() if line.startswith("  alarm ")]
    kinds = [["5,041", "exchangeability:"], ["5,054", "calibration:"], ["5,053", "calibration:"]]
    assert told == kinds
    assert "and 3 open alarms more" in out


def test_alarms_of_another_program_are_an_error(run, url):
    begin(url, "f", waiting=1)
    with Store(url, "f") as store:
        store.call("XADD", store.keys.alarms, "3-0", "p", "\x1b[31m")
    code, _, err = run("f")
    assert (code, "another program" in err) == (4, True)


@pytest.fixture
def of_answered(run_command, answered, answered_url):
    """Run `status` of the feed that the real command answered."""
    return lambda *arguments: run_command(
        "status", answered[0], *arguments, "--redis", answered_url
    )


def test_status_counts_what_was_answered(of_answered):
    code, out, _ = of_answered("--json")
    found = orjson.loads(out)
    assert code == 0
    assert (found["seq"], found["n"], found["waiting"]) == (ROWS + 1, ROWS, 0)
    assert (found["out"], found["met"], found["dlq"]) == (ROWS + 1, ROWS // 40, 1)
    assert found["holder"] is None
    assert found["validity"]["n"] == ROWS // 40 * 40
    out = of_answered()[1]
    assert out.startswith("feed answered\n")
    assert f" scored of the first {ROWS // 40 * 40} learned\n" in out


def test_a_server_without_feeds_says_how_one_begins(run):
    assert run()[1].startswith("no feeds yet: online-svm push FEED SOURCE")


def test_a_fork_is_listed_beside_its_feed_before_a_worker_begins_it(run, run_command, url, source):
    where = ("--redis", url)
    assert run_command("push", "mail", source, "--limit", "3", *where)[0] == 0
    assert run_command("fork", "mail", *where)[0] == 0
    found = [orjson.loads(text) for text in run("--json")[1].splitlines()]
    told = [(one["feed"], one["waiting"], one["epoch"]) for one in found]
    assert told == [("mail", 3, 0), ("mail-2", 3, 0)]
