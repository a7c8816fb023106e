"""Rows of the memory are stored once, in chunks that snapshots share, never within a snapshot."""

import numpy as np
import pytest
from world import drain, payloads, session

from online_svm.config import PredictorConfig
from online_svm.memory.rows import CHUNK_ROWS, StoredRows, key_of
from online_svm.storage.recording import opened, predictor_of
from online_svm.storage.state import unpack
from workers.broker.store import Store
from workers.cli.status import describe
from workers.errors import BadConfiguration
from workers.reading.status import read_status
from workers.recording.backup import backup
from workers.recording.erasure import erase, erase_file
from workers.recording.reader import Recording
from workers.recording.restore import restore
from workers.session import snapshots
from workers.session.preflight import check_snapshots
from workers.session.replay import restored

COUNT, EVERY = 2_600, 500
CONFIG = PredictorConfig(classes=("a", "b"), refit_every=400, window=400, memory=100_000)


def push_rows(store, begin, stop):
    rng = np.random.default_rng(begin)
    for i, x in enumerate(rng.normal(size=(stop - begin, 2)), begin):
        label = "b" if x[0] + rng.normal() > 0.0 else "a"
        cells = f"[{x[0]:.3f},{x[1]:.3f}]"
        store.call("XADD", store.keys.input, f"{i + 1}-0", "x", cells, "y", label, "id", f"id-{i}")


def at_work(store):
    return session(store, batch=100, config=CONFIG, snapshot_every=EVERY)


@pytest.fixture
def learned(store):
    """A feed with three chunks, and a snapshot near its end."""
    push_rows(store, 0, COUNT)
    drain(at_work(store), COUNT)
    return store


def chunk_keys(store):
    return {key for key in store.snapshot_keys() if ":memory:" in key}


def test_snapshots_share_finished_chunks_and_nothing_else_is_kept(learned):
    newest, previous = learned.state().snapshots
    assert [name.partition("-")[0] for name in newest.chunks] == ["0", "1", "2"]
    assert newest.chunks[:2] == previous.chunks[:2]
    named = learned.keys.memory_chunks({*newest.chunks, *previous.chunks})
    assert chunk_keys(learned) == set(named)
    assert all(learned.call("TTL", key) == -1 for key in named)
    body = snapshots.read(learned, newest, learned.state().pinned.config_hash)
    size = sum(len(chunk) for chunk in body.chunks)
    assert size > 2 * CHUNK_ROWS * 8 * 2
    assert len(body.whole) > len(body.body) + size - 1


def test_a_worker_that_begins_with_them_gives_the_same_bytes(learned, redis_url, feed):
    push_rows(learned, COUNT, COUNT + 500)
    drain(at_work(learned), COUNT + 500)
    with Store(redis_url, f"{feed}-whole", block_ms=20) as whole:
        push_rows(whole, 0, COUNT)
        push_rows(whole, COUNT, COUNT + 500)
        drain(at_work(whole), COUNT + 500)
        assert payloads(whole) == payloads(learned)
        assert whole.state().position == learned.state().position


@pytest.mark.parametrize("damage", ["gone", "changed"])
def test_a_snapshot_without_one_of_them_is_passed_over(learned, damage):
    newest, previous = learned.state().snapshots
    (name,) = set(newest.chunks) - set(previous.chunks)
    (key,) = learned.keys.memory_chunks([name])
    if damage == "gone":
        learned.call("DEL", key)
    else:
        learned.call("SET", key, b"other bytes")
    assert len(check_snapshots(learned, learned.state())) == 1
    push_rows(learned, COUNT, COUNT + 500)
    drain(at_work(learned), COUNT + 500)
    assert check_snapshots(learned, learned.state()) == ()


def test_a_writer_that_was_replaced_lets_none_of_them_expire(learned):
    newest = learned.state().snapshot
    found = snapshots.read(learned, newest, learned.state().pinned.config_hash)
    again = dict(zip(newest.chunks, found.chunks, strict=True))
    learned.finish_snapshot(learned.put_snapshot(newest, b"", again))
    named = learned.keys.memory_chunks(newest.chunks)
    assert {learned.call("TTL", key) for key in named} == {-1}
    new = {f"9-{'0' * 32}": b"rows"}
    (key,) = learned.keys.memory_chunks(new)
    for _ in range(2):
        learned.finish_snapshot(learned.put_snapshot(newest, b"", new))
        assert 0 < learned.call("TTL", key) <= 3600


def test_a_recording_has_the_rows_and_a_restored_feed_goes_on_alike(learned, tmp_path):
    path = tmp_path / "feed.sqlite"
    backup(learned, path)
    with opened(path) as file:
        newest = file.execute("SELECT max(seq) FROM snapshots").fetchone()[0]
        arrays = unpack(predictor_of(file, newest)).arrays
    assert sum(name.startswith("memory_chunk.") for name in arrays) == 3
    push_rows(learned, COUNT, COUNT + 500)
    drain(at_work(learned), COUNT + 500)
    expected = payloads(learned)
    learned.call("FLUSHALL") if learned.keys else None
    with Recording.open(path) as recording:
        restore(learned, recording)
    push_rows(learned, COUNT, COUNT + 500)
    drain(at_work(learned), COUNT + 500)
    found = payloads(learned)
    assert all(found)
    assert found == [before[-len(now) :] for before, now in zip(expected, found, strict=True)]


@pytest.mark.parametrize("of", ["feed", "file", "file alone"])
def test_a_person_is_erased_from_the_memory_and_the_rest_stays(learned, tmp_path, of):
    path, keys = tmp_path / "feed.sqlite", {key_of("id-5")}
    backup(learned, path)
    with Recording.open(path) as recording:
        assert rows_in(recording) == (COUNT - seen_late(recording), keys)
    if of == "file alone":
        erased = erase_file(path, "id-5")
    else:
        if of == "feed":  # only the memory has the person now
            learned.call("XTRIM", learned.keys.out, "MINID", "100-0")
        erased = erase(learned, "id-5", path if of == "file" else None)
        assert rows_in(learned) == (COUNT - 1, set())
        assert chunk_keys(learned) == set()  # the next snapshot of a worker makes them anew
        push_rows(learned, COUNT, COUNT + 500)
        drain(at_work(learned), COUNT + 500)
        assert rows_in(learned) == (COUNT + 499, set())
    assert erased.entries == (0 if of == "feed" else 1)
    if of != "feed":
        with Recording.open(path) as recording:
            assert rows_in(recording)[1] == set()
            assert rows_in(recording)[0] >= COUNT - 100
    for write in (lambda: erase(learned, "id-5"), lambda: erase(learned, "nobody")):
        if of != "file alone":
            with pytest.raises(BadConfiguration, match="keeps nothing of this id"):
                write()


def seen_late(recording):
    """Return the examples after the newest snapshot."""
    state = recording.state()
    return state.position.n - state.snapshot.n


def rows_in(reader):
    """Return the rows of the memory in the newest snapshot, and the key of id-5 if it has it."""
    replay = restored(reader, reader.state(), reader.state().snapshots)
    chunks = [StoredRows.of(chunk.data).rows for chunk in replay.predictor.memory_chunks()]
    found = {key for rows in chunks for key in rows.keys.tolist()}
    return sum(len(rows.codes) for rows in chunks), found & {key_of("id-5")}


def test_status_tells_how_much_the_memory_holds(learned):
    found = read_status(learned)
    memory = found.memory
    rows = learned.state().snapshot.n
    assert (memory["rows"], memory["bound"]) == (rows, 100_000)
    assert memory["bytes"] == rows * 2 * 8
    assert 1_000 <= memory["fitted_at"] < COUNT
    assert sum(memory["weights"].values()) == pytest.approx(1.0)
    assert f"{rows:,} of 100,000 examples, 40 kB" in describe(found)
