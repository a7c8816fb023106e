"""A gateway under the rules of deploy/redis does its part and nothing else."""

import pytest
import redis
from served_gateway import serving
from shipped_redis import PROGRAMS, rules_of
from world import World, wait_until

from workers.broker import embedded
from workers.broker.client import client

PASSWORD = "pw-of-the-test"


@pytest.fixture(params=[*PROGRAMS])
def urls(request):
    """The URLs of a server for everybody, and for the gateway's user."""
    rules = rules_of(request.param)["osvm-gateway"]
    with embedded.temporary(PROGRAMS[request.param]()) as made:
        with client(made.url) as admin:
            admin.execute_command("ACL", "SETUSER", "osvm-gateway", *rules, "on", f">{PASSWORD}")
        yield made.url, made.url.replace("unix://", f"unix://osvm-gateway:{PASSWORD}@")


def test_a_gateway_needs_no_more_than_its_role(urls):
    with World(urls[0], "f") as world:
        world.push(20)
        world.answer()
        with serving(urls[1], "f") as gateway:
            sent = {"x": [1, 2, 3], "y": "a"}
            reply = gateway.post("/feeds/f/examples?timeout=0", sent)
            assert reply.status == 202, reply.body
            world.pushed += 1
            world.answer()
            address = reply.headers["Location"]
            wait_until(lambda: gateway.get(address).status == 200)
            scores = gateway.post("/feeds/f/scores", {"x": [1, 2, 3]})
            assert (scores.status, "--publish-every" in scores.json["error"]) == (503, True)
            for path in ("/feeds/f/status", "/feeds/f/alarms", "/v2/models/f"):
                assert gateway.get(path).status == 200, gateway.get(path).body
            assert gateway.get("/v2/models/f/ready").status == 503
            keyed = gateway.post("/feeds/f/examples", sent, Idempotency_Key="k")
            assert (keyed.status, "--dedupe-window" in keyed.json["error"]) == (400, True)


@pytest.mark.parametrize(
    "command",
    ["HSET osvm:{f}:st n 1", "DEL osvm:{f}:in", "XTRIM osvm:{f}:in MAXLEN 0", "SADD osvm:feeds f",
     "GET elsewhere", "EVAL return 0", "FLUSHALL"],
)  # fmt: skip
def test_it_may_do_nothing_else(urls, command):
    with client(urls[1]) as connected, pytest.raises(redis.exceptions.NoPermissionError):
        connected.execute_command(*command.split())
