"""What systemd is told: a socket here stands for the service manager."""

import os
import socket
import time

import pytest
from processes import LIMIT
from world import wait_until

from workers.monitor.health import Health
from workers.monitor.supervisor import Supervisor, interval, supervised
from workers.monitor.watch import WorkerWatch
from workers.trouble import Trouble

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
    watch.takes("f")
    watch.begins()
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


def test_the_watchdog_of_a_worker_that_does_not_get_over_a_failure_is_not_fed(manager, worker):
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
        Supervisor("@" + name, *worker).tell("READY=1")
        assert heard(manager) == ["READY=1"]


def test_a_watchdog_of_another_process_sets_no_pace():
    assert interval({"WATCHDOG_USEC": "300000", "WATCHDOG_PID": "1"}) == 1.0
