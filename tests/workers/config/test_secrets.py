"""A password that is planted is found nowhere: in no output, log line, traceback or stored key."""

import subprocess
import sys

import pytest
from world import Worker, wait_until

from workers.broker.client import client
from workers.broker.store import Store

SECRET = "pLanted-5ecret"


@pytest.fixture
def guarded(own_redis):
    """A server whose default user has the password; its URL without it."""
    with client(own_redis.url) as admin:
        admin.execute_command("CONFIG", "SET", "requirepass", SECRET)
    yield own_redis.url
    with client(with_secret(own_redis.url)) as admin:
        admin.execute_command("CONFIG", "SET", "requirepass", "")


def with_secret(url):
    return url.replace("unix://", f"unix://default:{SECRET}@")


@pytest.mark.slow
def test_what_a_worker_says_and_stores_is_free_of_it(guarded):
    """Rejected input, reports, a lost connection, a stop: all that makes a worker talk."""
    url, few = with_secret(guarded), ["--metrics-every", "5", "--replay-budget", "10"]
    with Store(url, "f") as store, Worker("worker", "f", "--redis", url, *few) as worker:
        for i in range(30):
            x = "[1,NaN]" if i % 10 == 0 else f"[1,{i}]"
            store.call("XADD", store.keys.input, "*", "x", x, "y", "ab"[i % 2])
        worker.wait_for(store, 30)
        store.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        wait_until(lambda: "redis answers again" in worker.said)
        assert "trying again" in worker.said
        assert SECRET not in worker.stopped()
        assert store.length(store.keys.met) == 5, "reports of validity are searched as well"
        keys = store.call("KEYS", "*")
        assert len(keys) >= 6
        assert not any(SECRET in repr(content(store, key)) for key in keys)


def content(store, key):
    command = {
        b"stream": ("XRANGE", key, "-", "+"),
        b"hash": ("HGETALL", key),
        b"string": ("GET", key),
        b"set": ("SMEMBERS", key),
    }[store.call("TYPE", key)]
    return store.call(*command)


def test_a_traceback_does_not_show_the_local_variables(guarded):
    code = (
        "import sys, workers.broker.store as s\n"
        "def broken(*a): url = sys.argv[-1]; raise RuntimeError('unexpected')\n"
        "s.Store.types = broken\n"
        "from workers.cli import main; main(['status', 'f', '--redis', sys.argv[-1]])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, with_secret(guarded)], capture_output=True, text=True
    )
    assert "RuntimeError: unexpected" in done.stderr
    assert SECRET not in done.stdout + done.stderr
