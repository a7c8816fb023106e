"""Feeds whose workers are forked, and what every test here prints."""

import os
from contextlib import ExitStack

import pytest
from fault_workers import Nursery, end
from world import World, rows


@pytest.fixture(scope="session")
def times():
    """How many of each fault to inject: 15 minutes' worth unless the environment says otherwise."""
    names = {"PAUSES": 50, "STARTS": 100, "INSIDE": 40, "PROCESSES": 10}
    return {name: int(os.environ.get(f"CHAOS_{name}", many)) for name, many in names.items()}


@pytest.fixture(scope="session")
def nursery(tmp_path_factory):
    """A parent of workers that start in milliseconds."""
    nursery = Nursery(tmp_path_factory.mktemp("nursery") / "workers.log")
    yield nursery
    nursery.close()


class Trial(World):
    """A feed of so many entries whose workers start in milliseconds."""

    def __init__(self, url, feed, nursery, count):
        super().__init__(url, feed)
        self.entries, self._nursery = rows(count), nursery

    def start(self, *options, **named):
        return self._nursery.start(self.feed, self.url, *map(str, options), **named)

    def check(self, worker=None):
        """Let a worker answer the rest, and stop it; check all answers, return the position."""
        if worker is not None:
            assert end(self.store, worker, self.pushed) == 0
        super().check()
        return self.store.state().position


@pytest.fixture
def trial(nursery, embedded_url, feed):
    """Return a trial of so many entries."""
    with ExitStack() as opened:
        yield lambda count: opened.enter_context(Trial(embedded_url, feed, nursery, count))


@pytest.fixture
def told(capsys):
    """Print a line whatever pytest captures: what was injected, and the digest that came out."""

    def tell(injected, position=None):
        came = f"; {position.seq} answers, digest {position.digest.hex()}" if position else ""
        with capsys.disabled():
            print(f"\n  {injected}{came}")

    return tell
