"""The page of a feed beside its worker: in a process of its own, so that no answer waits for it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from workers.config.environment import PREFIX

_SECONDS = 10.0
"""Seconds in which the page ends, before it is killed."""


@contextmanager
def page_beside(feed: str, url: str, port: int) -> Iterator[None]:
    """Serve the page of a feed on loopback while the block runs; nothing waits for it to begin.

    It says on standard error where it is, or why it cannot be. It ends with this process, even if
    that is killed: its standard input then ends.

    Parameters
    ----------
    feed, url : str
    port : int
        0 for any free one.
    """
    command = [sys.executable, "-m", "workers.cli", "dashboard", feed, "--port", str(port)]
    # The URL may hold a password, which no list of processes may show. What it was made of stays
    # out: it is complete.
    environment = {name: text for name, text in os.environ.items() if not name.startswith(PREFIX)}
    process = subprocess.Popen(
        [*command, "--until-input-ends"],
        env=environment | {f"{PREFIX}REDIS": url},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        assert process.stdin is not None
        process.stdin.close()
        try:
            process.wait(_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
