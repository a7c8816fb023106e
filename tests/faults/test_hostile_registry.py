"""What the rights of a producer can reach beside its input: workers and `status` go on."""

import pytest
import redis
from shipped_redis import PROGRAMS, rules_of
from world import drain, push, rows, session

from workers.broker import embedded
from workers.broker.client import client
from workers.errors import WrongKeyType
from workers.feed.keys import REGISTRY
from workers.reading.registry import names

PASSWORD = "pw-of-the-test"
NO_NAMES = (b"", b"a b", b"\xff\xfe", b"x" * 65, b"\x1b[2J", b"f\nforged", b"-f", "\u0661".encode())


def test_what_is_no_name_in_the_list_of_feeds_is_skipped_and_told(own_redis, run_command):
    with client(own_redis.url) as other:
        other.execute_command("XADD", "osvm:{f}:in", "1-0", "x", "[1]", "y", "a")
        other.execute_command("SADD", REGISTRY, "f", *NO_NAMES)
    code, shown, said = run_command("status", "--redis", own_redis.url)
    assert code == 0
    assert "f " in shown
    assert said.count("\n") == 1
    assert "8 names no feed has" in said
    assert "\x1b" not in shown + said


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


@pytest.fixture(params=["system", "embedded"])
def seven(request):
    """URLs of a server by user, under the rules from Redis 7 on."""
    program, users = PROGRAMS[request.param](), rules_of(request.param)
    with embedded.temporary(program) as server, client(server.url) as admin:
        for name, rules in [*users.items()][2:]:
            admin.execute_command("ACL", "SETUSER", name, *rules, "on", f">{PASSWORD}")
        yield {name: server.url.replace("unix://", f"unix://{name}:{PASSWORD}@") for name in users}


@pytest.mark.parametrize(("role", "command"), [
    ("osvm-producer", ("XADD", "osvm:{new}:st", "*", "x", "1")),
    ("osvm-producer", ("XADD", "osvm:feeds", "*", "x", "1")),
    ("osvm-producer", ("SADD", "osvm:{new}:in", "x")),
    ("osvm-producer", ("SADD", "osvm:{new}:st", "x")),
    ("osvm-producer", ("HGET", "osvm:{f}:in", "x")),
    ("osvm-producer", ("XADD", "osvm:{f}:out", "*", "x", "1")),
    ("osvm-reader", ("XADD", "osvm:{f}:in", "*", "x", "1")),
])  # fmt: skip
def test_a_producer_may_write_its_input_and_the_registry_alone(seven, role, command):
    with client(seven[role]) as connected, pytest.raises(redis.exceptions.NoPermissionError):
        connected.execute_command(*command)
