"""The answers of a configuration, written as a table that the report reads."""

import csv
import io

import pytest
from recorded_feed import answering, entry, push, stream

from workers.config.settings import WorkerSettings
from workers.dashboard.past_export import read_export
from workers.errors import BadConfiguration
from workers.feed.codes import parse
from workers.offline.backtest.answers import COLUMNS, write_answers
from workers.offline.backtest.configurations import configurations
from workers.offline.backtest.history import FeedHistory, read, record


@pytest.fixture
def answered(embedded_url, feed):
    with answering(embedded_url, feed, keep_input=True) as (store, answer, _):
        push(store, 0, 80)
        answer()
        yield store


@pytest.fixture
def run(run_command, embedded_url):
    return lambda *arguments: run_command(*arguments, "--redis", embedded_url)


def test_under_the_settings_of_its_feed_the_answers_are_those_of_the_feed(answered, tmp_path):
    history = FeedHistory(answered)
    (base,) = configurations(history.settings(WorkerSettings()), {"base": {}})
    table = io.StringIO()
    recording = record(history.entries(), tmp_path / "history")
    assert write_answers(base, read(recording.path, 7), table) == 80
    rows = list(csv.DictReader(io.StringIO(table.getvalue())))
    for i, (row, (at, (_, data))) in enumerate(zip(rows, stream(answered, "out"), strict=True)):
        message = parse(data)
        assert row["entry"] == at.decode()
        for name in COLUMNS[1:11]:
            value = message.get(name)
            assert row[name] == ("" if value is None else str(value)), name
        learned = message["status"] in ("ok", "warming")
        assert row["true_label"] == (entry(i)[1]["y"] if learned else "")


def test_the_command_writes_a_table_that_the_report_reads(answered, run, tmp_path):
    feed = answered.keys.feed
    code, _, said = run(
        "backtest", feed, "--set", "other:C=2", "--answers", tmp_path, "--processes", "1"
    )
    assert code == 0, said
    assert f"80 answers in {tmp_path / 'other.csv'}" in said
    past = read_export(tmp_path / "base.csv")
    assert [a.entry_id for a in past.answers] == [at for at, _ in stream(answered, "out")]
    assert past.reports[-1].scored > 50
    code, out, said = run("report", tmp_path / "other.csv", "--out", tmp_path / "r.html")
    assert code == 0, said
    assert "reports    3 reports from 2025-11-2" in out


def test_late_labels_have_no_place_in_the_table():
    (late,) = configurations(WorkerSettings(horizon=5), {"late": {}})
    with pytest.raises(BadConfiguration, match="labels come late"):
        write_answers(late, [], io.StringIO())
