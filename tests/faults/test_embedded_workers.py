"""Two workers that meet in one embedded directory, which neither of them has to prepare."""

import os
import sys

import pytest
from fault_workers import OPTIONS, is_holder
from processes import Process
from world import COUNT, finished, push, rows, wait_until

from workers.broker import embedded
from workers.broker.store import Store


@pytest.fixture
def home(tmp_path):
    yield tmp_path
    embedded.stop(tmp_path / "online-svm")


@pytest.mark.slow
def test_two_workers_of_one_directory_share_its_server_and_one_goes_on_for_the_other(
    home, expected
):
    """The server outlives the one that started it, be it killed; both were given no address."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("ONLINE_SVM_")}
    command = [sys.executable, "-m", "workers.cli", "worker", "f", *OPTIONS]
    environment = clean | {"XDG_STATE_HOME": str(home)}
    workers = [Process(command, env=environment) for _ in range(2)]
    try:
        place = home / "online-svm"
        wait_until(lambda: embedded.running(place) is not None)
        with Store(embedded.running(place).url, "f", patience=10.0, block_ms=20) as store:
            push(store, rows()[: COUNT // 2])
            wait_until(lambda: store.length(store.keys.out) == COUNT // 2, 90.0)
            assert [worker.poll() for worker in workers] == [None, None]
            server = (place / "redis.pid").read_text()
            workers.sort(key=lambda worker: not is_holder(store, worker))
            workers[0].kill()
            push(store, rows()[COUNT // 2 :], COUNT // 2 + 1)
            assert finished(store, COUNT) == expected
            assert store.state().epoch == 2
            assert is_holder(store, workers[1])
            assert (place / "redis.pid").read_text() == server
        workers[1].terminate()
        assert workers[1].wait(20) == 0
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
