"""The query of a recording runs, and gives what the streams of the feed say."""

import json
import re
import sqlite3
from collections import defaultdict
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from recorded_feed import answering, push, stream

from workers.recording.backup import backup

PAGE = (Path(__file__).parents[2] / "docs" / "operate.md").read_text(encoding="utf-8")


@pytest.fixture
def recorded(embedded_url, feed, tmp_path):
    """Record a feed; return the file, and what each day must give."""
    with answering(embedded_url, feed) as (store, answer, _):
        push(store, 0, 100)
        answer()
        backup(store, tmp_path / "mail.sqlite")
        sent = {at: dict(zip(f[::2], f[1::2], strict=True)) for at, f in stream(store, "input")}
        days = defaultdict(list)
        for at, (_, payload) in stream(store, "out"):
            message = json.loads(payload)
            if message["status"] == "ok":
                day = datetime.fromtimestamp(int(at.split(b"-")[0]) / 1000, UTC).date()
                right = message["label"] == sent[at][b"y"].decode()
                days[str(day)].append((right, message["probability"]))
    return tmp_path / "mail.sqlite", [
        (day, len(rows), *(sum(values) / len(rows) for values in zip(*rows, strict=True)))
        for day, rows in sorted(days.items())
    ]


def test_the_query_gives_the_accuracy_of_each_day(recorded):
    file, expected = recorded
    (query,) = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
    with closing(sqlite3.connect(file)) as connection:
        found = connection.execute(query).fetchall()
    assert len(found) == 5
    assert [row[:2] for row in found] == [row[:2] for row in expected]
    for ours, theirs in zip(found, expected, strict=True):
        assert ours[2:] == pytest.approx(theirs[2:])
