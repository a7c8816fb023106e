"""Two workers that meet in one embedded directory, which neither of them has to prepare."""

import os

import pytest
from fault_workers import is_holder
from world import COUNT, SETTINGS, Worker, World, flags_of, wait_until

from workers.broker import embedded


@pytest.fixture
def home(tmp_path):
    yield tmp_path
    embedded.stop(tmp_path / "online-svm")


@pytest.mark.slow
def test_two_workers_of_one_directory_share_its_server_and_one_goes_on_for_the_other(
    home, expected
):
    """The server outlives the one that started it, be it killed; both were given no address."""
    environment = os.environ | {"XDG_STATE_HOME": str(home)}
    place, command = home / "online-svm", ("worker", "f", "--quiet", *flags_of(SETTINGS))
    with Worker(*command, env=environment) as one, Worker(*command, env=environment) as other:
        wait_until(lambda: embedded.running(place) is not None)
        with World(embedded.running(place).url, "f", patience=10.0) as world:
            world.push(COUNT // 2)
            world.wait_for(COUNT // 2, 90.0)
            assert (one.poll(), other.poll()) == (None, None)
            server = (place / "redis.pid").read_text()
            killed, stays = (one, other) if is_holder(world.store, one) else (other, one)
            killed.kill()
            world.push(COUNT // 2)
            world.wait_for(COUNT)
            assert world.outcome() == expected
            assert world.store.state().epoch == 2
            assert is_holder(world.store, stays)
            assert (place / "redis.pid").read_text() == server
        stays.stopped()
