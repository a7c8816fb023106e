"""What the rights of a producer can reach beside its input: workers and `status` go on."""

import pytest
from world import drain, push, rows, session

from workers.broker.client import client
from workers.errors import WrongKeyType
from workers.feed.keys import REGISTRY
from workers.reading.registry import names


def test_a_registry_of_another_type_stops_no_worker(own_redis, store, run_command):
    store.call("DEL", REGISTRY)
    store.call("SET", REGISTRY, "no set")
    try:
        push(store, rows()[:20])
        store.register()
        drain(session(store), 20)
        with pytest.raises(WrongKeyType, match="osvm:feeds is not the set of feeds"):
            names(store)
    finally:
        store.call("DEL", REGISTRY)
    with client(own_redis.url) as other:
        other.execute_command("XADD", REGISTRY, "*", "x", "1")
        other.execute_command("XADD", "osvm:{f}:in", "1-0", "x", "[1]", "y", "a")
    code, _, said = run_command("status", "--redis", own_redis.url)
    assert (code, "delete that key" in said) == (4, True)
    assert run_command("status", "f", "--redis", own_redis.url)[0] == 0
