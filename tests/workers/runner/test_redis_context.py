"""Many feeds on a Redis Cluster: the answers are the same, also while a node is away."""

import os
import signal
import time
from contextlib import ExitStack

import pytest
from many_feeds import alone, contents, fill, running, settings, wait_for
from redis_cluster import running_cluster
from world import push, rows

from workers.broker.store import Store
from workers.runner import loop, redis_context
from workers.runner.redis_context import REPLY_SECONDS

COUNT = 150


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Three primaries without replicas; no node takes another's place, so it can come back."""
    with running_cluster(
        tmp_path_factory.mktemp("cluster"),
        *("--cluster-require-full-coverage", "no"),
        replicas=0,
    ) as cluster:
        yield cluster


def push_in_turn(inputs, done, seconds):
    """Push one entry to each of these feeds in turn; return the longest wait for an answer.

    The lease of each is held all the time.
    """
    longest, deadline = 0.0, time.monotonic() + seconds
    while time.monotonic() < deadline:
        for store, entries in inputs:
            if done[store] == COUNT:
                continue
            push(store, entries[done[store] :][:1], first=done[store] + 1)
            done[store] += 1
            began = time.monotonic()
            wait_for(done[store], store)
            longest = max(longest, time.monotonic() - began)
            assert store.call("EXISTS", store.keys.lease)
    return longest


def test_a_node_that_is_away_delays_only_its_own_feeds(cluster, embedded_url, monkeypatch):
    for module in (loop, redis_context):
        monkeypatch.setattr(module, "REPLY_SECONDS", 20.0)
    longest = longest_wait_beside(cluster, embedded_url, "killed", 1.5, lease=5.0)
    assert longest < 10.0, "no feed waits for a reply of another node"


@pytest.mark.scale
def test_a_node_that_hangs_holds_up_the_feeds_of_others_for_two_replies(cluster, embedded_url):
    # One on the connection for commands, one on that for reads, where both were under way.
    assert longest_wait_beside(cluster, embedded_url, "hung", 4.0) < 2 * REPLY_SECONDS + 0.25


def longest_wait_beside(cluster, embedded_url, failure, seconds, lease=2.0):
    """Let a node be away for so long; return the longest wait of a feed of another node."""
    names = [cluster.feed_on(i % 3, f"{failure}-{i}") for i in range(6)]
    every = [rows(COUNT, seed) for seed in range(6)]
    expected = [alone(embedded_url, entries) for entries in every]
    with ExitStack() as opened:
        stores = [
            opened.enter_context(Store(cluster.url, name, retry_timeout=30.0)) for name in names
        ]
        inputs = list(zip(stores, every, strict=True))
        for store, entries in inputs:
            fill(entries[:60], store)
        with running([f"{failure}-*"], cluster.url, settings=settings(lease=lease)):
            wait_for(60, *stores)
            done = dict.fromkeys(stores, 60)
            node = cluster.node_of(f"{{{names[0]}}}")
            for store, entries in inputs[::3]:  # commits of the node's feeds are on their way
                push(store, entries[60:120], first=61)
                done[store] = 120
            node.kill() if failure == "killed" else os.kill(node.process.pid, signal.SIGSTOP)
            others = [pair for i, pair in enumerate(inputs) if i % 3]
            longest = push_in_turn(others, done, seconds)
            print(f"\n{failure}: the longest wait of the other feeds {longest:.2f} s")
            node.launch() if failure == "killed" else os.kill(node.process.pid, signal.SIGCONT)
            for store, entries in inputs:
                push(store, entries[done[store] :], first=done[store] + 1)
            wait_for(COUNT, *stores)
        assert [contents(store) for store in stores] == expected
        assert {store.state().epoch for store in stores} == {1}, "no feed was taken over anew"
        assert min(done.values()) > 60
    return longest
