"""A feed that begins with a model answers as that would have gone on, and is as any other feed."""

import json
from pathlib import Path

import numpy as np
import orjson
import pytest
from six_decimals import point
from world import Worker, push, wait_until

from online_svm import OnlineClassifier
from workers.admin import verify
from workers.admin.reset import reset
from workers.broker.store import Store
from workers.config.settings import WorkerSettings
from workers.errors import ConfigurationChanged, StateLost
from workers.recording import begin as beginning
from workers.recording.backup import backup
from workers.recording.begin import begin
from workers.recording.file import InvalidRecording
from workers.session.preflight import KnownFeeds

SAME = {
    "window": 60, "refit_every": 20, "gamma": 0.5,
    "settings": {"metrics_every": 10},
}  # fmt: skip
"""What an estimator is given for the settings of a world."""

BEFORE, AFTER = 130, 90
ACL = Path(__file__).parents[3] / "deploy" / "redis" / "users.acl"


@pytest.fixture
def saved(tmp_path):
    """A file of an estimator that has learned, the rest of its rows as entries, its answers."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(BEFORE + AFTER, 3)).round(6)
    y = np.where(X[:, 0] + rng.normal(size=len(X)) > 0, "b", "a")
    model = OnlineClassifier(**SAME).fit(X[:BEFORE], y[:BEFORE])
    model.save(tmp_path / "model")
    entries = [
        ["x", json.dumps(x.tolist()), "y", str(label)]
        for x, label in zip(X[BEFORE:], y[BEFORE:], strict=True)
    ]
    return (
        tmp_path / "model",
        entries,
        [point(exact) for exact in model.progressive_proba(X[BEFORE:], y[BEFORE:]).tolist()],
    )


def answers(store):
    page = store.call("XRANGE", store.keys.out, "-", "+")
    return [orjson.loads(fields[1]) for _, fields in page]


@pytest.mark.servers("embedded")
@pytest.mark.parametrize("first", ["input", "worker"])
def test_a_worker_begins_a_feed_with_a_model_and_goes_on_as_that_would(world, saved, first):
    file, entries, expected = saved
    half = AFTER // 2
    if first == "input":
        world.push(entries[:half])
    stops = (half, AFTER) if first == "input" else (AFTER,)
    command = ("worker", world.feed, "--redis", world.url, "--from", file)
    for stop in stops:  # the second worker finds that the feed exists
        with Worker(*command) as worker:
            if world.pushed < stop:
                worker.wait_for(world.store, BEFORE)
                world.push(entries[world.pushed : stop])
            worker.wait_for(world.store, BEFORE + stop)
            said = worker.stopped()
        begins = f"begins with {file}, which has learned 130 examples"
        assert (begins in said) == (stop == stops[0])
        assert (f"exists: it goes on, and {file} is not read" in said) == (stop != stops[0])
    found = answers(world.store)
    assert [answer["probabilities"] for answer in found] == expected
    assert [answer["n"] for answer in found] == [*range(BEFORE, BEFORE + AFTER)]
    state = world.store.state()
    assert (state.position.seq, state.position.n) == (BEFORE + AFTER, BEFORE + AFTER)
    assert verify.verify(world.store).is_identical
    code, out, _ = world.run("status", world.feed, "--json")
    assert code == 0
    assert orjson.loads(out)["n"] == BEFORE + AFTER


@pytest.fixture
def begun(world, saved):
    """A world of a feed that began with the model and has answered nothing."""
    assert begin(world.store, saved[0], WorkerSettings()) == BEFORE
    return world


def test_whatever_the_batches_and_crashes_the_answers_are_those_of_the_model(begun, saved):
    _, entries, expected = saved
    begun.push(entries)
    for upto in (30, 60, AFTER):  # no session but the first hears of the model
        running = begun.answer(BEFORE + upto, batch=7)
        if upto == 60:
            running.snapshot()
    assert [answer["probabilities"] for answer in answers(begun.store)] == expected
    assert verify.verify(begun.store).is_identical


def test_a_feed_begins_with_the_backup_of_another_too(begun, saved, tmp_path):
    _, entries, expected = saved
    begun.push(entries[:40])
    begun.answer(BEFORE + 40).snapshot()
    file = tmp_path / "backup"
    backup(begun.store, file)
    other = begun.beside("other")
    assert begin(other.store, file, WorkerSettings()) == BEFORE + 40
    other.push(entries[40:])
    other.answer(BEFORE + AFTER)
    assert [answer["probabilities"] for answer in answers(other.store)] == expected[40:]


def test_a_feed_that_exists_goes_on_and_one_that_was_lost_is_not_begun(begun, saved, tmp_path):
    file, entries, _ = saved
    begun.push(entries)
    begun.answer(BEFORE + 10)
    position = begun.store.state().position
    assert begin(begun.store, file, WorkerSettings(window=77)) is None
    assert begun.store.state().position == position
    begun.store.call("DEL", begun.store.keys.state)
    with pytest.raises(StateLost, match="st is gone"):
        begin(begun.store, file, WorkerSettings())
    reset(begun.store, with_input=True)
    assert begin(begun.store, file, WorkerSettings()) == BEFORE
    other, known = begun.beside("seen"), KnownFeeds(begun.url)
    known.add(other.feed)
    with pytest.raises(StateLost, match="this process saw it"):
        begin(other.store, file, WorkerSettings(), known)


def test_two_workers_at_once_begin_it_once(begun, saved, monkeypatch):
    file, _, _ = saved
    other = begun.beside("raced")
    found = beginning.find

    def late(store, **options):
        seen = found(store, **options)
        assert begin_by_another(store) == BEFORE
        return seen

    def begin_by_another(store):
        monkeypatch.setattr(beginning, "find", found)
        return begin(store, file, WorkerSettings())

    monkeypatch.setattr(beginning, "find", late)
    assert begin(other.store, file, WorkerSettings()) is None
    assert other.store.state().position.n == BEFORE


def test_other_settings_and_files_that_hold_no_model_are_refused_before_anything_is_written(
    world, saved, tmp_path
):
    file, _, _ = saved
    with pytest.raises(ConfigurationChanged, match="of its model: window: feed 60, here 100"):
        begin(world.store, file, WorkerSettings(window=100))
    (tmp_path / "other").write_bytes(file.read_bytes()[:-1])
    for path, why in [
        (tmp_path / "other", "is damaged: it is cut"),
        (tmp_path / "none", "cannot be opened: No such file"),
    ]:
        with pytest.raises(InvalidRecording, match=why):
            begin(world.store, path, WorkerSettings())
    assert world.store.state() is None
    code, _, said = world.run("worker", "a", "b", "--from", file)
    assert (code, "--from begins one feed" in said) == (2, True)


@pytest.mark.parametrize("is_there", [True, False])
def test_the_user_of_a_worker_may_begin_a_feed(own_redis, feed, saved, is_there):
    file, entries, expected = saved
    with Store(own_redis.url, feed) as admin:
        rules = next(rule for rule in ACL.read_text().splitlines() if "user osvm-worker " in rule)
        admin.call("ACL", "SETUSER", "osvm-worker", *rules.split()[3:], "on", "nopass")
        if is_there:
            push(admin, entries)
        url = own_redis.url.replace("://", "://osvm-worker:any@")
        with Worker("worker", feed, "--redis", url, "--from", file) as worker:
            wait_until(lambda: admin.state() is not None)
            if not is_there:
                push(admin, entries)
            worker.wait_for(admin, BEFORE + AFTER)
            assert "NOPERM" not in worker.stopped()
        assert [answer["probabilities"] for answer in answers(admin)] == expected
