"""What systemd is told, by a socket that stands for it, and what a worker serves and logs."""

import json
import os
import socket
import time
import urllib.request

import pytest
from processes import LIMIT
from world import wait_until

from workers.errors import Trouble
from workers.monitor.health import Health
from workers.monitor.watch import WorkerWatch
from workers.monitor.watching import Supervisor, interval, supervised

pytestmark = pytest.mark.servers("embedded")


@pytest.fixture
def manager(tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as server:
        server.bind(str(tmp_path / "notify"))
        server.settimeout(LIMIT)
        yield server


@pytest.fixture
def worker():
    """Return a worker with one feed, which tells it its stages."""
    watch = WorkerWatch()
    watch.on_feed_added("f")
    watch.on_started()
    return watch, Health(watch, live=30.0)


def heard(manager):
    return manager.recv(4096).decode().splitlines()


def test_a_start_is_put_off_until_the_worker_answers_then_it_is_ready_once(manager, worker):
    watch, health = worker
    supervisor = Supervisor(manager.getsockname(), watch, health)
    supervisor.tick()
    assert heard(manager) == [
        "EXTEND_TIMEOUT_USEC=30000000", "STATUS=f: the worker is starting", "WATCHDOG=1",
    ]  # fmt: skip
    watch.feeds["f"].enter("answering")
    supervisor.tick()
    assert heard(manager) == ["READY=1", "STATUS=answers", "WATCHDOG=1"]
    supervisor.tick()
    assert heard(manager) == ["STATUS=answers", "WATCHDOG=1"]


def test_a_standby_counts_as_started(manager, worker):
    watch, health = worker
    watch.feeds["f"].enter("standby")
    Supervisor(manager.getsockname(), watch, health).tick()
    told = "STATUS=f: another worker holds the lease, this one stands by"
    assert heard(manager) == ["READY=1", told, "WATCHDOG=1"]


def test_a_lasting_failure_starves_the_watchdog(manager, worker):
    watch, health = worker
    watch.feeds["f"].enter("answering")
    watch.feeds["f"].refits_fail(Trouble("it died", time.monotonic() - 31))
    Supervisor(manager.getsockname(), watch, health).tick()
    assert heard(manager) == ["READY=1", "STATUS=refits: of f: it died"]


def test_a_block_tells_at_once_again_and_at_its_end(manager, worker):
    environment = {"NOTIFY_SOCKET": manager.getsockname(), "WATCHDOG_USEC": "60000"}
    with supervised(environment, *worker):
        assert "WATCHDOG=1" in heard(manager)
        assert "WATCHDOG=1" in heard(manager)
    manager.settimeout(0.2)
    while (last := heard(manager))[0] != "STOPPING=1":
        assert "WATCHDOG=1" in last


def test_a_worker_tells_when_it_answers_and_that_it_stops(world, manager):
    told, service = set(), {"NOTIFY_SOCKET": manager.getsockname(), "WATCHDOG_USEC": "300000"}
    with world.worker("--quiet", env=os.environ | service) as worker:
        wait_until(lambda: told.update(heard(manager)) or "READY=1" in told)
        assert {"STATUS=feeds: the worker is starting", "STATUS=answers", "WATCHDOG=1"} <= told
        worker.stopped()
        wait_until(lambda: told.update(heard(manager)) or "STOPPING=1" in told)


def test_a_manager_that_is_gone_is_no_error(tmp_path, worker):
    Supervisor(str(tmp_path / "none"), *worker).tick()


def test_an_abstract_socket_is_found(worker):
    name = f"online-svm-{time.monotonic_ns()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind("\0" + name)
        manager.settimeout(10)
        Supervisor("@" + name, *worker).send("READY=1")
        assert heard(manager) == ["READY=1"]


def test_a_watchdog_of_another_process_sets_no_pace():
    assert interval({"WATCHDOG_USEC": "300000", "WATCHDOG_PID": "1"}) == 1.0


def test_a_worker_is_scraped_and_every_line_it_logs_is_a_json_object(world):
    count, feed = world.push(120), world.feed
    worker = world.worker("--metrics", "0", "--log-format", "json")
    wait_until(lambda: "\n" in worker.said)
    first = json.loads(worker.said.splitlines()[0])
    assert first["event"] == "metrics are served"
    assert first["address"].startswith("http://127.0.0.1:")

    def is_shown(text):
        with urllib.request.urlopen(first["address"], timeout=LIMIT) as reply:
            return f"online_svm_{text}" in reply.read().decode()

    assert is_shown('build_info{numpy="')
    wait_until(lambda: is_shown(f'answers_total{{feed="{feed}"}} {count}.0'))
    wait_until(lambda: is_shown(f'lag_entries{{feed="{feed}"}} 0.0'))  # it is read twice a second
    lines = [json.loads(line) for line in worker.stopped().splitlines()]
    assert {"level", "event", "timestamp"} <= set.intersection(*map(set, lines))
    assert lines[-1]["event"] == "stopped"
    assert (lines[-1]["feed"], lines[-1]["answered"]) == (feed, count)


@pytest.mark.parametrize(("feed_name", "option", "told"), [
    ("no name", ("--log-format", "json"), "feed name 'no name'"),
    ("f", ("--log-format", "json", "--metrics", "nowhere"),
     "setting metrics: 'nowhere' is no address: write a port"),
])  # fmt: skip
def test_the_error_that_ends_a_worker_is_a_json_object_too(run, feed_name, option, told):
    code, _, said = run("worker", feed_name, *option)
    found = json.loads(said.splitlines()[-1])
    assert (code, found["level"], told in found["event"]) == (2, "error", True)
