"""A backup asks the worker at work for a snapshot, and says what its model lacks without one."""

import time

import pytest
from many_feeds import has_answered, running, settings
from session_steps import answer_batch
from world import drain, push, rows, session, wait_until
from world import push as push_to

from workers.broker.leases import Holder
from workers.broker.store import Store
from workers.recording.backup import backup, request_ahead
from workers.session import flow


def hold(store):
    """Let the feed be held, as by a worker that does nothing."""
    store.call("SET", store.keys.lease, Holder.here("busy").encode(), "PX", 60_000)


def test_a_feed_at_rest_in_a_process_of_many_leaves_a_snapshot_when_asked(
    redis_url, feed, tmp_path, lagging
):
    names = [f"{feed}-{i}" for i in range(3)]
    stores = [Store(redis_url, name) for name in names]
    for seed, one in enumerate(stores):
        push_to(one, rows(30, seed))
    with running(names, redis_url, settings=settings(replay_budget=10_000)):
        wait_until(lambda: all(has_answered(one, 30) for one in stores))
        for one in stores:
            assert one.state().snapshot is None
            saved = backup(one, tmp_path / one.keys.feed, seconds=30.0)
            assert (saved.snapshot, saved.reason) == (one.state().position, None)
        assert all(has_answered(one, 30) for one in stores)
    for one in stores:
        one.close()


def test_the_next_commit_of_a_busy_feed_brings_the_snapshot_and_only_one(store, monkeypatch):
    monkeypatch.setattr(flow, "POLL_SECONDS", 0.0)
    push(store, rows(120))
    answering = session(store, batch=10)
    drain(answering, 40)
    store.call("SET", store.keys.wanted, store.state().position.cursor, "PX", 60_000)
    found = set()
    while answering.position.seq < 120:
        answer_batch(answering)
        found.add(store.state().snapshot)
    (left,) = found - {None}
    assert left.cursor != b"0-0"


def test_a_snapshot_that_holds_all_is_saved_without_asking(store, tmp_path):
    push(store, rows(60))
    answering = session(store)
    drain(answering, 60)
    answering.snapshot()
    assert backup(store, tmp_path / "file", seconds=30.0).reason is None
    assert store.call("EXISTS", store.keys.wanted) == 0


def test_without_a_worker_the_newest_snapshot_is_saved(store, tmp_path):
    push(store, rows(120))
    answering = session(store, batch=10)
    drain(answering, 60)
    answering.snapshot()
    kept = store.state().snapshot
    drain(answering, 120)
    began = time.monotonic()
    saved = backup(store, tmp_path / "file", seconds=30.0)
    assert time.monotonic() - began < 25.0, "nobody is waited for"
    assert saved.snapshot.cursor == kept.cursor
    assert saved.position.seq == 120
    assert saved.reason == (
        f"no worker is at work that could leave one; start one: online-svm worker {store.keys.feed}"
    )


@pytest.mark.parametrize(
    ("seconds", "reason"),
    [
        (0.0, "its worker was not asked for one (--timeout 0)"),
        (0.3, "its worker left none within 0.3 s: it may wait for a refit, replay, or have set "),
    ],
)
def test_a_feed_without_a_snapshot_says_why_there_is_none_now(store, tmp_path, seconds, reason):
    push(store, rows(30))
    drain(session(store), 30)
    hold(store)
    waited = []
    saved = backup(store, tmp_path / "file", seconds=seconds, waiting=waited.append)
    assert reason in saved.reason
    assert (saved.snapshot, saved.done.answers) == (None, 30)
    assert bool(waited) == bool(seconds)
    assert store.call("PTTL", store.keys.wanted) <= 1000 * seconds + 1


def test_what_is_asked_ahead_is_not_asked_again(store, tmp_path, monkeypatch):
    monkeypatch.setattr(flow, "POLL_SECONDS", 0.0)
    push(store, rows(80))
    answering = session(store, batch=10)
    drain(answering, 40)
    hold(store)
    request_ahead(store, 30.0)
    drain(answering, 80)
    left = store.state().snapshot
    saved = backup(store, tmp_path / "file", seconds=30.0)
    assert (saved.snapshot.cursor, saved.reason) == (left.cursor, None)
    assert store.call("EXISTS", store.keys.wanted) == 0


def test_a_user_that_may_not_ask_gets_the_newest_snapshot_and_is_told(
    store, redis_url, feed, tmp_path
):
    push(store, rows(60))
    answering = session(store, batch=10)
    drain(answering, 20)
    answering.snapshot()
    drain(answering, 60)
    hold(store)
    rules = ("on", ">secret-of-a-test", "allkeys", "+@all", "-set")
    store.call("ACL", "SETUSER", "looker", *rules)
    with Store(redis_url, feed) as other:
        other.call("AUTH", "looker", "secret-of-a-test")
        saved = backup(other, tmp_path / "file", seconds=5.0)
    assert saved.reason.startswith("this user may not ask the worker for one")


def test_a_request_of_another_type_stops_no_worker(store, monkeypatch):
    monkeypatch.setattr(flow, "POLL_SECONDS", 0.0)
    store.call("RPUSH", store.keys.wanted, "x")
    push(store, rows(40))
    drain(session(store), 40)


def test_the_command_waits_for_the_worker_and_says_so(own_redis, run_command, tmp_path):
    url, path = own_redis.url, tmp_path / "saved"
    with Store(url, "mail") as store:
        push(store, rows(40))
        with running(["mail"], url):
            wait_until(lambda: has_answered(store, 40))
            code, _, said = run_command("backup", "mail", path, "--redis", url)
        assert code == 0, said
        logged = "timestamp="  # by the worker in this process
        first, *_, last = (line for line in said.splitlines() if not line.startswith(logged))
        assert first == "waiting for a snapshot of feed 'mail' (0 s)"
        assert last.startswith("backup of feed 'mail' at seq 40, ")
