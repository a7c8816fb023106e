"""Feeds whose workers come from a warmed parent, and what an uninterrupted one answers."""

import os
from contextlib import ExitStack
from functools import cache

import pytest
from fault_workers import Nursery, end
from history_modes import Mode
from world import World, rows


@pytest.fixture(scope="session")
def times():
    """How many of each fault to inject: 15 minutes' worth unless the environment says otherwise."""
    names = {"KILLS": 200, "PAUSES": 50, "STARTS": 100, "REDIS": 20, "CUTS": 40}
    names |= {"INSIDE": 40, "PROCESSES": 10}
    return {name: int(os.environ.get(f"CHAOS_{name}", many)) for name, many in names.items()}


@pytest.fixture(scope="session")
def nursery(tmp_path_factory):
    """A parent that has the machine code of these tests, also where labels are late and turn."""
    late = Mode("drift-refit", frozenset({"late"})).settings().predictor
    nursery = Nursery(tmp_path_factory.mktemp("nursery") / "workers.log", [late])
    yield nursery
    nursery.close()


@pytest.fixture(scope="session")
def expected_of(embedded_url):
    """Return what an uninterrupted session answers to the first `count` entries."""

    @cache
    def answer(count):
        with World(embedded_url, f"whole-{count}") as world:
            world.entries = rows(count)
            world.push(count)
            world.answer(batch=64)
            return world.outcome()

    return answer


class Trial(World):
    """A feed of so many entries whose workers start in milliseconds."""

    def __init__(self, url, feed, nursery, expected_of, count, **options):
        super().__init__(url, feed, **options)
        self.entries = rows(count)
        self._nursery, self._expected_of = nursery, expected_of

    def start(self, *options, **named):
        return self._nursery.start(self.feed, self.url, *map(str, options), **named)

    def check(self, worker=None):
        """Let a worker answer the rest, and stop it; return the position.

        All answers are those of an uninterrupted worker.
        """
        if worker is not None:
            assert end(self.store, worker, self.pushed) == 0
        assert self.outcome() == self._expected_of(self.pushed)
        return self.store.state().position


@pytest.fixture
def trial(nursery, embedded_url, feed, expected_of):
    """Return a trial of so many entries, on the embedded server or another one."""
    with ExitStack() as opened:

        def begin(count, url=embedded_url, **options):
            made = Trial(url, feed, nursery, expected_of, count, **options)
            return opened.enter_context(made)

        yield begin


@pytest.fixture
def told(capsys):
    """Print a line whatever pytest captures: what was injected, and the digest that came out."""

    def tell(injected, position=None):
        digest = f"{position.seq} answers, digest {position.digest.hex()}" if position else ""
        came = digest and f"; {digest}"
        with capsys.disabled():
            print(f"\n  {injected}{came}")

    return tell
