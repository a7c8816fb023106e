"""The live page of the demonstration's feeds, in a process of its own, and the report of one."""

import os
import subprocess
import sys
import webbrowser
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import orjson

from workers.broker.store import Store

_DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY")


@contextmanager
def live_page(feeds: Sequence[str], url: str, environment: Mapping[str, str]) -> Iterator[str]:
    """Serve the page of some feeds while the block runs; give its address.

    Parameters
    ----------
    feeds : sequence of str
    url : str
        Of Redis.
    environment : mapping of str to str
        Of the process that serves it.
    """
    command = [sys.executable, "-m", "workers.cli", "dashboard", *feeds, "--redis", url]
    process = subprocess.Popen(
        [*command, "--port", "0", "--json"],
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert process.stdout is not None
        yield orjson.loads(process.stdout.readline())["url"]
    finally:
        process.terminate()
        process.communicate(timeout=15)


def show(link: str) -> None:
    """Open a page in the user's browser, if there is a screen for it."""
    if sys.platform != "linux" or any(os.environ.get(name) for name in _DISPLAYS):
        webbrowser.open(link)


def write_report(url: str, feed: str, path: Path) -> None:
    """Write the report of a feed as one HTML file."""
    from workers.dashboard.report.html_report import html_report
    from workers.dashboard.report.past_feed import read_past

    with Store(url, feed) as store:
        path.write_text(html_report(read_past(store, None, None, "n")), encoding="utf-8")
