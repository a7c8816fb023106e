"""Taking a feed over: where the replay begins, what refuses it, and a stop during it."""

import json
from dataclasses import replace
from hashlib import sha256

import numpy as np
import pytest
from session_steps import InlineRefits, recovery, shared_pool, taken_over
from world import drain, push

from online_svm.config import PredictorConfig
from online_svm.config.semantics import SEMANTICS
from online_svm.predictor.batch import finished
from online_svm.storage.state import pack, unpack
from workers.config.settings import Limits
from workers.errors import ConfigurationChanged, ReplayMismatch, SnapshotsLost, StateLost, Stopped
from workers.feed.pinned_config import pinned_config
from workers.feed.recent_ids import RecentIds
from workers.feed.state import PinnedConfig
from workers.session import snapshots
from workers.session.session import Session, SessionOptions
from workers.stop import Stop

CONFIG = PredictorConfig(window=60, refit_every=20, gamma=0.5)
OURS = pinned_config(CONFIG, Limits())


def taking(store, refits=None, may_create=False, **options):
    return recovery(store, CONFIG, Limits(), refits, may_create=may_create, **options)


def recovered(store, **options):
    """Take a feed over in one go."""
    return finished(taking(store, **options).steps())


@pytest.fixture
def worked(store):
    """A feed of 100 answered examples, with snapshots at 40 and 80, and nothing since 100."""
    push(store, [["x", f"[{i % 7},{i % 5}]", "y", "ab"[i % 2]] for i in range(100)])
    options = SessionOptions(batch=10, snapshot_every=40)
    drain(taken_over(Session(taking(store, may_create=True), options)), 100)
    return store


def test_each_take_over_is_a_new_epoch_and_replays_from_the_newest_snapshot(worked):
    for epoch in (2, 3, 4):
        found = recovered(worked)
        assert (found.epoch, found.replayed, found.predictor.n) == (epoch, 20, 100)
        assert found.position == worked.state().position
    assert worked.state().writer == "tester"


def test_other_bytes_than_were_committed_are_refused(worked):
    worked.call("HSET", worked.keys.state, "digest", "11" * 32)
    with pytest.raises(ReplayMismatch, match=r"committed 1111.*online-svm verify"):
        recovered(worked)


def test_a_configuration_that_changed_since_the_preflight_is_refused(worked):
    other = PinnedConfig("{}", "00")
    config = json.dumps({"predictor": {"C": 9.0, "semantics": SEMANTICS}})
    hashed = sha256(config.encode()).hexdigest()
    worked.call("HSET", worked.keys.state, "config", config, "config_hash", hashed)
    with pytest.raises(ConfigurationChanged, match=r"C: feed 9\.0"):
        finished(replace(taking(worked), pinned=other).steps())


def test_a_feed_that_must_exist_is_not_begun(store):
    with pytest.raises(StateLost, match="gone"):
        recovered(store)
    assert store.types() == {}


def test_a_stop_ends_a_replay(worked):
    stop = Stop()
    stop.request()
    with pytest.raises(Stopped):
        recovered(worked, stop=stop)


def forge(store, name, damage):
    """Damage the learner within a kept snapshot, and record it as if it had always been so."""
    state, recent = store.state(), RecentIds(Limits().dedupe_window)
    stored = snapshots.read(store, getattr(state, name), OURS.config_hash)
    header, arrays = unpack(recent.restore_from(stored.body))
    arrays["learner"] = np.frombuffer(damage(arrays["learner"].tobytes()), dtype=np.uint8)
    body = recent.prepend_to(pack(header, arrays))
    feed = store.keys.feed
    chunks = getattr(state, name).chunks
    pointer, data = snapshots.encode(feed, OURS.config_hash, stored.position, body, chunks)
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
        yield InlineRefits(CONFIG)
        return
    with shared_pool().refitter(CONFIG) as made:
        yield made


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_learner_that_cannot_be_read_makes_the_previous_snapshot_be_used(worked, refits, damage):
    """The checksum holds; and a refit elsewhere would see the damage only when it is due."""
    forge(worked, "snapshot", damage)

    found = recovered(worked, refits=refits)
    assert found.replayed == 60
    assert found.position == worked.state().position
    assert found.kept.newest == worked.state().previous
    forge(worked, "previous", damage)
    with pytest.raises(SnapshotsLost, match="learner"):
        recovered(worked, refits=refits)
