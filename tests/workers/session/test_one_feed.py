"""The real command in processes of its own: killed, paused, stopped, replaced."""

import json
import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from fault_redis import Server
from processes import Process

from workers.admin.reset import reset
from workers.admin.verify import verify
from workers.broker import embedded
from workers.broker.store import Store
from workers.stop import ONE_REQUEST

SETTINGS = ["--classes", "a,b", "--window", "60", "--refit-every", "20", "--metrics-every", "10"]
COUNT = 600


@pytest.fixture
def start(embedded_url):
    """Start `online-svm worker`; whatever still runs is killed after the test."""
    processes = []

    def begin(feed, *options, url=embedded_url):
        command = [sys.executable, "-m", "workers.cli", "worker", feed, "--redis", url]
        log = subprocess.PIPE
        processes.append(Process([*command, *SETTINGS, "--quiet", *options], stderr=log, text=True))
        return processes[-1]

    yield begin
    for process in processes:
        process.kill()
        process.wait()
        process.stderr.close()


@pytest.fixture
def make(embedded_url, feed):
    """Make stores of further feeds, filled with one and the same stream."""
    stores = []
    generator = np.random.default_rng(1)
    X = generator.normal(size=(COUNT, 3)).round(6)
    y = np.where(X[:, 0] + generator.normal(size=COUNT) > 0, "b", "a")

    def fill(suffix, inverted_from=COUNT):
        store = Store(embedded_url, f"{feed}-{suffix}")
        stores.append(store)
        for i in range(COUNT):
            x = "[1,2]" if i % 50 == 7 else json.dumps(X[i].tolist())
            label = str(y[i]) if i < inverted_from else "ab"[y[i] == "a"]
            store.call("XADD", store.keys.input, f"{i + 1}-0", "x", x, "y", label)
        return store

    yield fill
    for store in stores:
        store.close()


def wait_until(is_true, seconds=60.0):
    deadline = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.01)


def answered(store):
    return store.length(store.keys.out)


def finish(store, process):
    """Wait until everything is answered, stop the worker, and return what it said."""
    wait_until(lambda: answered(store) == COUNT)
    process.terminate()
    _, said = process.communicate(timeout=20)
    assert process.returncode == 0, said
    return said


def payloads(store):
    return [
        [(entry[0], entry[1][1]) for page in store.pages(key, b"0-0") for entry in page]
        for key in (store.keys.out, store.keys.met)
    ]


@pytest.mark.slow
def test_a_quiet_worker_tells_its_alarms_and_its_stop_with_the_snapshot(make, start):
    store = make("alarmed", inverted_from=COUNT // 2)
    said = finish(store, start(store.keys.feed, "--window", "2000", "--alarm-level", "0.5"))
    assert f"{store.keys.feed}: alarm: " in said
    assert 'event="feeds stopped" feeds=1 with_snapshot=1' in said
    assert "answered, 588 learned, 12 rejected" in said.splitlines()[-1]
    assert "/s" not in said  # no progress


@pytest.mark.slow
def test_kills_at_random_progress_and_other_batches_change_no_byte(make, start):
    whole, killed = make("whole"), make("killed")
    finish(whole, start(whole.keys.feed))
    choose = random.Random(3)
    for batch in (1, 7, 64):
        process = start(killed.keys.feed, "--batch", str(batch), "--replay-budget", "100")
        goal = answered(killed) + choose.randint(1, 150)
        wait_until(lambda goal=goal: answered(killed) >= goal)
        process.kill()
        process.wait()
    finish(killed, start(killed.keys.feed))
    assert payloads(killed) == payloads(whole)
    state = killed.state()
    assert state.position == whole.state().position
    assert state.position.seq == COUNT
    assert state.epoch == 4
    assert verify(killed).is_identical


@pytest.mark.slow
def test_a_paused_worker_is_replaced_fenced_and_exits_3(make, start):
    whole, store = make("whole"), make("paused")
    finish(whole, start(whole.keys.feed))
    first = start(store.keys.feed, "--batch", "1", "--lease", "1")
    wait_until(lambda: answered(store) >= 20)
    first.send_signal(signal.SIGSTOP)
    before = answered(store)
    # The paused process is alive, so its lease has to lapse.
    second = start(store.keys.feed, "--lease", "1")
    wait_until(lambda: answered(store) > before)
    first.send_signal(signal.SIGCONT)
    resumed = time.monotonic()
    _, said = first.communicate(timeout=20)
    assert first.returncode == 3, said
    assert time.monotonic() - resumed < 5.0
    finish(store, second)
    assert payloads(store) == payloads(whole)


@pytest.mark.slow
def test_a_second_worker_waits_for_the_first(make, start):
    store = make("standby")
    first = start(store.keys.feed)
    wait_until(lambda: answered(store) == COUNT)
    second = start(store.keys.feed)
    time.sleep(2.5)
    assert store.state().epoch == 1
    first.terminate()
    assert first.wait(20) == 0
    wait_until(lambda: store.state().epoch == 2)
    second.terminate()
    assert second.wait(20) == 0


def test_a_stop_frees_the_lease_and_leaves_no_process(make, start):
    store = make("stopped")
    process = start(store.keys.feed)
    wait_until(lambda: answered(store) > 0)
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 0
    assert store.call("EXISTS", store.keys.lease) == 0
    state = store.state()
    assert state.snapshot.cursor == state.position.cursor


@pytest.mark.slow
def test_a_restarted_redis_is_found_again_by_the_same_process(make, start, tmp_path, feed):
    whole, directory = make("whole"), tmp_path / "redis"
    finish(whole, start(whole.keys.feed))
    entries = [entry for page in whole.pages(whole.keys.input, b"0-0") for entry in page]
    url = embedded.ensure(directory).url
    try:
        with Store(url, feed, patience=10.0) as store:
            for entry_id, fields in entries:
                store.call("XADD", store.keys.input, entry_id, *fields)
            process = start(feed, "--batch", "1", url=url)
            for goal in (50, 150):
                wait_until(lambda goal=goal: answered(store) >= goal)
                embedded.stop(directory)
                embedded.ensure(directory)
            finish(store, process)
            assert store.state().epoch == 1
            assert payloads(store) == payloads(whole)
    finally:
        embedded.stop(directory)


def test_a_standby_outlives_a_restart_of_redis_and_then_takes_over(start, tmp_path):
    server = Server(tmp_path / "redis", "always")
    try:
        with Store(server.url, "f", patience=10.0) as store:
            store.call("XADD", store.keys.input, "1-0", "x", "[1]", "y", "a")
            first = start("f", url=server.url)
            wait_until(lambda: answered(store) == 1)
            second = start("f", url=server.url)
            wait_until(lambda: b"waiting for the lease" in second.stderr.buffer.readline())
            server.stop()
            time.sleep(0.5)
            server.start()
            store.call("XADD", store.keys.input, "2-0", "x", "[1]", "y", "a")
            wait_until(lambda: answered(store) == 2)
            first.kill()
            first.wait()
            store.call("XADD", store.keys.input, "3-0", "x", "[1]", "y", "a")
            wait_until(lambda: answered(store) == 3)
            second.terminate()
            assert second.wait(20) == 0
            assert store.state().epoch == 2
    finally:
        server.kill()


def test_a_second_signal_exits_130_at_once(make, start, own_redis):
    """Redis hangs, so that the graceful stop cannot end before the second signal comes."""
    with Store(own_redis.url, "f") as store:
        store.call("XADD", store.keys.input, "1-0", "x", "[1]", "y", "a")
        process = start("f", url=own_redis.url)
        wait_until(lambda: answered(store) == 1)
        server = int((own_redis.directory / "redis.pid").read_text())
        os.kill(server, signal.SIGSTOP)
        try:
            process.terminate()
            time.sleep(ONE_REQUEST + 0.2)
            process.terminate()
            assert process.wait(5) == 130
        finally:
            os.kill(server, signal.SIGCONT)


def test_a_stop_ends_within_the_grace_period_even_if_redis_hangs(start, own_redis):
    with Store(own_redis.url, "f") as store:
        store.call("XADD", store.keys.input, "1-0", "x", "[1]", "y", "a")
        process = start("f", "--grace", "2", url=own_redis.url)
        wait_until(lambda: answered(store) == 1)
        server = int((own_redis.directory / "redis.pid").read_text())
        os.kill(server, signal.SIGSTOP)
        try:
            process.terminate()
            assert process.wait(6) == 0
        finally:
            os.kill(server, signal.SIGCONT)


def test_another_configuration_exits_2_and_writes_nothing(make, start):
    store = make("changed")
    finish(store, start(store.keys.feed))
    before = store.call("HGETALL", store.keys.state)
    process = start(store.keys.feed, "--gamma", "0.125")
    _, said = process.communicate(timeout=20)
    assert process.returncode == 2
    assert "gamma: feed 'scale', here 0.125" in said
    assert "fork" in said
    assert store.call("HGETALL", store.keys.state) == before


def test_a_redis_that_is_not_there_exits_2_with_one_line(start, tmp_path):
    process = start("f", url=f"unix://{tmp_path}/none.sock")
    _, said = process.communicate(timeout=20)
    assert process.returncode == 2
    assert "start it, or correct the URL" in said
    assert "Traceback" not in said


def test_a_flushed_redis_exits_4(start, own_redis):
    with Store(own_redis.url, "f") as store:
        store.call("XADD", store.keys.input, "1-0", "x", "[1]", "y", "a")
        process = start("f", url=own_redis.url)
        wait_until(lambda: answered(store) == 1)
        store.call("FLUSHALL")
        # Nothing arrives any more: the lease that is gone tells the worker.
        _, said = process.communicate(timeout=20)
        assert process.returncode == 4, said
        assert "Redis was flushed" in said
        assert store.call("KEYS", "*") == []


def test_a_flushed_feed_is_begun_by_no_later_worker_until_it_is_reset(start, own_redis):
    with Store(own_redis.url, "f") as store:
        store.call("XADD", store.keys.input, "1-0", "x", "[1]", "y", "a")
        first = start("f", url=own_redis.url)
        wait_until(lambda: answered(store) == 1)
        first.terminate()
        assert first.wait(20) == 0
        store.call("FLUSHALL")
        store.call("XADD", store.keys.input, "1-0", "x", "[1]", "y", "a")
        second = start("f", url=own_redis.url)
        _, said = second.communicate(timeout=20)
        assert second.returncode == 4, said
        assert "online-svm reset f" in said
        assert "says that it was answered" in said
        assert store.call("KEYS", "*") == [store.keys.input.encode()]
        reset(store, with_input=False)
        told = start("f", url=own_redis.url)
        wait_until(lambda: answered(store) == 1)
        assert store.call("EXISTS", store.keys.anew) == 0
        told.terminate()
        assert told.wait(20) == 0


def test_a_standby_begins_no_feed_whose_state_it_saw_while_it_waited(start, own_redis):
    """When it came there was none yet, so neither its first look nor an earlier process knows."""
    with Store(own_redis.url, "f") as store:
        store.call("SET", store.keys.lease, "another")
        standby = start("f", "--lease", "1", url=own_redis.url)
        wait_until(lambda: b"waiting for the lease" in standby.stderr.buffer.readline())
        store.call("HSET", store.keys.state, "epoch", "1")
        time.sleep(1.0)
        store.call("FLUSHALL")
        store.call("XADD", store.keys.input, "1-0", "x", "[1]", "y", "a")
        _, said = standby.communicate(timeout=20)
        assert standby.returncode == 4, said
        assert store.call("KEYS", "*") == [store.keys.input.encode()]


@pytest.mark.slow
def test_a_feed_whose_state_was_deleted_is_not_begun_again_unless_one_is_told_to(start, own_redis):
    """Neither by the worker that runs nor by one that starts."""
    with Store(own_redis.url, "f") as store:
        for i in range(2):
            store.call("XADD", store.keys.input, f"{i + 1}-0", "x", "[1]", "y", "a")
        first = start("f", url=own_redis.url)
        wait_until(lambda: answered(store) == 2)
        store.call("DEL", store.keys.state)
        store.call("XADD", store.keys.input, "3-0", "x", "[1]", "y", "a")
        for process in (first, start("f", url=own_redis.url)):
            _, said = process.communicate(timeout=30)
            assert process.returncode == 4, said
            assert "online-svm reset f" in said
            assert (answered(store), store.call("EXISTS", store.keys.state)) == (2, 0)


def test_a_key_of_another_type_exits_4_and_nothing_is_written(start, own_redis):
    with Store(own_redis.url, "f") as store:
        store.call("SET", store.keys.out, "foreign")
        process = start("f", url=own_redis.url)
        _, said = process.communicate(timeout=30)
        assert process.returncode == 4, said
        assert "holds a string, not a stream: move that key away" in said
        assert "Traceback" not in said
        assert store.call("KEYS", "*") == [store.keys.out.encode()]
