"""The benchmark of compact answers runs, and measures the sizes that are stored."""

import orjson
import pytest

from scripts.bench import payloads
from scripts.bench.report import Row


@pytest.mark.slow
def test_a_small_run_gives_rates_and_bytes_against_full_answers(embedded_url):
    rows = payloads.run(300, url=embedded_url, repeats=1)
    assert [(row.name, row.unit) for row in rows] == [
        ("engine, compact / full", "/s"),
        ("default, compact / full", "/s"),
        ("payload of an answer, compact / full", "B"),
        ("an answer in Redis, compact / full", "B"),
    ]
    payload, entry = rows[2:]
    assert payload.ours < 200 < payload.peer
    assert payload.ours < entry.ours < payload.ours + 100
    assert orjson.loads(orjson.dumps(payload.plain()))["ratio"] == payload.peer / payload.ours


def test_fewer_bytes_are_in_our_favour():
    row = Row("payload", ours=145.0, peer=725.0, unit="B")
    assert row.ratio == 5.0
    assert str(row).split() == ["payload", "145", "B", "725", "B", "5.00"]
