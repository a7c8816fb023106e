"""The endpoint of a scorer says what it did, how old its state is, and whether it is ready."""

import re
import threading
import time
import urllib.error
import urllib.request

import pytest
from processes import LIMIT
from world import wait_until

from workers.scorer import endpoint as monitored
from workers.scorer.settings import ScorerCounts

pytestmark = pytest.mark.servers("embedded")


def get(capsys, path, at=[]):  # noqa: B006  (the address is logged once)
    said = capsys.readouterr().err
    if "http://" in said:
        at[:] = [said.split("http://")[1].split("/metrics")[0]]
    try:
        with urllib.request.urlopen(f"http://{at[0]}{path}", timeout=LIMIT) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_metrics_tell_answers_and_the_age_of_the_state(empty_desk, feed, capsys):
    desk = empty_desk
    counts = ScorerCounts()
    scorer = desk.scorer(counts=counts, max_stale=30)
    with monitored.serving_scorer(feed, counts, "0"):
        assert get(capsys, "/readyz") == (503, "the scorer is starting\n")
        counts.is_at_work = True
        scorer.refresh()
        assert get(capsys, "/readyz") == (503, "state: the worker has published none\n")
        desk.learn(60)
        desk.ask(scorer, [[i, 1, 2] for i in range(3)])
        assert get(capsys, "/readyz")[0] == get(capsys, "/livez")[0] == 200
        told = get(capsys, "/metrics")[1]
        n = desk.store.publication().n
        for name, value in (
            ("answers_total", 3), ("state_examples", n), ("behind_examples", 60 - n),
            ("states_total", 1), ("waiting_requests", 3), ("state_usable", 1),
        ):  # fmt: skip
            line = f'online_svm_scorer_{name}{{feed="{feed}"}} {value}.0'
            assert line in told.splitlines()
        desk.running._publisher._every = 0
        desk.learn(40)
        scorer.turn()  # nothing is asked; it looks
        told = get(capsys, "/metrics")[1].splitlines()
        assert f'online_svm_scorer_state_usable{{feed="{feed}"}} 0.0' in told
        assert get(capsys, "/readyz") == (
            503, f"state: the newest state is {100 - n} examples old, the bound is 30\n"
        )  # fmt: skip


def test_a_scorer_that_hangs_is_dead():
    counts = ScorerCounts(is_at_work=True, n=5, turned=time.monotonic() - 1000)
    health = monitored.ScorerHealth(counts)
    assert health.unready() == []
    assert re.match(r"requests: no batch was finished for 10\d\d s", health.dead()[0])


def test_a_scorer_is_unready_while_redis_refuses_and_ready_when_it_does_no_more(desk):
    """It waits within a command then, so nothing of its own tells."""
    counts = ScorerCounts(is_at_work=True)
    scorer = desk.scorer(counts=counts, retry_timeout=None)
    health = monitored.ScorerHealth(counts)
    scorer.refresh()
    desk.asker.send([b"[1,2,3]"])
    desk.store.call("CONFIG", "SET", "maxmemory", "1")
    turning = threading.Thread(target=scorer.turn)
    turning.start()
    try:
        wait_until(health.unready)
        assert health.unready()[0].startswith("redis: ")
    finally:
        desk.store.call("CONFIG", "SET", "maxmemory", "0")
        turning.join(timeout=30)
    assert (health.unready(), counts.written) == ([], 1)
