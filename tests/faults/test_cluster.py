"""A node of a Redis Cluster under a plain URL: every command says so, and nothing is written."""

import time

import pytest
import redis
from fault_redis import Server
from system_tools import redis_server

from workers.broker.embedded import server_executable
from workers.broker.redis_errors import translated
from workers.cli import app as cli
from workers.errors import RedisUnsuitable

SETTINGS = ["--classes", "true,false", "--refit-lag", "0"]


@pytest.fixture(params=["embedded", "system"])
def clusters(request, tmp_path, monkeypatch):
    """URLs of two servers of one cluster, each with half of the slots."""
    binary = server_executable() if request.param == "embedded" else redis_server()
    monkeypatch.setattr("fault_redis.server_executable", lambda: binary)
    servers = [Cluster(tmp_path / name) for name in "ab"]
    try:
        for server, slots in zip(servers, (range(8192), range(8192, 16384)), strict=True):
            with redis.Redis(port=server.port) as client:
                client.execute_command("CLUSTER", "ADDSLOTS", *slots)
        with redis.Redis(port=servers[0].port) as client:
            client.execute_command("CLUSTER", "MEET", "127.0.0.1", servers[1].port)
        for server in servers:
            wait_until_ok(server)
        yield [server.url for server in servers]
    finally:
        for server in servers:
            server.kill()


class Cluster(Server):
    """A server of a cluster."""

    def launch(self, *options):
        super().launch("--cluster-enabled", "yes", *options)


def wait_until_ok(server):
    deadline = time.monotonic() + 30
    with redis.Redis(port=server.port) as client:
        while b"cluster_state:ok" not in client.execute_command("CLUSTER", "INFO"):
            assert time.monotonic() < deadline
            time.sleep(0.05)


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    told = capsys.readouterr()
    return ended.value.code, told.out + told.err


@pytest.mark.parametrize("command", [
    ("worker", "f", *SETTINGS), ("check", "f", *SETTINGS),
    ("push", "f", "Phishing", "--limit", "9"), ("status",), ("status", "f"),
    ("tail", "f"), ("verify", "f"), ("export", "f"), ("tail", "f", "--stream", "dlq"),
])  # fmt: skip
def test_a_cluster_is_named_and_nothing_is_written(clusters, capsys, command):
    codes, told = [], []
    for url in clusters:  # of any key, one of them says MOVED
        code, said = run(capsys, *command, "--redis", url)
        codes.append(code)
        told.append(said)
        assert "unexpected reply" not in said
        assert "Traceback" not in said
    assert 2 in codes
    assert any("is part of a Redis Cluster: write redis+cluster://127.0.0.1:" in s for s in told)
    if command[0] in ("worker", "check"):
        assert codes == [2, 2]
        assert all("write redis+cluster://" in said for said in told)
        for url in clusters:
            with redis.Redis.from_url(url) as client:
                assert client.dbsize() == 0


@pytest.mark.parametrize("error", [
    redis.exceptions.MovedError("15495 127.0.0.1:17003"),
    redis.exceptions.AskError("15495 127.0.0.1:17003"),
    redis.exceptions.ClusterCrossSlotError("Keys in request don't hash to the same slot"),
    redis.exceptions.ResponseError("CROSSSLOT Keys in request don't hash to the same slot"),
    redis.exceptions.ClusterDownError("Hash slot not served"),
    redis.exceptions.ResponseError(
        "ERR Error running script (call to f_1): @user_script:1: -MOVED 15495 127.0.0.1:17003"
    ),
    redis.exceptions.ResponseError(
        "Script attempted to access a non local key in a cluster node script: 1, on @user_script:1."
    ),
], ids=lambda error: type(error).__name__)  # fmt: skip
def test_what_only_a_cluster_says_is_named(error):
    named = translated(error, "redis://h")
    assert isinstance(named, RedisUnsuitable)
    assert str(named) == "Redis at redis://h is part of a Redis Cluster: write redis+cluster://h"
