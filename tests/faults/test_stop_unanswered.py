"""A stop that comes while Redis does not answer: nothing half done is left behind."""

import pytest
from session_steps import run
from world import COUNT, drain, outcome, push, rows, session

from workers.broker.store import Store
from workers.errors import PositionMoved, Stopped
from workers.stop import Stop


class Refusing(Store):
    """A store whose next commit comes to nothing while a stop is requested; then it works again."""

    refusal = stop = None

    def send(self, commit):
        return super().send(commit) if self.refusal is None else None

    def confirm(self, commit, sent):
        refusal, self.refusal = self.refusal, None
        if refusal is not None:
            self.stop.request()
            raise refusal
        super().confirm(commit, sent)


@pytest.mark.parametrize("refusal", [Stopped("no answer"), PositionMoved("elsewhere")])
def test_a_stop_in_a_batch_that_was_not_committed_leaves_no_snapshot_of_it(
    embedded_url, feed, expected, refusal
):
    """With the feed moved, the position is read again, and the stop ends the replay."""
    stop = Stop()
    with Refusing(embedded_url, feed, stop, block_ms=20) as store:
        push(store, rows())
        drain(session(store), 50)
        running = session(store, stop=stop)
        drain(running, 70)
        store.refusal, store.stop = refusal, stop
        run(running, stop)
        assert store.state().snapshot is None
        assert store.state().position.seq == 70
    with Store(embedded_url, feed, block_ms=20) as store:
        drain(session(store), COUNT)
        assert outcome(store) == expected
