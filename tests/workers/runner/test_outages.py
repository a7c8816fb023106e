"""A node of a Redis Cluster fails: its feeds wait for it, and the others of the process go on."""

import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack

import pytest
from many_feeds import answer_alone, contents, has_answered, running, settings
from processes import Process
from redis_cluster import running_cluster
from world import push, rows, wait_until

from workers.broker.store import Store
from workers.runner.outages import REPLY

COUNT = 150


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Three primaries without replicas; no node takes another's place, so it can come back."""
    with running_cluster(
        tmp_path_factory.mktemp("cluster"),
        *("--cluster-require-full-coverage", "no"),
        replicas=0,
        node_timeout=60_000,
    ) as cluster:
        yield cluster


def filled(store, seed):
    """Push what a feed answers at the beginning; return what follows."""
    every = rows(COUNT, seed)
    push(store, every[:60])
    store.register()
    return list(enumerate(every))[60:]


def push_in_turn(stores, rows, done, seconds):
    """Push one entry to each feed in turn; return the longest wait for an answer.

    The lease of each is held all the time.
    """
    longest, deadline = 0.0, time.monotonic() + seconds
    while time.monotonic() < deadline:
        for place, store in enumerate(stores):
            if done[place] == COUNT:
                continue
            i, fields = rows[place][done[place] - 60]
            store.call("XADD", store.keys.input, f"{i + 1}-0", *fields)
            done[place] += 1
            began = time.monotonic()
            wait_until(lambda s=store, n=done[place]: has_answered(s, n))
            longest = max(longest, time.monotonic() - began)
            assert store.call("EXISTS", store.keys.lease)
    return longest


def test_feeds_of_the_other_nodes_are_answered_while_one_is_away_and_its_own_go_on_after(
    cluster, embedded_url
):
    assert longest_wait_beside(cluster, embedded_url, "killed", 1.5) < 1.0


@pytest.mark.scale
def test_a_node_that_hangs_holds_up_the_feeds_of_others_for_two_replies(cluster, embedded_url):
    # One on the connection for commands, one on that for reads, where both were under way.
    assert longest_wait_beside(cluster, embedded_url, "hung", 4.0) < 2 * REPLY + 0.25


def alone(url, name, seed):
    """Return what a worker of one feed leaves of the same entries."""
    with Store(url, name) as store:
        push(store, rows(COUNT, seed))
        answer_alone(store, COUNT, settings())
        return contents(store)


@pytest.mark.slow
def test_a_combination_waits_for_the_node_of_a_source_and_goes_on_after(cluster, embedded_url):
    given = settings(keep_input=True)
    sources, into = (
        [cluster.feed_on(i, f"source-{i}") for i in range(2)],
        cluster.feed_on(2, "both"),
    )

    def add(store, first, upto):
        for i, fields in list(enumerate(rows(COUNT, 0)))[first:upto]:
            store.call("XADD", store.keys.input, f"{i + 1}-0", *fields, "id", str(i))
        answer_alone(store, upto, given)

    def combined(store):
        state = store.state()
        return 0 if state is None else state.position.seq

    with ExitStack() as opened:
        stores = [opened.enter_context(Store(cluster.url, name, patience=30.0)) for name in sources]
        target = opened.enter_context(Store(cluster.url, into, patience=30.0))
        for store in stores:
            store.register()
            add(store, 0, 60)
        command = [sys.executable, "-m", "workers.cli", "combine", *sources, "--into", into]
        command += ["--redis", cluster.url, "--join-window", "0"]
        process = opened.enter_context(Process(command, stderr=subprocess.PIPE, text=True))
        wait_until(lambda: combined(target) == 60)
        node = cluster.node_of(f"{{{sources[1]}}}")
        node.kill()
        add(stores[0], 60, COUNT)  # it is read on, and so is the other one
        time.sleep(2.0)
        node.launch()
        node.wait_until_up()
        add(stores[1], 60, COUNT)
        wait_until(lambda: combined(target) == COUNT)
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=20)
        assert process.returncode == 0
    assert "feeds of a node wait for it" not in said


def longest_wait_beside(cluster, embedded_url, failure, seconds):
    """Let a node be away for so long; return the longest wait of a feed of another node."""
    names = [cluster.feed_on(i % 3, f"{failure}-{i}") for i in range(6)]
    # First, since it compiles what would hold up all feeds later.
    expected = [alone(embedded_url, f"alone-{name}", seed) for seed, name in enumerate(names)]
    with ExitStack() as opened:
        stores = [opened.enter_context(Store(cluster.url, name, patience=30.0)) for name in names]
        rows = [filled(store, seed) for seed, store in enumerate(stores)]
        done = [60] * 6
        with running([f"{failure}-*"], cluster.url, settings=settings(lease=2.0)):
            wait_until(lambda: all(has_answered(store, 60) for store in stores))
            others = [place for place in range(6) if place % 3]
            node = cluster.node_of(f"{{{names[0]}}}")
            for place in (0, 3):  # so that commits of the node's feeds are on their way
                push(stores[place], [fields for _, fields in rows[place][:60]], first=61)
                done[place] = 120
            node.kill() if failure == "killed" else os.kill(node.process.pid, signal.SIGSTOP)
            longest = push_in_turn(
                [stores[place] for place in others],
                [rows[place] for place in others],
                there := [60] * 4,
                seconds,
            )
            print(f"\n{failure}: the longest wait of the other feeds {longest:.2f} s")
            node.launch() if failure == "killed" else os.kill(node.process.pid, signal.SIGCONT)
            for place, count in zip(others, there, strict=True):
                done[place] = count
            for place, store in enumerate(stores):
                push(store, [fields for _, fields in rows[place][done[place] - 60 :]],
                     first=done[place] + 1)  # fmt: skip
            wait_until(lambda: all(has_answered(store, COUNT) for store in stores))
        for store, kept in zip(stores, expected, strict=True):
            assert contents(store) == kept
            assert store.state().epoch == 1, "no feed was taken over anew"
    assert min(there) > 60
    return longest
