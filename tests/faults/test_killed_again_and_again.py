"""A worker that is killed sooner than its replay ends, again and again, under a backlog."""

import time

import pytest
from fault_workers import Nursery
from world import World, flags_of, rows, wait_until

ENTRIES, REPLAYED = 9_000, 7_000
LIFE = 2.0
"""Seconds from the take-over of the feed to the kill."""

OFTEN = {"refit_every": 5}
"""So many refits make a replay last several times as long, on a fast machine too."""


@pytest.fixture
def nursery(tmp_path):
    """Starts workers in milliseconds: what they import takes seconds on a busy machine."""
    made = Nursery(tmp_path / "workers.log")
    yield made
    made.close()


@pytest.fixture
def world(embedded_url, feed):
    with World(embedded_url, feed, **OFTEN) as world:
        world.entries = rows(ENTRIES)
        world.push(ENTRIES)
        yield world


def progress(world):
    """Return how far the feed is: what is committed, and what no start answers again."""
    state = world.store.state()
    saved = 0 if state.snapshot is None else int(state.snapshot.cursor.split(b"-")[0])
    return state.position.seq, saved


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_it_gets_further_each_time_and_changes_no_byte(world, nursery, tell_line):
    command = (world.feed, world.url, *flags_of(OFTEN))
    worker = nursery.start(*command)
    world.wait_for(REPLAYED)
    worker.kill()
    reached = [progress(world)]
    assert reached[0][1] == 0, "no snapshot was due"
    while world.seq < ENTRIES:
        epoch = world.store.state().epoch
        worker = nursery.start(*command)
        wait_until(lambda epoch=epoch: world.store.state().epoch > epoch)
        time.sleep(LIFE)
        worker.kill()
        reached.append(progress(world))
        assert sum(reached[-1]) > sum(reached[-2]), reached
    assert len(reached) > 3, reached
    tell_line(f"killed {LIFE:g} s after each start: {reached}")
    world.check()
