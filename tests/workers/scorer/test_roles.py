"""Scorers and askers under the rules of deploy/redis: they do their part and nothing else."""

from contextlib import closing

import pytest
import redis
from published_feed import examples, push, session, work
from shipped_redis import PROGRAMS, rules_of

from workers.broker import embedded, permissions
from workers.broker.connection import client
from workers.broker.feed_reader import FeedReader
from workers.broker.request_queue import RequestQueue
from workers.broker.store import Store
from workers.errors import AccessDenied
from workers.feed.keys import FeedKeys
from workers.scorer.asker import Asker
from workers.scorer.newest_state import NewestState
from workers.scorer.scorer import Scorer
from workers.scorer.settings import ScorerSettings
from workers.stop import Stop

PASSWORD = "pw-of-the-test"


@pytest.fixture(params=[*PROGRAMS])
def server(request):
    """A server and its rules."""
    with embedded.temporary(PROGRAMS[request.param]()) as made:
        yield made.url, rules_of(request.param)


def user(server, name, without=None):
    """Return the URL of a user with the rules of a role, but for one."""
    url, known = server
    given = [rule for rule in known[name] if rule != without]
    with client(url) as admin:
        admin.execute_command("ACL", "SETUSER", name, "reset", *given, "on", f">{PASSWORD}")
    return url.replace("unix://", f"unix://{name}:{PASSWORD}@")


def test_a_scorer_and_an_asker_need_no_more_than_their_roles(server):
    with Store(server[0], "f", block_ms=20) as store:
        push(store, examples(60))
        work(session(store), 60)
    url = user(server, "osvm-scorer")
    permissions.check(url, permissions.of_scorer(FeedKeys("f")))
    with (
        closing(Asker(user(server, "osvm-asker"), "f")) as asker,
        closing(FeedReader(url, "f")) as reader,
        closing(RequestQueue(url, "f", "one", Stop())) as queue,
    ):
        scorer = Scorer(queue, NewestState(reader), ScorerSettings(claim_after=0.001), Stop())
        queue.ensure_group()
        ids = asker.send([b"[1,2,3]", b"[1,2]"])
        assert len(queue.read().requests) == 2
        asker.send([b" " * (1 << 20) + b"[1,2,3]"])
        while scorer.turn():
            pass
        assert len(asker.receive(ids, timeout=30.0)) == 2
        assert queue.leave()


@pytest.mark.parametrize(("role", "command"), [
    ("osvm-scorer", ("XADD", "osvm:{f}:in", "*", "x", "[1]")),
    ("osvm-scorer", ("XADD", "osvm:{f}:out", "*", "p", "{}")),
    ("osvm-scorer", ("XRANGE", "osvm:{f}:in", "-", "+")),
    ("osvm-scorer", ("SET", "osvm:{f}:pub:1:01234567:1", "x")),
    ("osvm-scorer", ("HSET", "osvm:{f}:pub", "n", "1")),
    ("osvm-scorer", ("HSET", "osvm:{f}:st", "n", "1")),
    ("osvm-scorer", ("FLUSHALL",)),
    ("osvm-asker", ("XREAD", "STREAMS", "osvm:{f}:out", "0")),
    ("osvm-asker", ("XADD", "osvm:{f}:in", "*", "x", "[1]")),
    ("osvm-asker", ("DEL", "osvm:{f}:req")),
    ("osvm-asker", ("XACK", "osvm:{f}:req", "scorers", "1-1")),
])  # fmt: skip
def test_scorers_and_askers_have_no_other_rights(server, role, command):
    denied = pytest.raises(redis.exceptions.NoPermissionError)
    with client(user(server, role)) as connected, denied:
        connected.execute_command(*command)


def test_without_any_one_command_the_check_names_it(server):
    commands = [r for r in server[1]["osvm-scorer"] if r.startswith("+")]
    of_cluster = {"+cluster|slots", "+asking", "+role"}
    for rule in sorted(set(commands) - {"+multi", "+discard"} - of_cluster):
        url = user(server, "osvm-scorer", without=rule)
        with pytest.raises(AccessDenied, match=rf"run {rule[1:].upper()}\b.*users\.acl"):
            permissions.check(url, permissions.of_scorer(FeedKeys("f")))
