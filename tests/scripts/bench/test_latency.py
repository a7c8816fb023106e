"""The latency benchmark asks for one answer at a time, and tells refits from rest."""

import pytest

from scripts.bench import latency
from scripts.bench.drift import drifting
from scripts.bench.processes import python
from workers.broker.store import Store


@pytest.mark.slow
def test_a_small_run_times_every_example_and_compares_the_two_workers(embedded_url):
    found = latency.run(600, url=embedded_url, turns=2, warm_up=2300)
    counts = {line[:34].strip(): int(line[34:43]) for line in found.lines[1:]}
    assert counts["null worker"] == 600
    # Two refits of 250 examples each at least.
    assert 0 < counts["worker while a refit runs"] == 600 - counts["worker, no refit under way"]
    assert [check.bound for check in found.checks] == [2.0, 1.5]
    assert all(check.measured > 0 for check in found.checks)


def test_the_null_worker_answers_each_entry_once_and_acknowledges_it(embedded_url):
    rows = list(drifting(20))
    with (
        python("-m", "scripts.bench.null", embedded_url, "null-alone", "300"),
        latency.Client(embedded_url, "null-alone") as client,
        Store(embedded_url, "null-alone") as store,
    ):
        assert all(client.ask(row) > 0 for row in rows)
        assert client.length == 300
        out = store.call("XRANGE", store.keys.out, "-", "+")
        source = store.call("XRANGE", store.keys.input, "-", "+")
        assert [entry[0] for entry in out] == [entry[0] for entry in source]
        assert len(out) == 20
        # The answers can be read a moment before the acknowledgement of the last one.
        assert store.call("XPENDING", store.keys.input, "null")[0] <= 1


def test_a_client_whose_worker_is_gone_says_so(embedded_url, monkeypatch):
    monkeypatch.setattr(latency, "_WAIT_MS", 20)
    with (
        latency.Client(embedded_url, "nobody-answers") as client,
        pytest.raises(latency.WorkerEnded, match="no answer"),
    ):
        client.ask(next(drifting(1)))


def test_a_process_that_fails_is_reported_with_what_it_said():
    with python("-c", "raise SystemExit('out of ideas')") as process:
        process.process.wait()
        with pytest.raises(latency.WorkerEnded, match="ended with 1: out of ideas"):
            process.wait_until(lambda: False)
