"""The page beside a worker: in a process of its own, so that no answer waits for it."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from workers.config.environment import PREFIX

_SECONDS = 10.0
"""Seconds in which the page ends, before it is killed."""


@contextmanager
def page_beside(
    feeds: Sequence[str], url: str, port: int, shard: str | None = None
) -> Iterator[None]:
    """Serve the page of feeds on loopback while the block runs; nothing waits for it to begin.

    It says on standard error where it is, or why it cannot be. It ends with this process, even if
    that is killed: its standard input then ends.

    Parameters
    ----------
    feeds : sequence of str
        Names and patterns.
    url : str
        Of Redis.
    port : int
        0 for any free one.
    shard : str, optional
        `i/n`: only the feeds of this shard.
    """
    command = [sys.executable, "-m", "workers.cli", "dashboard", *feeds, "--port", str(port)]
    command += [] if shard is None else ["--shard", shard]
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
