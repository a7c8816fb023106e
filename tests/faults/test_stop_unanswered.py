"""A stop that comes while Redis does not answer: nothing half done is left behind."""

import pytest
from session_steps import run
from world import World, drain

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
    with World(embedded_url, feed) as world, Refusing(embedded_url, feed, stop, block_ms=20) as bad:
        world.push()
        world.answer(50)
        running = world.session(bad, stop=stop)
        drain(running, 70)
        bad.refusal, bad.stop = refusal, stop
        run(running, stop)
        assert world.store.state().snapshot is None
        assert world.seq == 70
        world.answer()
        assert world.outcome() == expected
