"""A file of a feed that refuses repeated ids begins feeds and estimators as any other."""

import re

import pytest
from recorded_feed import KEPT, answering, entry, push, stream

from online_svm import OnlineClassifier
from workers.cli.status import describe
from workers.config.settings import WorkerSettings
from workers.reading.status import read_status
from workers.recording.backup import backup
from workers.recording.begin import begin
from workers.recording.erasure import erase
from workers.recording.reader import Recording
from workers.recording.restore import restore


@pytest.fixture
def file(embedded_url, feed, tmp_path):
    """The file of a feed that has answered 60 entries and knows their ids."""
    with answering(embedded_url, feed, **KEPT, dedupe_window=40) as (store, answer, session):
        push(store, 0, 60)
        answer()
        session.snapshot()
        backup(store, tmp_path / "feed.sqlite")
        yield store, tmp_path / "feed.sqlite"


def repeat(store, *numbers):
    """Push entries under the id of an earlier one."""
    for i in numbers:
        at, fields = entry(i)
        pairs = [part for pair in (fields | {"id": "id-59"}).items() for part in pair]
        store.call("XADD", store.keys.input, at, *pairs)


def counted(store):
    found = read_status(store)
    told = re.search(r" \((\d+) duplicates among them\)", describe(found))
    assert store.state().duplicates == found.duplicates == (int(told[1]) if told else 0)
    return found.duplicates


def test_duplicates_are_counted_through_a_crash_a_restore_and_an_erasure(file):
    store, path = file
    assert counted(store) == 0
    with answering(store.url, store.keys.feed, **KEPT, dedupe_window=40) as (_, answer, session):
        repeat(store, 61, 62)
        answer()
        assert counted(store) == 2
        session.snapshot()
        repeat(store, 63)
        answer()  # no snapshot has it: the next worker replays it
    with answering(store.url, store.keys.feed, **KEPT, dedupe_window=40) as (_, answer, _session):
        repeat(store, 64)
        answer()
        assert counted(store) == 4
    backup(store, path)
    store.call("XTRIM", store.keys.input, "MINID", entry(63)[0])
    erase(store, "id-58")
    assert counted(store) == 4
    store.call("FLUSHALL")
    with Recording.open(path) as recording:
        restore(store, recording)
    with answering(store.url, store.keys.feed, **KEPT, dedupe_window=40) as (_, answer, _session):
        repeat(store, 66)
        answer()
        assert counted(store) == 5


def test_an_estimator_loads_it(file):
    model = OnlineClassifier.load(file[1])
    assert model.predict([[3.0, 1.0]]).tolist()[0] in ("a", "b")


@pytest.mark.parametrize("window", [0, 7])
def test_a_new_feed_begins_with_it_and_knows_none_of_its_ids(file, window):
    store, path = file
    new = f"{store.keys.feed}-new"
    with type(store)(store.url, new) as other:
        assert begin(other, path, WorkerSettings(dedupe_window=window)) == 54
    with answering(store.url, new, dedupe_window=window, replay_budget=40) as (other, answer, _):
        push(other, 58, 70)
        answer()
        statuses = [b'"status":"duplicate"' in fields[1] for _, fields in stream(other, "out")]
    assert statuses == [False] * 12


def test_a_restored_feed_still_knows_them(file):
    store, path = file
    store.call("FLUSHALL") if store.keys else None
    with Recording.open(path) as recording:
        restore(store, recording)
    with answering(store.url, store.keys.feed, **KEPT, dedupe_window=40) as (_, answer, _session):
        repeat(store, 61)
        answer()
        assert b'"status":"duplicate"' in stream(store, "out")[-1][1][1]
