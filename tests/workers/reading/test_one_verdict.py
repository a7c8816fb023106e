"""The verdict on a feed is the same sentence wherever it is printed."""

import asyncio
import json
from contextlib import closing
from dataclasses import asdict
from itertools import count

import pytest
from dashboard_feed import Feed
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from online_svm.config import PredictorConfig
from online_svm.stream.alarm import Alarm
from workers.broker.client import delays
from workers.broker.connection import Connection
from workers.config.settings import Limits
from workers.dashboard.feed_follower import FeedFollower
from workers.dashboard.past_run import read_past
from workers.feed.pinned_config import pinned_config
from workers.gateway.feed import GatewayFeed
from workers.monitor.webhook import FeedAlarms
from workers.reading.status import read_progress, read_status, with_outputs
from workers.reading.verdict import printed, trust, verdict
from workers.stop import Stop

_numbers = count()


class Received:
    """A receiver of alarms, in this process."""

    host = "here"

    def __init__(self):
        self.sentences = []

    def post(self, sent):
        self.sentences.append(json.loads(sent.body)["verdict"]["sentence"])


class Story(Feed):
    """A feed to which things happen; the numbers of its entries grow."""

    def __init__(self, url):
        super().__init__(url, f"one-verdict-{next(_numbers)}")
        self.store.fence("host-1", pinned_config(PredictorConfig(), Limits()))
        self.open, self.waiting = [], count(1)
        self.hold()

    def pushed(self):
        at = f"{1000 * self.seq}-{next(self.waiting)}"
        self.store.call("XADD", self.keys.input, at, "x", "[1]", "y", "ham")

    def answered(self, kind):
        guarantee = {"exact": "exact", "approximate": "approximate"}.get(kind, "none")
        status = kind if kind in ("warming", "label", "rejected") else "ok"
        self.answer(status=status, guarantee=guarantee, reason="a reason")
        if kind in ("label", "rejected"):  # no answer: another entry of `out`
            self.put(self.keys.out, f"{1000 * self.seq}-1", {"status": kind, "reason": "a reason"})

    def reported(self, accuracy, closes):
        self.answer()
        self.open = [] if closes else self.open
        self.report(100 + self.seq, accuracy=accuracy, monitors={"open": self.open})

    def alarmed(self, kind, scope):
        self.answer()
        raised = asdict(Alarm(self.seq, kind, scope, "x", "bets", 5.7, 5.3, 1))
        self.open = [*self.open, raised]
        self.put(self.keys.alarms, f"{1000 * self.seq}-0", {"seq": self.seq, "alarms": [raised]})

    def happened(self, code):
        self.put(self.keys.events, "*", {"code": code, "writer": "host-1", "detail": "epoch 1, x"})

    def awaited(self, unlabelled):
        self.answer()
        pending = f"{unlabelled} {unlabelled} 0 1700000000000 0"
        self.store.call("HSET", self.keys.state, "pending", pending)

    def taken_over(self):
        self.store.call("HINCRBY", self.keys.state, "epoch", 1)

    def left(self):
        self.store.call("DEL", self.keys.lease)


def steps(name, *arguments):
    return st.tuples(st.just(name), *arguments)


ALARMS = ("calibration", "exchangeability")
ANSWERED = [
    steps(
        "answered",
        st.sampled_from(["exact", "approximate", "none", "warming", "label", "rejected"]),
    ),
    steps("reported", st.sampled_from([0.8, 0.6]), st.booleans()),
    steps("alarmed", st.sampled_from(ALARMS), st.sampled_from(["overall", "class", "slice"])),
]
OTHERS = [
    steps("happened", st.sampled_from(["began", "stopped", "failed", "input_ended", "note"])),
    steps("awaited", st.sampled_from([0, 3])),
    steps("pushed"),
    steps("taken_over"),
    steps("hold"),
    steps("left"),
]
once = settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
pytestmark = pytest.mark.servers("embedded")  # the sampler reads both alike: see test_lag.py


def of_gateway(feed):
    async def asked():
        gateway = GatewayFeed(feed.store.url, feed.name, 0)
        await gateway.connected(5.0)
        found = json.loads(await gateway.status())
        await gateway.close()
        return found

    return asyncio.run(asked())["verdict"]["sentence"]


@once
@given(st.lists(st.one_of(*ANSWERED, *OTHERS), min_size=1, max_size=9))
def test_status_gateway_and_page_say_the_same_whatever_happens(redis_url, happens):
    feed = Story(redis_url)
    with closing(feed.store), closing(FeedFollower(redis_url, feed.name)) as watching:
        for at, (name, *arguments) in enumerate(happens):
            getattr(feed, name)(*arguments)
            watching.viewers = at % 2
            watching.update()
            with closing(FeedFollower(redis_url, feed.name)) as fresh:
                fresh.update()
            said = verdict(read_status(feed.store)).sentence
            assert watching.shown.verdict().sentence == said
            assert fresh.shown.verdict().sentence == said
        assert of_gateway(feed) == said
        assert printed(read_status(feed.store))["verdict"] == verdict(
            with_outputs(feed.store, read_progress(feed.store))
        )
        feed.delete()


@once
@given(st.lists(st.one_of(*ANSWERED), min_size=1, max_size=9))
def test_report_and_alerts_say_what_status_says_of_a_feed_that_is_answered(redis_url, happens):
    feed, received = Story(redis_url), Received()
    with closing(feed.store):
        shared = Connection(redis_url, Stop())
        alarms = FeedAlarms(feed.name, received, shared, lambda _: None, delays)
        alarms.on_started(b"0-0")
        for name, *arguments in happens:
            getattr(feed, name)(*arguments)
            received.sentences.clear()
            while alarms.turn() is not None:
                pass
            found = with_outputs(feed.store, read_progress(feed.store))
            said = verdict(found).sentence
            if found.incident is not None and received.sentences:  # else it only went on
                assert received.sentences == [said]
            assert read_past(feed.store).trust().sentence == trust(found).sentence == said
        shared.close()
        feed.delete()
