"""The throughput benchmark runs, and its peers do the work they stand for."""

from itertools import count

import orjson
import pytest

from scripts.bench import feed, peers, profile, timing
from scripts.bench import worker as bench
from scripts.bench.feed import WARM_UP, stream
from workers.broker.store import Store
from workers.config.settings import WorkerSettings


@pytest.mark.slow
def test_a_small_run_gives_a_ratio_to_each_peer(embedded_url):
    rows = bench.run(600, url=embedded_url, repeats=1)
    assert [row.name for row in rows] == [
        "engine / null worker",
        "engine / reads and commits alone",
        "default / null worker",
        "default / one refit after the other",
        "default / river StandardScaler | LogisticRegression",
        "default / river StandardScaler | PAClassifier",
    ]
    assert all(row.ours > 0 and row.peer > 0 for row in rows)
    assert orjson.loads(orjson.dumps(rows[0].plain()))["ratio"] == rows[0].ratio


@pytest.mark.slow
def test_the_parts_of_a_profile_make_the_whole(embedded_url, monkeypatch):
    class Clock:
        """Goes on only when it is looked at."""

        perf_counter = count().__next__

    monkeypatch.setattr(timing, "time", Clock)
    monkeypatch.setattr(feed, "time", Clock)
    before = Store.send
    for found in profile.run(600, url=embedded_url):
        # It goes on by one outside of all parts, between two steps of the worker; a step without an
        # entry takes two looks at least, one with some takes twenty.
        assert 0.5 * found.whole < sum(found.parts.values()) < found.whole
        assert all(value >= 0 for value in found.parts.values())
        assert found.parts["parse"] > 0
        assert found.plain()["parts"] == found.parts
    assert Store.send is before


def test_the_bare_commits_write_an_answer_to_every_entry(embedded_url):
    examples = stream(WARM_UP + 700)
    peers.bare_commits(embedded_url, WorkerSettings(), examples, length=300)
    with Store(embedded_url, "bench-bare") as store:
        ids = [entry[0] for entry in store.call("XRANGE", store.keys.input, "-", "+")]
        assert [entry[0] for entry in store.call("XRANGE", store.keys.out, "-", "+")] == ids
        assert store.state().position.cursor == ids[-1]


def test_the_null_worker_answers_and_acknowledges_every_entry(embedded_url):
    peers.null_worker(embedded_url, stream(WARM_UP + 700), batch=256, length=300)
    with Store(embedded_url, "bench-null") as store:
        out = store.call("XRANGE", store.keys.out, "-", "+")
        source = store.call("XRANGE", store.keys.input, "-", "+")
        assert [entry[0] for entry in out] == [entry[0] for entry in source]
        assert {len(entry[1][1]) for entry in out} == {300}
        assert store.call("XPENDING", store.keys.input, "null")[0] == 0
