"""The throughput benchmark runs, and its null worker does the work it stands for."""

import pytest

from workers.bench import worker as bench
from workers.store import Store


@pytest.mark.slow
def test_a_small_run_prints_a_ratio_to_each_peer(embedded_url, capsys):
    rows = bench.run(embedded_url, entries=1000, repeats=1)
    assert [row.name for row in rows] == [
        "worker / null worker, batch 256",
        "worker / river StandardScaler | PAClassifier",
    ]
    assert all(row.ours > 0 and row.peer > 0 for row in rows)
    printed = capsys.readouterr().out
    assert all(str(row) in printed for row in rows)


def test_the_null_worker_answers_and_acknowledges_every_entry(embedded_url):
    bench.null_worker(embedded_url, bench.stream(bench.WARM_UP + 700), batch=256, length=300)
    with Store(embedded_url, "bench-null") as store:
        out = store.call("XRANGE", store.keys.out, "-", "+")
        source = store.call("XRANGE", store.keys.input, "-", "+")
        assert [entry[0] for entry in out] == [entry[0] for entry in source]
        assert {len(entry[1][1]) for entry in out} == {300}
        assert store.call("XPENDING", store.keys.input, "null")["pending"] == 0
