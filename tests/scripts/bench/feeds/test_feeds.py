"""`bench feeds`, small: copies of a feed go on as it would; each part measures and is kept."""

import pytest

from scripts.bench.feeds import load, run
from scripts.bench.harness import python, stream, worker
from workers.broker.store import Store

SMALL = load.Sizes(
    idle=4, learning=3, busy=3, rate=10.0, window=60, refit_every=20, replayed=5,
    rest=0.5, seconds=1.0, counts=(1, 3), backlog=60, moderate=40.0, steady=0.5,
)  # fmt: skip
OF_PARTS = (
    "mb_a_feed", "share", "start_stopped_s", "stop_s", "p99_ms_many", "p99_ms_alone",
    "processor_us_many", "processor_us_alone_fast",
)  # fmt: skip
BY_NUMBER = (
    "rate", "median_ms", "p99_ms", "processor_us_full", "redis_us_full", "share_thread",
    "share_refits", "share_redis", "share_machine", "share_memory", "processor_us_moderate",
    "redis_us_moderate", "mb", "mb_of_refits", "processors",
)  # fmt: skip
OF_SIZES = [f"{name}_{count}" for name in BY_NUMBER for count in SMALL.counts]
FIGURES = dict.fromkeys([*OF_PARTS, *OF_SIZES], 1.0)


def test_what_was_measured_is_kept_and_held_against_its_bounds(tmp_path, monkeypatch):
    asked = []
    for name in run.PARTS:
        monkeypatch.setitem(run.PARTS, name, lambda _, name=name: asked.append(name) or FIGURES)
    results = tmp_path / "feeds.jsonl"
    parts = list(run.measured(None, SMALL, results))
    every = ["idle", "learning", "busy", "sizes"]
    assert [part.values["part"] for part in parts] == asked == every
    assert list(map(str, run.measured(None, SMALL, results))) == list(map(str, parts))
    assert len(asked) == 4, "nothing is measured twice"
    assert not parts[0].holds
    bounds = {one["name"]: one["at most"] for part in parts for one in part.checks}
    assert bounds["MB of an idle feed"] == 3.0
    assert bounds["s to start 4 after a stop"] == pytest.approx(0.04)
    assert bounds["MB of a feed that learns"] == pytest.approx(5.0096)
    larger = next(run.run(results=results))
    assert [one["at most"] for one in larger.checks] == [3.0, 2.0, 10.0, 10.0]
    assert len(asked) == 5


@pytest.mark.slow
def test_copies_of_a_feed_go_on_as_it_does_under_a_steady_load(embedded_url):
    learned, rows = stream(80), stream(120)[80:]
    feeds = load.names(2)
    load.fill(embedded_url, learned, SMALL.options)
    load.copy(embedded_url, feeds)
    assert load.answered(embedded_url, feeds) == [80, 80]
    assert load.unsaved(embedded_url, feeds) == 0, "a start replays nothing"
    every = [*feeds, load.TEMPLATE]
    load.push(embedded_url, every, rows[:20])
    with python(*worker(every, embedded_url, SMALL.options)) as started:
        started.wait_until(lambda: load.answered(embedded_url, every) == [100] * 3)
        answers = [out(embedded_url, feed) for feed in every]
        steady = load.SteadyLoad(rate=200.0, seconds=0.3, watched=feeds)
        measured = load.steady(embedded_url, started, every, rows, steady)
    assert answers[0] == answers[1] == answers[2]
    assert len(answers[0]) == load.KEPT_ANSWERS + 20
    assert measured["sent"] == 60
    assert 0 < measured["median_ms"] <= measured["p90_ms"] <= measured["p99_ms"]


def out(url, feed):
    """Return the answers that are kept of a feed."""
    with Store(url, feed) as store:
        return [entry[1][1] for entry in store.call("XRANGE", store.keys.out, "-", "+")]


@pytest.mark.scale
def test_a_small_run_measures_each_part(tmp_path):
    parts = {
        part.values["part"]: part.values["figures"]
        for part in run.measured(None, SMALL, tmp_path / "feeds.jsonl")
    }
    assert parts["idle"]["start_killed_s"] > 0
    assert parts["idle"]["mb"] > 50
    assert parts["learning"]["mb_of_refits"] > 50
    assert parts["busy"]["p99_ms_many"] >= parts["busy"]["median_ms_many"] > 0
    assert parts["idle"]["stop_s"] > 0
    assert parts["idle"]["stop_unsaved"] == 0
    assert set(parts["sizes"]) >= set(OF_SIZES)
    assert parts["sizes"]["rate_3"] > 0
    assert parts["sizes"]["p99_ms_3"] >= parts["sizes"]["median_ms_3"] > 0


def test_what_limits_is_what_has_no_time_left():
    idle = dict.fromkeys(("thread", "refits", "redis", "machine", "memory"), 0.1)

    def limit(**shares):
        found = {f"share_{name}_9": share for name, share in (idle | shares).items()}
        return run.limit(found | {"processors_9": 2}, 9)

    assert limit(thread=0.95, machine=0.99, redis=0.5) == "the thread of the process"
    assert limit(redis=0.97, thread=0.95) == "Redis"
    assert limit(refits=0.93, thread=0.6) == "refits"
    assert limit(memory=0.95, thread=0.6) == "memory"
    assert limit(thread=0.8, refits=0.5, machine=0.97) == "the 2 processors together"
    assert limit(thread=0.5) == "none alone; most of all the thread of the process"


def test_what_limits_each_number_of_feeds_is_printed_and_in_json():
    part = run.result("sizes", SMALL, FIGURES)
    assert part.lines[-2:] == [f"{count} feeds are limited by memory" for count in (1, 3)]
    assert part.plain()["limits"] == {"1": "memory", "3": "memory"}
