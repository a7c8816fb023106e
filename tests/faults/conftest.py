"""A Redis to break, a feed on it, a worker in a thread, and what must come out whatever happens."""

import pytest
from fault_redis import Server
from threaded_feed import Answering
from world import World


@pytest.fixture(scope="session")
def expected(embedded_url):
    """What must come out of the feed of every test here, whatever happens."""
    with World(embedded_url, "uninterrupted") as world:
        world.push()
        world.answer()
        world.check()
        return world.outcome()


@pytest.fixture
def server(tmp_path, request):
    """A Redis on loopback TCP of the test's own; its parameter says when it synchronises."""
    with Server(tmp_path / "redis", getattr(request, "param", "no")) as server:
        yield server


@pytest.fixture
def direct(server):
    """The feed on it with no fault in between, its input filled."""
    with World(server.url, "f", retry_timeout=20.0) as world:
        world.store.call("CONFIG", "SET", "appendfsync", "no")  # else each push would wait for it
        world.push()
        world.store.call("CONFIG", "SET", "appendfsync", server.fsync)
        yield world


@pytest.fixture
def at_work(direct):
    """Start a worker on the feed, in a thread and slow enough for faults between its batches."""
    started = []

    def begin(url=None, **options):
        options |= {"batch": 2, "pause": 0.01, "keep_input": False}
        started.append(Answering(url or direct.url, "f", **options))
        return started[-1]

    yield begin
    for worker in started:
        worker.end()
