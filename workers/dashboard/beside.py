"""The page in a process of its own, so that no answer waits for it."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from workers.config.environment import PREFIX

_SECONDS = 10.0
"""Seconds in which the page ends, before it is killed."""


@contextmanager
def page_beside(feeds: Sequence[str], url: str, port: int, *options: str) -> Iterator[bytes]:
    """Serve the page of feeds on loopback while the block runs.

    It says on standard error where it is, or why it cannot be; with `--json` it says so only to
    this process, which waits for that. It ends with this process, even if that is killed: its
    standard input then ends.

    Parameters
    ----------
    feeds : sequence of str
        Names and patterns.
    url : str
        Of Redis.
    port : int
        0 for any free one.
    *options : str
        More options of `dashboard`.

    Yields
    ------
    bytes
        The address of the page as JSON; without `--json` nothing, and nothing is waited for.
    """
    command = [sys.executable, "-m", "workers.cli", "dashboard", *feeds, "--port", str(port)]
    is_told = "--json" in options
    # The URL may hold a password, which no list of processes may show. What it was made of stays
    # out: it is complete.
    environment = {name: text for name, text in os.environ.items() if not name.startswith(PREFIX)}
    process = subprocess.Popen(
        [*command, *options, "--until-input-ends"],
        env=environment | {f"{PREFIX}REDIS": url},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE if is_told else subprocess.DEVNULL,
        stderr=subprocess.DEVNULL if is_told else None,
    )
    try:
        yield b"" if process.stdout is None else process.stdout.readline()
    finally:
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
        try:
            process.wait(_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
