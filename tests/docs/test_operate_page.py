"""The query of the archive runs, and gives what the streams of the feed say."""

import json
import re
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path

import pytest
from system_tools import package

package("pyarrow", "pip install 'online-svm[archive]'")

from archived_feed import answering, archive, push, stream  # noqa: E402

PAGE = (Path(__file__).parents[2] / "docs" / "operate.md").read_text(encoding="utf-8")


def block(kind):
    (found,) = re.findall(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)
    return found


@pytest.fixture
def expected(embedded_url, tmp_path, monkeypatch):
    """Archive a feed `mail` to `cold` in the present directory; yield what each day must give."""
    monkeypatch.chdir(tmp_path)
    with answering(embedded_url, "mail") as (store, answer, _):
        push(store, 0, 100)
        answer()
        archive(store, tmp_path / "cold")
        sent = {at: dict(zip(f[::2], f[1::2], strict=True)) for at, f in stream(store, "input")}
        days = defaultdict(list)
        for at, (_, payload) in stream(store, "out"):
            message = json.loads(payload)
            if message["status"] == "ok":
                day = datetime.fromtimestamp(int(at.split(b"-")[0]) / 1000, UTC).date()
                right = message["label"] == sent[at][b"y"].decode()
                days[day].append((right, message["probability"]))
        yield [
            (day, len(rows), *(sum(values) / len(rows) for values in zip(*rows, strict=True)))
            for day, rows in sorted(days.items())
        ]
        store.call("DEL", *store.types(), *store.snapshot_keys())


def check(found, expected):
    assert [(str(day), count) for day, count, *_ in found] == [
        (str(day), count) for day, count, *_ in expected
    ]
    for ours, theirs in zip(found, expected, strict=True):
        assert ours[2:] == pytest.approx(theirs[2:])


def test_the_query_for_duckdb_gives_the_accuracy_of_each_day(expected):
    duckdb = package("duckdb", "pip install duckdb")
    assert len(expected) == 5
    check(duckdb.sql(block("sql")).fetchall(), expected)
    model = "SELECT DISTINCT payload ->> '$.model' FROM 'cold/feed=mail/kind=answers/*/*.parquet'"
    assert len(duckdb.sql(model).fetchall()) > 1
