"""What the endpoint says of a worker, held against what stands in Redis."""

import json

import pytest
from monitored_feed import COUNT, Watched, push, work, working
from scipy.stats import binomtest

from online_svm.stream.alarm import Alarm
from workers.broker.store import Store
from workers.broker.streams import payload
from workers.feed.position import START
from workers.feed.state import Commit
from workers.message.encode import encode_alarms
from workers.monitor.metrics import MAX_DETAILED_FEEDS, of_report
from workers.reading.status import read_status
from workers.reading.verdict import LEVELS, trust
from workers.session.telemetry import Telemetry

ALARM = Alarm(50, "calibration", "overall", None, "tolerant", 4.7, 4.6, 10)


@pytest.fixture
def watched(store):
    found = Watched(store)
    yield found
    found.close()


def test_counters_guarantee_and_validity_are_what_stands_in_redis(store, watched):
    push(store)
    work(store, watched.metrics)
    rejected = store.call("XRANGE", store.keys.dlq, "-", "+")
    assert watched("answers_total") == store.length(store.keys.out) == COUNT
    assert watched("rejected_total", reason="dimension") == len(rejected) == 6
    assert watched("rejected_total", reason="not_finite") == 0
    assert watched("reports_total") == store.length(store.keys.met)
    assert watched("learned_examples") == store.state().position.n == COUNT - 6
    assert watched("epoch") == 1
    assert watched("snapshots_total") == 2  # after 64 entries or more, and at the end
    data, chunks = store.get_snapshot(store.state().snapshot)
    assert watched("snapshot_bytes") == len(data) + sum(map(len, chunks))
    report = json.loads(payload(store.last_entries(store.keys.met, 1)[0]))
    assert (
        watched("announced_ratio", span="cumulative")
        == (report["headline"]["predicted"]["probability"])
    )
    assert watched("accuracy_ratio", span="windowed") == report["windowed"]["overall"]["accuracy"]
    said = json.loads(payload(store.last_entries(store.keys.out, 1)[0]))["guarantee"]
    names = ("exact", "approximate", "none")
    found = {name: watched("guarantee", guarantee=name) for name in names}
    assert found == {name: float(name == said) for name in names}


def test_times_are_counted_once_for_each_batch_commit_refit_and_recovery(store, watched):
    push(store)
    work(store, watched.metrics, batch=30)
    assert watched("batch_seconds_count") >= COUNT / 30
    snapshot = 1  # the last commit has no answers
    assert watched("commit_seconds_count") == watched("batch_seconds_count") + snapshot
    assert watched("replay_seconds_count") == 1
    refits = watched("refit_seconds_count")
    assert refits == watched("refit_wait_seconds_count") >= 5
    assert 0 < watched("refit_seconds_sum") <= watched("batch_seconds_sum")


def test_what_was_not_measured_has_no_series(store, watched):
    push(store, 5)
    work(store, watched.metrics, 5)
    assert watched("accuracy_ratio", span="cumulative") is None
    assert watched("lag_entries") == 0


def test_a_restart_tells_of_its_replay(store, watched):
    push(store)
    work(store, Telemetry())
    push(store, 40, COUNT + 1)
    work(store, Telemetry(), COUNT + 40, leaves_snapshot=False)
    with working(store, watched.metrics):  # the 40 are answered again
        assert watched("replayed_total") == 40
        assert watched("replay_entries") == watched("replay_done_entries") == 40
        assert watched("stage", stage="answering") == 1


def test_retries_are_counted_by_reason(own_redis, feed):
    with Store(own_redis.url, feed, retry_timeout=0.2) as store:
        found = Watched(store)
        assert found("redis_retries_total", reason="connection") == 0
        store.call("PING")
        store.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "no")
        store.call("PING")
        store.call("CONFIG", "SET", "maxmemory", "1")
        later = Watched(store)
        with pytest.raises(Exception, match="maxmemory"):
            store.call("XADD", store.keys.input, "*", "x", "[1]")
        assert later("redis_retries_total", reason="connection") >= 1
        assert later("redis_retries_total", reason="oom") >= 1
        for each in (found, later):
            each.close()


REPORT = {
    "scored": 900,
    "headline": {"predicted": {"accuracy": 0.9, "lower": 0.8}, "log_loss": 0.3},
    "windowed": {"overall": {"accuracy": 0.7, "z": -4.5, "scored": 200, "brier": None}},
    "monitors": {
        "alarms": 3,
        "open": [{"kind": "calibration"}, {"kind": "calibration"}],
        "tests": [
            {"kind": "calibration", "scope": "class", "log_wealth": -1.0, "threshold": 6.0},
            {"kind": "calibration", "scope": "class", "log_wealth": 5.0, "threshold": 6.5},
            {"kind": "exchangeability", "scope": "class", "log_wealth": 0.5, "threshold": 7.0},
        ],
    },
    "labels": {"counts": {"pending": 7, "unlabelled": 5, "late": 3, "dropped": 0}},
}


def test_a_report_sets_the_metrics_of_validity_and_monitors():
    found = {
        (sample.name.removeprefix("online_svm_"), *list(sample.labels.values())[1:]): sample.value
        for family in of_report({"f": REPORT})
        for sample in family.samples
    }
    assert found == {
        ("scored_examples", "cumulative"): 900,
        ("scored_examples", "windowed"): 200,
        ("accuracy_ratio", "cumulative"): 0.9,
        ("accuracy_ratio", "windowed"): 0.7,
        ("announced_lower_ratio", "cumulative"): 0.8,
        ("log_loss_nats", "cumulative"): 0.3,
        ("accuracy_deviations", "windowed"): -4.5,
        ("late_labels", "late"): 3,
        ("late_labels", "dropped"): 0,
        ("open_alarms", "calibration"): 2,
        ("open_alarms", "exchangeability"): 0,
        ("monitor_log_wealth", "calibration", "class"): 5.0,
        ("monitor_log_wealth", "exchangeability", "class"): 0.5,
        ("monitor_log_threshold", "calibration", "class"): 6.5,
        ("monitor_log_threshold", "exchangeability", "class"): 7.0,
    }


CLASSES = [
    {"label": label, "examples": examples, "predicted": predicted, "accuracy": accuracy,
     "frequency": examples / 1000, "probability": 0.1, "calibration_error": None}
    for label, examples, predicted, accuracy in [
        ("legit", 900, 960, 0.9), (None, 0, 0, None), ("fraud", 30, 20, 0.75), ("a", 20, 0, None),
        ("b", 25, 0, None), ("c", 15, 10, 1.0), ("d", 10, 10, 0.0),
    ]
]  # fmt: skip


def test_the_rarest_classes_have_recall_and_precision_with_intervals():
    report = {"windowed": {"overall": {"scored": 1000}, "classes": CLASSES},
              "costs": {"mean": 0.4, "taken": {"review": 40, "legit": 960}}}  # fmt: skip
    found = {
        (sample.name.removeprefix("online_svm_"), *list(sample.labels.values())[1:]): sample.value
        for family in of_report({"f": report})
        for sample in family.samples
    }
    assert {label for name, label in found if name == "class_examples"} == set("abcd") | {"fraud"}
    assert found["class_recall_ratio", "fraud"] == 15 / 30
    assert found["class_precision_ratio", "fraud"] == 15 / 20
    bounds = binomtest(15, 30).proportion_ci(0.95, "exact")
    ends = [found[f"class_recall_{end}_ratio", "fraud"] for end in ("lower", "upper")]
    assert ends == pytest.approx([bounds.low, bounds.high], rel=1e-9)
    assert (found["class_recall_ratio", "d"], found["class_precision_ratio", "d"]) == (0, 0)
    assert ("class_precision_ratio", "a") not in found
    assert not any(name == "class_calibration_error_ratio" for name, _ in found)
    assert (found["actions", "review"], found["actions", "legit"]) == (40, 960)


def test_the_level_of_the_verdict_is_that_of_status(store, watched):
    push(store)
    work(store, watched.metrics)
    levels = {level: watched("verdict", level=level) for level in LEVELS}
    assert levels == {level: float(level == trust(read_status(store)).level) for level in LEVELS}
    assert sum(levels.values()) == 1
    last = store.last_entries(store.keys.met, 1)[0]
    entry = last[0].decode().partition("-")[0]
    store.call("XADD", store.keys.alarms, f"{int(entry) + 1}-0", "p", encode_alarms([ALARM], 60))
    later = Watched(store)
    later.metrics.answered(0.02)
    assert later("verdict", level="bad") == 1
    later.close()


def test_alarms_are_counted_by_kind(watched):
    payloads = [(f"{i}-0".encode(), encode_alarms([ALARM, ALARM], i)) for i in range(3)]
    watched.metrics.committed(Commit(1, START, START, alarms=payloads), 0.1)
    assert watched("alarms_total", kind="calibration") == 6
    assert watched("alarms_total", kind="exchangeability") == 0


def test_of_many_feeds_histograms_are_of_all_together_and_lines_are_few(redis_url, feed):
    with Store(redis_url, feed) as store:
        found = Watched(store)
        for i in range(MAX_DETAILED_FEEDS):
            found.watch.on_feed_added(f"{feed}-{i}").answered(0.02)
        found.metrics.answered(0.02)
        assert found("batch_seconds_count") is None
        whole = found.registry.get_sample_value("online_svm_batch_seconds_count", {"feed": "*"})
        assert whole == MAX_DETAILED_FEEDS + 1
        families = list(found.registry.collect())
        lines = [
            one for family in families for one in family.samples if feed in one.labels.values()
        ]
        assert len(lines) <= 20
        assert {one.labels["feed"] for one in lines} == {feed}
        found.close()


def test_a_report_that_another_program_wrote_is_left_out_and_fails_nothing(store, watched):
    push(store)
    work(store, watched.metrics)
    store.call("XADD", store.keys.met, "*", "p", "<html>")
    assert watched("learned_examples") == COUNT - 6
    assert watched("accuracy_ratio", span="cumulative") is None
    assert watched("redis_up") == 1
