"""A stream answered without any fault, a Redis to break, and a worker's loop in a thread."""

import threading
import time

import pytest
from fault_redis import Server
from session_steps import run
from system_tools import redis_server
from world import COUNT, drain, outcome, push, rows, session

from workers.broker.store import Store
from workers.stop import Stop


@pytest.fixture(scope="session")
def examples():
    """The input of every test here."""
    return rows(COUNT)


@pytest.fixture(scope="session")
def expected(embedded_url, examples):
    """What must come out of it, whatever happens."""
    with Store(embedded_url, "uninterrupted", block_ms=20) as store:
        push(store, examples)
        drain(session(store), COUNT)
        return outcome(store)


@pytest.fixture
def system_program():
    """Path of a redis-server of version 7 or later, which counts what a stream got and lost."""
    return redis_server(7)


@pytest.fixture
def counting_server(system_program, tmp_path):
    """A Redis of that program, to be stopped and started."""
    server = Server(tmp_path / "counting", "no", system_program)
    yield server
    server.kill()


@pytest.fixture
def server(tmp_path, request):
    """A Redis on loopback TCP of the test's own; its parameter says when it synchronises.

    By itself it leaves that to the system, so that a slow disk does not look like a bad network.
    """
    server = Server(tmp_path / "redis", getattr(request, "param", "no"))
    yield server
    server.kill()


@pytest.fixture
def direct(server, examples):
    """A store on it with no fault in between, its input filled."""
    with Store(server.url, "f", block_ms=20, patience=20.0) as store:
        store.call("CONFIG", "SET", "appendfsync", "no")  # only here: each push would wait for it
        push(store, examples)
        store.call("CONFIG", "SET", "appendfsync", server.fsync)
        yield store


def pause(_outcome):
    """Leave time for a fault between two batches, however fast the machine is."""
    time.sleep(0.01)


@pytest.fixture
def at_work(server, direct):
    """Run a session in a thread; the errors it ended with, if any, are in the list."""
    stop, errors, threads = Stop(grace=5.0), [], []

    def begin(url=None, refits=None, timeout=None, **options):
        store = Store(url or server.url, "f", stop, patience=None, block_ms=20)
        if timeout is not None:
            store._connection.timeout = store._reader.timeout = timeout

        def work():
            try:
                with store:
                    run(session(store, stop=stop, refits=refits, observe=pause, **options), stop)
            except Exception as error:
                errors.append(error)

        threads.append(threading.Thread(target=work))
        threads[0].start()
        return store, errors

    yield begin
    stop.request()
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()
