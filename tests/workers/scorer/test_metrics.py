"""The endpoint of a scorer says what it did, how old its state is, and whether it is ready."""

import json
import threading
import time
import urllib.error
import urllib.request

import pytest
from published_feed import examples, push, session, work

from workers.broker.feed_reader import FeedReader
from workers.broker.request_queue import RequestQueue
from workers.scorer import endpoint as monitored
from workers.scorer.asker import Asker
from workers.scorer.counts import ScorerCounts
from workers.scorer.newest_state import NewestState
from workers.scorer.scorer import Scorer
from workers.scorer.settings import ScorerSettings
from workers.stop import Stop


@pytest.fixture
def redis_url(embedded_url):
    """One server is enough: nothing here differs between servers."""
    return embedded_url


def get(capsys, path, at=[]):  # noqa: B006  (the address is logged once)
    said = capsys.readouterr().out
    if "http://" in said:
        at[:] = [said.split("http://")[1].split("/metrics")[0]]
    try:
        with urllib.request.urlopen(f"http://{at[0]}{path}", timeout=10) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_it_tells_what_was_answered_how_old_the_state_is_and_when_it_is_too_old(
    store, feed, capsys
):
    push(store, examples(60))
    running = session(store)
    counts = ScorerCounts()
    reader, asker = FeedReader(store.url, feed), Asker(store.url, feed)
    queue = RequestQueue(store.url, feed, "one", Stop())
    settings = ScorerSettings(max_stale=30)
    scorer = Scorer(queue, NewestState(reader), settings, Stop(), counts=counts)
    with monitored.serving_scorer(feed, counts, "0"):
        assert get(capsys, "/readyz") == (503, "the scorer is starting\n")
        counts.is_at_work = True
        queue.begin()
        scorer.look()
        assert get(capsys, "/readyz") == (503, "state: the worker has published none\n")
        work(running, 60)
        asker.send([json.dumps([i, 1, 2]).encode() for i in range(3)])
        scorer.turn()
        assert get(capsys, "/readyz")[0] == get(capsys, "/livez")[0] == 200
        told = get(capsys, "/metrics")[1]
        n = store.publication().n
        for line in (
            f'online_svm_scorer_answers_total{{feed="{feed}"}} 3.0',
            f'online_svm_scorer_state_examples{{feed="{feed}"}} {n}.0',
            f'online_svm_scorer_behind_examples{{feed="{feed}"}} {60 - n}.0',
            f'online_svm_scorer_states_total{{feed="{feed}"}} 1.0',
            f'online_svm_scorer_waiting_requests{{feed="{feed}"}} 3.0',
            f'online_svm_scorer_state_usable{{feed="{feed}"}} 1.0',
        ):
            assert line in told.splitlines()
        running._publisher._every = 0
        push(store, examples(40, first=60))
        work(running, 100)
        scorer.turn()  # nothing is asked; it looks
        told = get(capsys, "/metrics")[1].splitlines()
        assert f'online_svm_scorer_state_usable{{feed="{feed}"}} 0.0' in told
        assert get(capsys, "/readyz") == (
            503, f"state: the newest state is {100 - n} examples old, the bound is 30\n"
        )  # fmt: skip
    for opened in (reader, asker, queue):
        opened.close()


def test_a_scorer_that_hangs_is_dead():
    counts = ScorerCounts(is_at_work=True, n=5, turned=time.monotonic() - 1000)
    health = monitored.ScorerHealth(counts)
    assert health.unready() == []
    assert health.dead()[0].startswith("requests: no batch was finished for 1000 s")


def test_a_scorer_is_unready_while_redis_refuses_and_ready_when_it_does_no_more(store, feed):
    """It waits within a command then, so nothing of its own tells."""
    push(store, examples(60))
    work(session(store), 60)
    counts, stop = ScorerCounts(is_at_work=True), Stop()
    reader, asker = FeedReader(store.url, feed), Asker(store.url, feed)
    queue = RequestQueue(store.url, feed, "one", stop, patience=None)
    scorer = Scorer(queue, NewestState(reader), ScorerSettings(), stop, counts=counts)
    health = monitored.ScorerHealth(counts)
    queue.begin()
    scorer.look()
    asker.send([b"[1,2,3]"])
    store.call("CONFIG", "SET", "maxmemory", "1")
    turning = threading.Thread(target=scorer.turn)
    turning.start()
    deadline = time.monotonic() + 30
    try:
        while not health.unready():
            assert time.monotonic() < deadline
            time.sleep(0.005)
        assert health.unready()[0].startswith("redis: ")
    finally:
        store.call("CONFIG", "SET", "maxmemory", "0")
        turning.join(timeout=30)
    assert (health.unready(), counts.written) == ([], 1)
    for opened in (reader, asker, queue):
        opened.close()
