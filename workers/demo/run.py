"""The demonstration of `online-svm demo`, step by step."""

import os
import signal
import subprocess
import sys
import threading
import time
import webbrowser
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import orjson
from rich.console import Console
from rich.live import Live
from rich.progress import Progress as Clock
from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

from workers.admin.notes import note
from workers.broker import embedded
from workers.broker.connection import Connection
from workers.broker.store import Store
from workers.config.environment import PREFIX
from workers.dashboard.page_process import page_process
from workers.demo.feeds import DemoFeed, Drift, Progress, alarm_sentence
from workers.demo.view import LEGEND, Rate, draw_curves, line, methods_table, render
from workers.errors import WorkerError
from workers.feed.keys import FeedKeys
from workers.push.ingest import Pacing, PushRate, entry, push
from workers.push.rows import Row
from workers.python_process import command, environment
from workers.stop import Stop
from workers.text import printable

DRIFTING = DemoFeed(
    "sensors",
    "Bananas",
    "sensors: two measurements, 2 classes",
    175.0,
    limit=2400,
    drift=Drift(1200, "2"),
)
PLANS = (
    DemoFeed("phishing", "Phishing", "phishing: web pages, 2 classes", 90.0),
    DemoFeed(
        "segments",
        "ImageSegments",
        "segments: image patches, 7 classes",
        165.0,
    ),
    DRIFTING,
)
METRICS_EVERY = 25
REPORT = "report.html"  # name of the report of the feed that drifts, in the folder of the curves
_PATIENCE = 120.0  # seconds after which a feed that does not move has failed
_REFRESH = 0.2
_DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY")


class DemoFailed(WorkerError):
    """A worker of the demonstration ended, or went silent."""


def run(picture: Path, console: Console, speed: float = 1.0, *, page: bool = False) -> None:
    """Push three real feeds, answer them with a worker each, show it, and draw the curves.

    One of them drifts on purpose; the view tells the alarm. A terminal has a live view, other
    outputs plain lines. `speed` multiplies the rate of the pushes; with `page` the live page is
    served as well, until Enter is pressed after the last answer.

    Raises DemoFailed if a worker ends early or nothing moves any more.
    """
    with _doing("reading the data", console):
        data = {plan.feed: plan.examples() for plan in PLANS}
    with ExitStack() as stack:
        server = stack.enter_context(embedded.temporary())
        console.print(f"Redis, embedded and private: {server.url}", soft_wrap=True)
        connected = stack.enter_context(closing(Connection(server.url, Stop())))
        workers = [stack.enter_context(_worker(plan, data[plan.feed], server)) for plan in PLANS]
        feeds = [Progress(plan, len(data[plan.feed])) for plan in PLANS]
        with _doing("starting a worker for each feed", console):
            _wait_for_workers(feeds, workers, connected)
        if page:
            names = [plan.feed for plan in PLANS]
            told = stack.enter_context(page_process(names, server.url, 0, "--json"))
            link = orjson.loads(told)["url"]
            console.print(f"The page: {link}", soft_wrap=True)
            _show(link)
        for plan in PLANS:
            _start_pushing(plan, data[plan.feed], server.url, speed)
        _watch(feeds, workers, connected, console, server.url)
        report = picture.with_name(REPORT)
        with _doing("writing the report", console):
            _write_report(server.url, DRIFTING.feed, report)
        if page:
            console.print("The feeds are answered. The page stays until you press Enter.")
            sys.stdin.readline()
    _conclude(feeds, picture, console)
    console.print(f"Report of {DRIFTING.feed}: {report}", soft_wrap=True)


@contextmanager
def _doing(text: str, console: Console) -> Iterator[None]:
    """Say what goes on in the block: with a clock on a terminal, as a plain line elsewhere."""
    if not console.is_terminal:
        console.print(f"{text} ...", soft_wrap=True)
        yield
        return
    columns = (SpinnerColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Clock(*columns, console=console, transient=True) as clock:
        clock.add_task(text)
        yield


def _show(link: str) -> None:
    """Open a page in the user's browser, if there is a screen for it."""
    if sys.platform != "linux" or any(os.environ.get(name) for name in _DISPLAYS):
        webbrowser.open(link)


def _write_report(url: str, feed: str, path: Path) -> None:
    from workers.dashboard.html_report import html_report
    from workers.dashboard.past_run import read_past

    with Store(url, feed) as store:
        path.write_text(html_report(read_past(store, None, None, "n")), encoding="utf-8")


@contextmanager
def _worker(
    plan: DemoFeed, data: list[Row], server: embedded.Embedded
) -> Iterator[subprocess.Popen[bytes]]:
    """Run the real command in a process of its own, and stop it as a supervisor would."""
    classes = sorted({row.y for row in data if row.y is not None})
    worker = command(
        "-m", "workers.cli", "worker", plan.feed, "--redis", server.url,
        "--classes", ",".join(classes), "--metrics-every", str(METRICS_EVERY),
    )  # fmt: skip
    # Files that a worker leaves for later workers are removed with the server.
    inherited = _without_settings() | {"XDG_STATE_HOME": str(server.directory)}
    process = subprocess.Popen(
        worker, env=inherited, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.communicate(timeout=15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            assert process.stderr is not None
            process.stderr.close()  # not read: what the worker began may hold it open


def _without_settings() -> dict[str, str]:
    """Return the environment without the user's settings, which are for feeds of the user's."""
    return {name: text for name, text in environment().items() if not name.startswith(PREFIX)}


def _wait_for_workers(
    feeds: list[Progress], workers: list[subprocess.Popen[bytes]], connected: Connection
) -> None:
    """Wait until each worker has taken its feed: what comes then is answered as it comes."""
    end = time.monotonic() + _PATIENCE
    for feed, worker in zip(feeds, workers, strict=True):
        while not connected.exists(FeedKeys(feed.plan.feed).state):
            _check_alive(feed, worker)
            if time.monotonic() > end:
                raise DemoFailed(f"the worker of {feed.plan.feed} did not start")
            time.sleep(_REFRESH)


def _start_pushing(plan: DemoFeed, data: list[Row], url: str, speed: float) -> None:
    pace = PushRate(speed * plan.rate)
    arguments = {"encode": partial(entry, arrays=True), "pacing": Pacing(pace.chunk, pace)}
    place = (data, url, plan.feed)
    threading.Thread(target=push, args=place, kwargs=arguments, daemon=True).start()


def _watch(
    feeds: list[Progress],
    workers: list[subprocess.Popen[bytes]],
    connected: Connection,
    console: Console,
    url: str,
) -> None:
    rates = {feed.plan.feed: Rate() for feed in feeds}
    still, last = 0.0, -1
    noted: set[str] = set()
    with _display(feeds, rates, console) as update:
        while not all(feed.is_done for feed in feeds):
            for feed, worker in zip(feeds, workers, strict=True):
                feed.refresh(connected)
                _check_alive(feed, worker)
                _note_drift(feed, noted, url)
            update()
            answered = sum(feed.answered for feed in feeds)
            still, last = (0.0 if answered != last else still + _REFRESH), answered
            if still > _PATIENCE:
                raise DemoFailed(f"nothing was answered for {_PATIENCE:.0f} s; see the log above")
            time.sleep(_REFRESH)
        for feed in feeds:
            feed.refresh(connected)
        update()


def _note_drift(feed: Progress, noted: set[str], url: str) -> None:
    """Note a drift once it is reached, so that the page and the report mark it."""
    plan = feed.plan
    if plan.drift is None or plan.feed in noted or feed.answered < plan.drift.at:
        return
    noted.add(plan.feed)
    with Store(url, plan.feed) as store:
        note(store, plan.drift.sentence, plan.drift.at, "online-svm demo")


@contextmanager
def _display(feeds: list[Progress], rates: dict[str, Rate], console: Console) -> Iterator[Any]:
    if console.is_terminal:
        with Live(console=console, auto_refresh=False) as live:
            yield lambda: live.update(render(feeds, rates), refresh=True)
        return
    said: dict[str, int] = {}
    told: dict[str, int] = {}

    def tell() -> None:
        for feed in feeds:
            for raised in feed.alarms[told.get(feed.plan.feed, 0) :]:
                sentence = alarm_sentence(raised, feed.plan.drift)
                console.print(f"{feed.plan.feed}: {printable(sentence)}", highlight=False)
            told[feed.plan.feed] = len(feed.alarms)
            tenth = 10 * feed.answered // feed.total
            if said.get(feed.plan.feed) != tenth:
                said[feed.plan.feed] = tenth
                console.print(line(feed), highlight=False)

    yield tell


def _check_alive(feed: Progress, worker: subprocess.Popen[bytes]) -> None:
    if worker.poll() is None:
        return
    assert worker.stderr is not None
    said = worker.stderr.read().decode(errors="replace").strip()
    raise DemoFailed(f"the worker of {feed.plan.feed} ended with code {worker.returncode}: {said}")


def _conclude(feeds: list[Progress], picture: Path, console: Console) -> None:
    """Draw the curves; print the results where no live view has shown them."""
    if not console.is_terminal:
        for feed in feeds:
            console.print(f"\n[bold]{feed.plan.title}[/]: {feed.answered:,} examples answered")
            console.print(methods_table(feed.latest))
        console.print(f"\n{LEGEND}")
    with _doing("drawing the curves", console):
        draw_curves({feed.plan.feed: feed.reports for feed in feeds}, picture)
    console.print(f"Curves: {picture}", soft_wrap=True)
