"""What the rights of a producer can reach beside its input: workers and `status` go on."""

from pathlib import Path

import pytest
import redis
from system_tools import redis_server
from world import drain, push, rows, session

from workers.broker import embedded
from workers.broker.client import client
from workers.errors import WrongKeyType
from workers.feed.keys import REGISTRY
from workers.reading.registry import names

RULES = {
    words[1]: words[2:]
    for line in (Path(__file__).parents[2] / "deploy/redis/users-7.acl").read_text().splitlines()
    for words in [line.split()]
}
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


def test_a_list_of_feeds_of_another_type_stops_no_worker_and_is_named_by_status(
    own_redis, store, run_command
):
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


@pytest.fixture
def seven():
    """URLs of a Redis 7 by user, under the rules for it."""
    with embedded.temporary(redis_server(7)) as server, client(server.url) as admin:
        for name in [*RULES][2:]:
            rules = [rule for rule in RULES[name] if rule != "off"]
            admin.execute_command("ACL", "SETUSER", name, *rules, "on", f">{PASSWORD}")
        yield {name: server.url.replace("unix://", f"unix://{name}:{PASSWORD}@") for name in RULES}


@pytest.mark.parametrize(("role", "command"), [
    ("osvm-producer", ("XADD", "osvm:{new}:st", "*", "x", "1")),
    ("osvm-producer", ("XADD", "osvm:feeds", "*", "x", "1")),
    ("osvm-producer", ("SADD", "osvm:{new}:in", "x")),
    ("osvm-producer", ("SADD", "osvm:{new}:st", "x")),
    ("osvm-producer", ("HGET", "osvm:{f}:in", "x")),
    ("osvm-producer", ("XADD", "osvm:{f}:out", "*", "x", "1")),
    ("osvm-reader", ("XADD", "osvm:{f}:in", "*", "x", "1")),
])  # fmt: skip
def test_the_rules_for_redis_7_let_a_producer_write_its_input_and_the_list_alone(
    seven, role, command
):
    with client(seven[role]) as connected, pytest.raises(redis.exceptions.NoPermissionError):
        connected.execute_command(*command)


def test_under_the_rules_for_redis_7_a_producer_pushes_and_a_reader_reads(seven, run_command):
    pushed = run_command(
        "push", "f", "Phishing", "--limit", "9", "--high-water", "20", "--redis",
        seven["osvm-producer"],
    )  # fmt: skip
    assert pushed[0] == 0, pushed
    assert run_command("status", "f", "--redis", seven["osvm-reader"])[0] == 0
    assert "f" in run_command("status", "--redis", seven["osvm-reader"])[1]
