"""The command in a process of its own, for tests of what it leaves in Redis."""

import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from processes import Process

from workers.broker.store import Store

PATIENCE = 60  # seconds, for a machine that does much else


def flags_of(settings: Mapping[str, str]) -> list[str]:
    """Return settings as options of the command."""
    return [word for name, text in settings.items() for word in (_flag(name), text)]


def work(url: str, feed: str, settings: Mapping[str, str], seq: int, notes: Path) -> str:
    """Run the worker until the feed has answered `seq` entries, then stop it; return its notes."""
    command = [sys.executable, "-m", "workers.cli", "worker", feed, "--redis", url]
    command += flags_of(settings)
    with notes.open("w") as target, Process(command, stderr=target) as worker:
        try:
            deadline = time.monotonic() + PATIENCE
            with Store(url, feed) as store:
                while (state := store.state()) is None or state.position.seq < seq:
                    assert worker.poll() is None, notes.read_text()
                    assert time.monotonic() < deadline
                    time.sleep(0.05)
            worker.send_signal(signal.SIGTERM)
            assert worker.wait(20) == 0, notes.read_text()
        finally:
            worker.kill()
    return notes.read_text()


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
