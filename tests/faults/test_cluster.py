"""A node of a Redis Cluster under a plain URL: every command says so, and nothing is written."""

import pytest
import redis

from workers.broker.client import translated
from workers.errors import RedisUnsuitable

SETTINGS = ["--classes", "true,false"]


@pytest.fixture
def nodes(cluster_url):
    return [f"redis://{node}/0" for node in cluster_url.partition("://")[2].split(",")]


def keys_in(url):
    with redis.Redis.from_url(url) as client:
        return client.dbsize()


@pytest.mark.parametrize("command", [
    ("worker", "f", *SETTINGS), ("check", "f", *SETTINGS),
    ("push", "f", "Phishing", "--limit", "9"), ("status",), ("status", "f"),
    ("tail", "f"), ("verify", "f"), ("export", "f"), ("tail", "f", "--stream", "dlq"),
])  # fmt: skip
def test_a_cluster_is_named_and_nothing_is_written(nodes, run_command, command):
    before, codes, told = [keys_in(url) for url in nodes], [], []
    for url in nodes:  # of any key, one of them says MOVED
        code, out, err = run_command(*command, "--redis", url)
        codes.append(code)
        told.append(out + err)
    assert not any("unexpected reply" in said or "Traceback" in said for said in told)
    is_named = ["is part of a Redis Cluster: write redis+cluster://127.0.0.1:" in s for s in told]
    assert 2 in codes
    assert any(is_named)
    if command[0] in ("worker", "check"):
        assert codes == [2, 2]
        assert all(is_named)
        assert [keys_in(url) for url in nodes] == before


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
