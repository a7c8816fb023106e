"""Taking a feed over in a changed environment, and stopping while it is being taken over."""

import json
from hashlib import sha256

import numpy as np
import pytest
from session_steps import shared_pool
from world import drain, push

from online_svm.config import PredictorConfig
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.refit.inline import InlineRefitter
from online_svm.storage.container import pack, unpack
from workers.config.settings import Limits
from workers.errors import (
    ConfigurationChanged,
    EnvironmentChanged,
    ReplayMismatch,
    SnapshotsLost,
    StateLost,
    Stopped,
)
from workers.feed.agreement import agreement
from workers.feed.recent_ids import RecentIds
from workers.feed.state import Agreement
from workers.session import snapshots
from workers.session.recovery import Recovery
from workers.session.session import Session
from workers.stop import Stop

CONFIG = PredictorConfig(window=60, refit_every=20, gamma=0.5)
OURS = agreement(CONFIG, Limits())


def recovery(store, ours=OURS, stop=None, accept=False):
    return Recovery(
        store, ours, Limits(), lambda: OnlinePredictor(CONFIG), "tester", stop or Stop(), accept
    )


@pytest.fixture
def worked(store):
    """A feed of 100 answered examples, with snapshots at 40 and 80, and nothing since 100."""
    push(store, [["x", f"[{i % 7},{i % 5}]", "y", "ab"[i % 2]] for i in range(100)])
    drain(Session(store, recovery(store), Limits(), batch=10, snapshot_every=40), 100)
    return store


def test_each_take_over_is_a_new_epoch_and_replays_from_the_newest_snapshot(worked):
    for epoch in (2, 3, 4):
        recovered = recovery(worked)()
        assert (recovered.epoch, recovered.replayed, recovered.predictor.n) == (epoch, 20, 100)
        assert recovered.position == worked.state().position
    assert worked.state().writer == "tester"


def test_an_accepted_environment_is_proved_from_the_older_snapshot_and_recorded(worked):
    stored = json.loads(OURS.environment) | {"numba": "0.1.0"}
    worked.call("HSET", worked.keys.state, "environment", json.dumps(stored))
    with pytest.raises(EnvironmentChanged):
        recovery(worked)()
    assert recovery(worked, accept=True)().replayed == 60
    assert worked.state().agreement == OURS
    assert recovery(worked)().replayed == 20


def test_other_bytes_than_were_committed_are_refused_also_in_an_accepted_environment(worked):
    worked.call("HSET", worked.keys.state, "digest", "11" * 32)
    with pytest.raises(ReplayMismatch, match="committed 1111"):
        recovery(worked)()
    worked.call("HSET", worked.keys.state, "environment", "{}")
    with pytest.raises(ReplayMismatch, match="online-svm verify"):
        recovery(worked, accept=True)()
    assert worked.state().agreement.environment == "{}"


def test_a_configuration_that_changed_since_the_preflight_is_refused(worked):
    other = Agreement("{}", "00", OURS.environment)
    config = '{"predictor":{"C":9.0,"semantics":4}}'
    hashed = sha256(config.encode()).hexdigest()
    worked.call("HSET", worked.keys.state, "config", config, "config_hash", hashed)
    with pytest.raises(ConfigurationChanged, match=r"C: feed 9\.0"):
        recovery(worked, other)()


def test_a_feed_that_must_exist_is_not_begun(store):
    with pytest.raises(StateLost, match="gone"):
        recovery(store)(begins=False)
    assert store.types() == {}


def test_a_stop_ends_a_replay(worked):
    stop = Stop()
    stop.request()
    with pytest.raises(Stopped):
        recovery(worked, stop=stop)()


def forge(store, name, damage):
    """Damage the learner within a kept snapshot, and record it as if it had always been so."""
    state, recent = store.state(), RecentIds(Limits().dedupe_window)
    stored = snapshots.read(store, getattr(state, name), OURS.config_hash)
    header, arrays = unpack(recent.restore_from(stored.body))
    arrays["learner"] = np.frombuffer(damage(arrays["learner"].tobytes()), dtype=np.uint8)
    body = recent.prepend_to(pack(header, arrays))
    feed = store.keys.feed
    pointer, data = snapshots.encode(feed, OURS.config_hash, stored.position, body)
    store.call("SET", store.keys.snapshot(pointer.n, pointer.sha256), data)
    store.call("HSET", store.keys.state, name, pointer.encode())


def without_classes(learner):
    own, parts = unpack(learner)
    return pack(own | {"n_classes": 0}, parts)


DAMAGE = {
    "truncated": lambda learner: learner[: len(learner) // 2],
    "nonsense": lambda learner: b"\1\2\3\4" * (len(learner) // 4),
    "without classes": without_classes,
}


@pytest.fixture(scope="module", params=["inline", "pooled"])
def refits(request):
    if request.param == "inline":
        yield InlineRefitter(CONFIG)
        return
    with shared_pool().refitter(CONFIG) as made:
        yield made


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_learner_that_cannot_be_read_makes_the_previous_snapshot_be_used(worked, refits, damage):
    """The checksum holds; and a refit elsewhere would see the damage only when it is due."""
    forge(worked, "snapshot", damage)

    def fresh():
        refits.reset(None)
        return OnlinePredictor(CONFIG, refits)

    taking = Recovery(worked, OURS, Limits(), fresh, "tester", Stop())
    recovered = taking()
    assert recovered.replayed == 60
    assert recovered.position == worked.state().position
    assert recovered.kept.newest == worked.state().previous
    forge(worked, "previous", damage)
    with pytest.raises(SnapshotsLost, match="learner"):
        taking()
