"""Data that the embedded server of 0.1.0 kept, a Redis 6.2, is read by the one that follows it."""

import os
import signal
from pathlib import Path

import pytest
from redis import Redis
from shipped_redis import content
from system_tools import oldest_redis
from world import wait_until

from workers.broker import embedded
from workers.broker.embedded_directory import SERVER, server_pid

FILE = Path(__file__).parents[2] / "data" / "redis-6.2.aof"

FEEDS, IN, OUT, ST = "osvm:feeds", "osvm:{f}:in", "osvm:{f}:out", "osvm:{f}:st"
OLDER, NEWER = "osvm:{f}:snap:10:0a1b2c3d", "osvm:{f}:snap:20:4e5f6a7b"
EXPIRES = 4_000_000_000_000
"""In milliseconds, in the year 2096."""

COMMIT = """
for i = ARGV[1], ARGV[2] do redis.call('XADD', KEYS[2], i .. '-0', 'p', '{"n":' .. i .. '}') end
redis.call('HSET', KEYS[1], 'cursor', ARGV[2] .. '-0', 'seq', ARGV[2])
redis.call('XTRIM', KEYS[3], 'MINID', ARGV[1] .. '-0')
redis.call('XGROUP', 'SETID', KEYS[3], 'osvm', ARGV[2] .. '-0')
"""
"""What a commit does, in short. It stands in the file as a transaction."""


def begin(redis):
    """Write a feed that is half answered: streams, groups, a hash, a set and a snapshot."""
    redis.execute_command("SADD", FEEDS, "f", "other")
    for i in range(1, 31):
        redis.execute_command("XADD", IN, f"{i}-0", "x", f"[{i},.5]", "y", "ab"[i % 2])
    redis.execute_command("XGROUP", "CREATE", IN, "osvm", "0")
    redis.execute_command("HSET", ST, "epoch", "1", "digest", b"\x00\xff" * 16)
    redis.execute_command("EVAL", COMMIT, 3, ST, OUT, IN, 1, 10)
    redis.execute_command("XGROUP", "CREATE", OUT, "sink", "0")
    redis.execute_command("XREADGROUP", "GROUP", "sink", "one", "COUNT", 4, "STREAMS", OUT, ">")
    redis.execute_command("XACK", OUT, "sink", "1-0", "2-0")
    redis.execute_command("SET", OLDER, bytes(range(256)) * 2)


def go_on(redis):
    """Write more of it, and let the older snapshot expire, as a worker does."""
    redis.execute_command("EVAL", COMMIT, 3, ST, OUT, IN, 11, 25)
    redis.execute_command("XDEL", IN, "28-0")
    redis.execute_command("XADD", IN, "900-7", "x", "[1,2]", "id", "late")
    redis.execute_command("PEXPIREAT", OLDER, EXPIRES)
    redis.execute_command("SET", NEWER, b"\r\n$3\r\n*1")
    redis.execute_command("SET", "osvm:{other}:wanted", "1-0")
    redis.execute_command("UNLINK", "osvm:{other}:wanted")
    redis.execute_command("HINCRBY", ST, "epoch", 1)


def everything(redis):
    """Return all that a server has: each key with content, time to live, last ID and groups."""
    found = {}
    for key, held in content(redis).items():
        found[key] = held, redis.pttl(key) > 0
        if redis.type(key) == b"stream":
            groups = [
                (group["name"], group["last-delivered-id"], redis.xpending(key, group["name"]))
                for group in redis.xinfo_groups(key)
            ]
            found[key] += (redis.xinfo_stream(key)["last-generated-id"], groups)
    return found


MANIFEST = "file appendonly.aof seq 1 type b\n"


@pytest.fixture
def directory(tmp_path_factory):
    """A directory whose path is short enough for a socket."""
    place = tmp_path_factory.mktemp("d") / "state"
    place.mkdir(mode=0o700)
    yield place
    embedded.stop(place)


@pytest.fixture(scope="module")
def written():
    """What a server has to which the same was written."""
    with embedded.temporary() as server, Redis.from_url(server.url) as redis:
        begin(redis)
        go_on(redis)
        yield everything(redis)


def kept(directory):
    """Return all that the server of a directory has."""
    with Redis.from_url(embedded.ensure(directory).url) as redis:
        return everything(redis)


def test_data_of_redis_6_2_is_there_after_each_start(directory, written):
    (directory / "appendonly.aof").write_bytes(FILE.read_bytes())
    assert kept(directory) == written
    embedded.stop(directory)
    assert kept(directory) == written
    os.kill(server_pid(directory), signal.SIGKILL)
    wait_until(lambda: embedded.running(directory) is None)
    with Redis.from_url(embedded.ensure(directory).url) as redis:
        assert everything(redis) == written
        redis.bgrewriteaof()
        wait_until(lambda: not redis.info("persistence")["aof_rewrite_in_progress"])
    embedded.stop(directory)
    assert kept(directory) == written


def test_a_first_start_that_was_killed_is_taken_up_wherever_it_was(directory, written):
    """The server makes the directory, writes the list of files, and moves the file, in turn."""
    folder, file = directory / "appendonlydir", directory / "appendonly.aof"
    for is_listed, is_moved in ((False, False), (True, False), (True, True)):
        folder.mkdir()
        (folder / file.name if is_moved else file).write_bytes(FILE.read_bytes())
        if is_listed:
            (folder / "appendonly.aof.manifest").write_text(MANIFEST)
        assert kept(directory) == written
        embedded.stop(directory)
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()


def test_a_cut_file_is_read_to_its_last_whole_command(directory, written):
    (directory / "appendonly.aof").write_bytes(FILE.read_bytes()[:-3])
    fields, expires = written[ST.encode()]
    assert fields[b"epoch"] == b"2"  # by the last command
    assert kept(directory) == written | {ST.encode(): (fields | {b"epoch": b"1"}, expires)}


def test_an_older_server_is_joined_and_its_data_is_kept(directory, monkeypatch, written):
    monkeypatch.setenv(SERVER, oldest_redis())
    with Redis.from_url(embedded.ensure(directory).url) as redis:
        begin(redis)
    pid = server_pid(directory)
    monkeypatch.delenv(SERVER)
    server = embedded.ensure(directory)
    assert (server.was_started, server_pid(directory)) == (False, pid)
    with Redis.from_url(server.url) as redis:
        go_on(redis)
        assert redis.info("server")["redis_version"].startswith("6.2.")
    embedded.stop(directory)
    assert kept(directory) == written
    with Redis.from_url(embedded.running(directory).url) as redis:
        assert redis.info("server")["server_name"] == "valkey"
