"""The sentence of the verdict is true: feeds are simulated whose true state is known."""

import numpy as np
import orjson
import pytest
from verdict_kinds import KINDS, is_right, right

from online_svm.config.groups import MonitorConfig, WindowConfig
from online_svm.metrics.agreement import Agreement
from online_svm.metrics.cost_matrix import CostMatrix, RealisedCost
from online_svm.metrics.sequential.monitor_set import MonitorSet
from online_svm.metrics.sequential.wealth import Finding
from online_svm.metrics.windowed_validity import WindowedValidity
from online_svm.stream.alarm import Alarm
from online_svm.stream.prediction import ScoredRows
from workers.message.encode import dumps
from workers.reading.agreement import DEFAULT_TOLERANCE
from workers.reading.incidents import incident_of
from workers.reading.status import FeedStatus
from workers.reading.verdict import verdict

LABELS = ("a", "b", "c")
RIGHT_AT_LEAST = 0.97
OPEN_EXAMPLES = 2_000  # examples after which no model knows of what was before an alarm
EVERY = 100  # labels between two reports


def sentence_on(feed):
    """Return the sentence on a feed after its last report."""
    n, k = feed.point.shape
    labelled = np.ones(n, dtype=np.bool_) if feed.labelled is None else feed.labelled
    columns = np.where(labelled, feed.truth, -1)
    at = np.flatnonzero(labelled)
    at = at[: len(at) // EVERY * EVERY]
    seq = int(at[-1]) + 1
    point, truth, order = feed.point[at], feed.truth[at], np.arange(len(at))
    rows = ScoredRows(
        order, LABELS[:k], truth, point, point, point, point, point[:, -1:] - 0.5,
        np.zeros_like(order), 1, weights=None if feed.weights is None else feed.weights[at],
    )  # fmt: skip
    agreement = Agreement(DEFAULT_TOLERANCE, counts_asked=feed.weights is None)
    agreement.count(feed.point[:seq], columns[:seq])
    most = 1 if feed.weights is None else int(feed.weights.max())
    monitors, noticing = (MonitorSet(MonitorConfig(), in_order=False, most=most) for _ in range(2))
    found = [each for each in monitors.update(rows) if isinstance(each, Finding)]
    begin, alarms = 0, []
    for each in found:
        alarm = Alarm(each.row + 1, each.kind, each.scope, each.name, each.monitor,
                      each.log_wealth, each.threshold, each.since)  # fmt: skip
        is_open = alarm.n > len(at) - OPEN_EXAMPLES
        stop = max(begin, alarm.n if is_open else alarm.n + OPEN_EXAMPLES)
        agreement.update(rows.part(begin, stop), order[begin:stop] + 1)
        agreement.restart(stop)
        noticing.update(rows.part(begin, stop))
        if not is_open:
            noticing.close_notices()
        begin, alarms = stop, [*alarms, alarm] if is_open else alarms
    agreement.update(rows.part(begin, len(at)), order[begin:] + 1)
    noticing.update(rows.part(begin, len(at)))
    windows = WindowedValidity(WindowConfig(), most)
    windows.update(rows)
    report = {
        "seq": seq - 1, "n": len(at), "agreement": agreement.report(), "windowed": windows.report(),
        "monitors": {"notices": noticing.notices()},
    }  # fmt: skip
    if feed.costs is not None:
        realised = RealisedCost(CostMatrix(feed.costs, LABELS[:k]))
        realised.update(point, truth)
        report["costs"] = realised.report()
    status = FeedStatus(
        feed="f", holder="h", seq=n - 1, n=int(labelled.sum()),
        answer={"status": "ok", "guarantee": "exact"}, report=orjson.loads(dumps(report)),
        settings={"predictor": {"costs": feed.costs}}, incident=incident_of(alarms),
    )  # fmt: skip
    return verdict(status).sentence


def share_right(kind, feeds):
    """Return the share of feeds whose sentence is true."""
    make = KINDS[kind][0]
    seeds = ([seed, 37, *map(ord, kind)] for seed in range(feeds))
    return np.mean([is_right(kind, sentence_on(make(np.random.default_rng(s)))) for s in seeds])


def test_the_default_tolerance_is_that_of_the_setting():
    assert MonitorConfig().tolerance == DEFAULT_TOLERANCE


@pytest.mark.parametrize("kind", KINDS)
def test_the_sentence_is_right_of_some_feeds(kind):
    assert share_right(kind, 6) >= 5 / 6


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_the_sentence_is_right_of_97_in_100_feeds(kind):
    found = share_right(kind, 100)
    print(f"{kind}: {found:.3f}")
    assert found >= RIGHT_AT_LEAST


@pytest.mark.slow
@pytest.mark.parametrize("labels", [150, 1_000, 5_000])
def test_no_length_of_a_good_feed_makes_the_sentence_false(labels):
    found = [sentence_on(right(np.random.default_rng([i, labels]), labels)) for i in range(100)]
    false = [one for one in found if not one.startswith(("Holds", "Too early"))]
    assert len(false) <= 1, false
