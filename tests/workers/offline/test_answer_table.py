"""Answers of a feed and of its file as a Parquet table: the same cells as the table of text."""

import csv
import io

import pytest
from recorded_feed import answering, push
from system_tools import package

package("pyarrow", "pip install 'online-svm[archive]'")

from pyarrow import parquet as pq  # noqa: E402

from workers.offline.answer_table import AnswerTable, write_parquet  # noqa: E402
from workers.recording.backup import backup  # noqa: E402


@pytest.fixture
def recorded(embedded_url, feed, tmp_path):
    with answering(embedded_url, feed) as (store, answer, _):
        push(store, 0, 60)
        answer()
        backup(store, tmp_path / "feed.sqlite")
    return feed, tmp_path / "feed.sqlite"


def test_each_cell_is_that_of_the_table_of_text(recorded, embedded_url, tmp_path, run_command):
    feed, file = recorded
    target, last = tmp_path / "answers.parquet", ("--redis", embedded_url)
    assert run_command("export", feed, target, "--features", *last)[0] == 0
    code, text, _ = run_command("export", str(file), "--features", *last)
    assert code == 0
    rows = list(csv.DictReader(io.StringIO(text)))
    with target.open("rb") as source:
        table = pq.read_table(source)
    assert table.column_names == list(rows[0])
    assert str(table.schema.field("probability").type) == "double"
    assert str(table.schema.field("seq").type) == "int64"
    for ours, theirs in zip(table.to_pylist(), rows, strict=True):
        assert {name: _cell(value) for name, value in ours.items()} == theirs


def _cell(value):
    return "" if value is None else str(int(value) if isinstance(value, bool) else value)


def test_a_number_beyond_64_bits_in_a_forged_answer_is_text(embedded_url, feed, tmp_path):
    with answering(embedded_url, feed) as (store, answer, _):
        push(store, 0, 3)
        answer()
        forged = '{"seq": 9223372036854775808, "n": 9223372036854775807}'
        store.call("XADD", store.keys.out, "*", "p", forged)
        table = AnswerTable(store, features=False)
        with (tmp_path / "answers.parquet").open("wb") as target:
            assert write_parquet(target, table, lambda _: None) == 4
    read = pq.read_table(tmp_path / "answers.parquet")
    assert read["seq"].to_pylist() == ["0", "1", "2", str(2**63)]
    assert read["n"].to_pylist()[-1] == 2**63 - 1


def test_without_pyarrow_one_line_names_the_extra(recorded, tmp_path, run_command, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    code, _, said = run_command("export", str(recorded[1]), tmp_path / "x.parquet")
    assert (code, "pip install 'online-svm[archive]'" in said) == (2, True)
    assert not (tmp_path / "x.parquet").exists()
