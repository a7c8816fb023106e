"""Workers whose embedded server is killed, or followed by that of another version."""

import os
import signal

import pytest
from system_tools import oldest_redis
from world import COUNT, SETTINGS, Worker, World, flags_of, wait_until

from workers.broker import embedded
from workers.broker.embedded_directory import SERVER, server_pid


@pytest.fixture
def home(tmp_path):
    yield tmp_path
    embedded.stop(tmp_path / "online-svm")


def test_a_feed_goes_on_when_another_server_follows_the_one_that_was_killed(
    home, expected, monkeypatch
):
    """As after an upgrade from 0.1.0, which embedded a Redis 6.2."""
    place = home / "online-svm"
    monkeypatch.setenv(SERVER, oldest_redis())
    with World(embedded.ensure(place).url, "f") as world:
        world.store.call("CONFIG", "SET", "appendfsync", "always")
        world.push()
        world.answer(COUNT // 2, snapshot_every=40)
        os.kill(server_pid(place), signal.SIGKILL)
    wait_until(lambda: embedded.running(place) is None)
    monkeypatch.delenv(SERVER)
    with World(embedded.ensure(place).url, "f") as world:
        assert "valkey_version" in world.store.server()
        world.answer(COUNT)
        assert world.outcome() == expected


def test_a_worker_whose_server_is_killed_starts_it_again_and_goes_on(home, expected):
    environment, place = os.environ | {"XDG_STATE_HOME": str(home)}, home / "online-svm"
    with Worker("worker", "f", "--quiet", *flags_of(SETTINGS), env=environment) as worker:
        wait_until(lambda: embedded.running(place) is not None)
        with World(embedded.running(place).url, "f", retry_timeout=30.0) as world:
            world.store.call("CONFIG", "SET", "appendfsync", "always")
            world.push(COUNT // 2)
            worker.wait_for(world.store, COUNT // 2)
            os.kill(server_pid(place), signal.SIGKILL)
            world.push(COUNT // 2)
            worker.wait_for(world.store, COUNT)
            assert world.outcome() == expected
        assert "it is started again" in worker.stopped()
