"""What a standby finds while the worker that has the feed goes on between any two of its looks."""

import pytest
from world import CONFIG, drain, push, rows, session

from workers.broker.store import Store
from workers.config.settings import Limits
from workers.errors import OutputAhead, SnapshotsLost, StateLost
from workers.feed.agreement import agreement
from workers.session import preflight

COUNT = 120
OURS = agreement(CONFIG, Limits())


class Overtaken(Store):
    """A store beside which something happens right after the state was read for the first time."""

    def __init__(self, store, meanwhile):
        super().__init__(store.url, store.keys.feed)
        self._meanwhile = meanwhile

    def state(self):
        found = super().state()
        meanwhile, self._meanwhile = self._meanwhile, None
        if meanwhile is not None:
            meanwhile()
        return found


@pytest.fixture
def running(store):
    """A worker with two snapshots, half of its input answered."""
    push(store, rows(COUNT))
    running = session(store, batch=10, snapshot_every=20)
    drain(running, 60)
    return running


def test_answers_that_are_committed_between_two_looks_are_no_damage(store, running):
    with Overtaken(store, lambda: drain(running, 70)) as standby:
        assert preflight.check(standby, OURS).state.position.seq == 60


def test_answers_beyond_the_state_are_damage_also_beside_a_worker(store, running):
    def harm():
        drain(running, 70)
        store.call("XADD", store.keys.out, "999-0", "p", "{}")

    with (
        Overtaken(store, harm) as standby,
        pytest.raises(OutputAhead, match=r"the state ends at 70-0 \(seq 70\), .* end at 999-0"),
    ):
        preflight.check(standby, OURS)


def test_snapshots_that_are_replaced_between_two_looks_are_not_lost(store, running):
    with Overtaken(store, lambda: drain(running, COUNT)) as standby:
        assert preflight.check(standby, OURS).warnings == preflight.check(store, OURS).warnings


def test_snapshots_that_are_gone_are_lost_also_beside_a_worker(store, running):
    def harm():
        drain(running, COUNT)
        gone = [key for pointer in store.state().snapshots for key in pointer.keys(store.keys)]
        store.call("DEL", *gone)

    with Overtaken(store, harm) as standby, pytest.raises(SnapshotsLost):
        preflight.check(standby, OURS)


def test_a_feed_that_another_worker_begins_between_two_looks_is_there(store):
    push(store, rows(20))
    with Overtaken(store, lambda: drain(session(store), 20)) as standby:
        assert preflight.check(standby, OURS).state.position.seq == 20


def test_answers_without_a_state_are_a_lost_state_also_beside_a_worker(store):
    def harm():
        store.call("XADD", store.keys.out, "1-0", "p", "{}")

    with Overtaken(store, harm) as standby, pytest.raises(StateLost, match="is gone but"):
        preflight.check(standby, OURS)
