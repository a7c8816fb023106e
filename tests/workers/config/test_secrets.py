"""A password that is planted is found nowhere: in no output, log line, traceback or stored key."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from processes import Process

from workers.broker import embedded
from workers.broker.client import client
from workers.broker.store import Store
from workers.config.redis_url import redacted

SECRET = "pLanted-5ecret"
HALF = "5ecret"  # what a URL that is cut at a character of the password would leave


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


def run(*arguments, **environment):
    """Run the command in a process of its own; return its exit code and all that it said."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("ONLINE_SVM_")}
    done = subprocess.run(
        [sys.executable, "-m", "workers.cli", *arguments],
        env=clean | environment, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def ways(tmp_path):
    """Ways to hand over a URL with a password: more arguments, and the environment."""

    def of(url):
        host, password = tmp_path / "settings.toml", tmp_path / "password"
        host.write_text(f'redis = "{with_secret(url)}"\n')
        password.write_text(SECRET)
        files = {"ONLINE_SVM_REDIS": url.replace("unix://", "unix://default@"),
                 "ONLINE_SVM_REDIS_PASSWORD_FILE": str(password)}  # fmt: skip
        return [
            (("--redis", with_secret(url)), {}),
            ((), {"ONLINE_SVM_REDIS": with_secret(url)}),
            (("--config", str(host)), {}),
            ((), files),
        ]

    return of


@pytest.mark.slow
def test_every_way_to_give_it_works_and_none_shows_it(guarded, ways):
    for arguments, environment in ways(guarded):
        for command in (("check",), ("check", "--json"), ("status",)):
            code, said = run(*command, *arguments, **environment)
            assert code == 0, said
            assert SECRET not in said


@pytest.mark.slow
@pytest.mark.parametrize(
    "url",
    [
        f"redis://me:{SECRET}@127.0.0.1:1/0",
        f"redis://me:{SECRET}@127.0.0.1:notaport/0",
        f"redis://me:pLanted/{HALF}@127.0.0.1:1/0",
        f"redis://me:pLanted#{HALF}@127.0.0.1:1/0",
        f"redis://me:pLanted?{HALF}@127.0.0.1:1/0",
        f"redis://me:pLanted@{HALF}@127.0.0.1:1/0",
        f"redis://127.0.0.1:1/0?password={SECRET}",
        f"redis://[{HALF}@127.0.0.1",
        f"http://me:{SECRET}@127.0.0.1/",
        f"me:{SECRET}@127.0.0.1",
        f"unix://me:{SECRET}@/nowhere/redis.sock",
    ],
)
def test_a_url_that_leads_nowhere_is_told_without_its_password(url):
    code, said = run("status", "--redis", url)
    assert code == 2, said
    assert HALF not in said
    assert "Traceback" not in said
    assert HALF not in redacted(url)


@pytest.mark.slow
def test_what_a_worker_says_and_stores_is_free_of_it(guarded, tmp_path):
    """Rejected input, a lost connection, a restart of Redis: all that makes a worker talk."""
    url, log = with_secret(guarded), tmp_path / "log"
    clean = {k: v for k, v in os.environ.items() if not k.startswith("ONLINE_SVM_")}
    command = [sys.executable, "-m", "workers.cli", "worker", "f", "--redis", url]
    command += ["--metrics-every", "5", "--replay-budget", "10"]
    with Store(url, "f") as store, log.open("w") as target:
        for i in range(30):
            x = "[1,NaN]" if i % 10 == 0 else f"[1,{i}]"
            store.call("XADD", store.keys.input, "*", "x", x, "y", "ab"[i % 2])
        with Process(command, stderr=target, stdout=target, env=clean) as worker:
            wait_until(lambda: store.length(store.keys.out) == 30, worker)
            store.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            time.sleep(1.5)
            worker.send_signal(signal.SIGTERM)
            assert worker.wait(20) == 0
        assert "trying again" in log.read_text()
        assert SECRET not in log.read_text()
        assert store.length(store.keys.met) == 5, "reports of validity are searched as well"
        found = [json.dumps(everything(store, key), default=repr) for key in keys(store)]
    assert len(found) >= 6
    assert not any(SECRET in text for text in found)


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


def test_the_embedded_server_is_told_by_its_directory(tmp_path):
    try:
        code, said = run("status", XDG_STATE_HOME=str(tmp_path))
        assert (code, str(tmp_path) in said) == (0, True)
    finally:
        embedded.stop(tmp_path / "online-svm")


def wait_until(is_true, worker):
    deadline = time.monotonic() + 60
    while not is_true():
        assert time.monotonic() < deadline
        assert worker.poll() is None
        time.sleep(0.05)


def keys(store):
    return [key.decode() for key in store.call("KEYS", "*")]


def everything(store, key):
    kind = store.call("TYPE", key)
    command = {
        b"stream": ("XRANGE", key, "-", "+"),
        b"hash": ("HGETALL", key),
        b"string": ("GET", key),
        b"set": ("SMEMBERS", key),
    }[kind]
    return repr(store.call(*command))
