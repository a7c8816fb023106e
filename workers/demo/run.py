"""The demonstration of `online-svm demo`, step by step."""

import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.progress import Progress as Clock
from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

from workers.admin.notes import note
from workers.broker import embedded
from workers.broker.connection import Connection
from workers.broker.store import Store
from workers.config.environment import PREFIX
from workers.demo.feeds import DemoFeed, Drift, Progress, alarm_sentence
from workers.demo.view import LEGEND, Rate, draw_curves, line, methods_table, render
from workers.errors import WorkerError
from workers.feed.keys import FeedKeys
from workers.push.ingest import Pacing, PushRate, push
from workers.push.rows import Row
from workers.python_process import command, environment
from workers.stop import Stop
from workers.text import printable

DRIFTING = DemoFeed(
    "sensors", "Bananas", "sensors: two measurements, 2 classes", 175.0, limit=2400,
    drift=Drift(1200, 1),
)  # fmt: skip
PLANS = (
    DemoFeed("phishing", "Phishing", "phishing: web pages, 2 classes", 90.0),
    DemoFeed("segments", "ImageSegments", "segments: image patches, 7 classes", 165.0),
    DRIFTING,
)
METRICS_EVERY = 25
REPORT = "report.html"  # report of the feed that drifts, in the folder of the curves
_TIMEOUT_SECONDS = 120.0  # time without progress after which the demonstration has failed
_REFRESH_SECONDS = 0.2


class DemoFailed(WorkerError):
    """A worker of the demonstration ended, or made no progress."""


def run(picture: Path, console: Console, speed: float = 1.0) -> None:
    """Push three real feeds, answer them with a worker each, show progress, and draw the curves.

    One feed drifts on purpose and raises an alarm. On a terminal a live view is shown, else plain
    lines. `speed` multiplies the rate of the pushes.

    Raises DemoFailed if a worker ends early or makes no progress.
    """
    with _step("reading the data", console):
        data = {plan.feed: plan.examples() for plan in PLANS}
    with ExitStack() as stack:
        server = stack.enter_context(embedded.temporary())
        console.print(f"Redis, embedded and private: {server.url}", soft_wrap=True)
        connection = stack.enter_context(closing(Connection(server.url, Stop())))
        workers = [stack.enter_context(_worker(plan, data[plan.feed], server)) for plan in PLANS]
        feeds = [Progress(plan, len(data[plan.feed])) for plan in PLANS]
        with _step("starting a worker for each feed", console):
            _wait_for_workers(feeds, workers, connection)
        for plan in PLANS:
            _start_pushing(plan, data[plan.feed], server.url, speed)
        _watch(feeds, workers, connection, console, server.url)
        report = picture.with_name(REPORT)
        with _step("writing the report", console):
            _write_report(server.url, DRIFTING.feed, report)
    _conclude(feeds, picture, console)
    console.print(f"Report of {DRIFTING.feed}: {report}", soft_wrap=True)


@contextmanager
def _step(text: str, console: Console) -> Iterator[None]:
    """Name the step in the block: with a clock on a terminal, else as a plain line."""
    if not console.is_terminal:
        console.print(f"{text} ...", soft_wrap=True)
        yield
        return
    columns = (SpinnerColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Clock(*columns, console=console, transient=True) as clock:
        clock.add_task(text)
        yield


def _write_report(url: str, feed: str, path: Path) -> None:
    from workers.dashboard.html_report import html_report
    from workers.dashboard.past_run import read_past

    with Store(url, feed) as store:
        path.write_text(html_report(read_past(store)), encoding="utf-8")


@contextmanager
def _worker(
    plan: DemoFeed, data: list[Row], server: embedded.Embedded
) -> Iterator[subprocess.Popen[bytes]]:
    """Run the command `worker` in a process, and stop it by SIGTERM."""
    classes = sorted({row.y for row in data if row.y is not None})
    worker = command(
        "-m", "workers.cli", "worker", plan.feed, "--redis", server.url,
        "--classes", ",".join(classes), "--metrics-every", str(METRICS_EVERY),
    )  # fmt: skip
    # The files that a worker writes for later workers are deleted with the server.
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
            process.stderr.close()  # not read: a child of the worker may keep it open


def _without_settings() -> dict[str, str]:
    """Return the environment without the user's settings of other feeds."""
    return {name: text for name, text in environment().items() if not name.startswith(PREFIX)}


def _wait_for_workers(
    feeds: list[Progress], workers: list[subprocess.Popen[bytes]], connection: Connection
) -> None:
    """Wait until each worker has started its feed, so that no input waits for it."""
    end = time.monotonic() + _TIMEOUT_SECONDS
    for feed, worker in zip(feeds, workers, strict=True):
        while not connection.exists(FeedKeys(feed.plan.feed).state):
            _check_alive(feed, worker)
            if time.monotonic() > end:
                raise DemoFailed(f"the worker of {feed.plan.feed} did not start")
            time.sleep(_REFRESH_SECONDS)


def _start_pushing(plan: DemoFeed, data: list[Row], url: str, speed: float) -> None:
    pace = PushRate(speed * plan.rate)
    options = {"pacing": Pacing(pace.chunk, pace)}
    arguments = (data, url, plan.feed)
    threading.Thread(target=push, args=arguments, kwargs=options, daemon=True).start()


def _watch(
    feeds: list[Progress],
    workers: list[subprocess.Popen[bytes]],
    connection: Connection,
    console: Console,
    url: str,
) -> None:
    """Show the progress of the feeds until all examples are answered."""
    rates = {feed.plan.feed: Rate() for feed in feeds}
    stalled, last = 0.0, -1
    noted: set[str] = set()
    with _display(feeds, rates, console) as update:
        while not all(feed.is_done for feed in feeds):
            for feed, worker in zip(feeds, workers, strict=True):
                feed.refresh(connection)
                _check_alive(feed, worker)
                _note_drift(feed, noted, url)
            update()
            answered = sum(feed.answered for feed in feeds)
            stalled, last = (0.0 if answered != last else stalled + _REFRESH_SECONDS), answered
            if stalled > _TIMEOUT_SECONDS:
                raise DemoFailed(
                    f"nothing was answered for {_TIMEOUT_SECONDS:.0f} s; see the log above"
                )
            time.sleep(_REFRESH_SECONDS)
        for feed in feeds:
            feed.refresh(connection)
        update()


def _note_drift(feed: Progress, noted: set[str], url: str) -> None:
    """Write a note when a drift is reached, which the page and the report mark."""
    plan = feed.plan
    if plan.drift is None or plan.feed in noted or feed.answered < plan.drift.at:
        return
    noted.add(plan.feed)
    with Store(url, plan.feed) as store:
        note(store, plan.drift.sentence, plan.drift.at, "online-svm demo")


@contextmanager
def _display(feeds: list[Progress], rates: dict[str, Rate], console: Console) -> Iterator[Any]:
    """Yield the function that shows the feeds: a live view, or new alarms and each tenth."""
    if console.is_terminal:
        with Live(console=console, auto_refresh=False) as live:
            yield lambda: live.update(render(feeds, rates), refresh=True)
        return
    tenths: dict[str, int] = {}
    alarms: dict[str, int] = {}

    def update() -> None:
        for feed in feeds:
            name = feed.plan.feed
            for raised in feed.alarms[alarms.get(name, 0) :]:
                sentence = alarm_sentence(raised, feed.plan.drift)
                console.print(f"{name}: {printable(sentence)}", highlight=False)
            alarms[name] = len(feed.alarms)
            tenth = 10 * feed.answered // feed.total
            if tenths.get(name) != tenth:
                tenths[name] = tenth
                console.print(line(feed), highlight=False)

    yield update


def _check_alive(feed: Progress, worker: subprocess.Popen[bytes]) -> None:
    if worker.poll() is None:
        return
    assert worker.stderr is not None
    output = worker.stderr.read().decode(errors="replace").strip()
    raise DemoFailed(
        f"the worker of {feed.plan.feed} ended with code {worker.returncode}: {output}"
    )


def _conclude(feeds: list[Progress], picture: Path, console: Console) -> None:
    """Draw the curves; print the results unless a live view has shown them."""
    if not console.is_terminal:
        for feed in feeds:
            console.print(f"\n[bold]{feed.plan.title}[/]: {feed.answered:,} examples answered")
            console.print(methods_table(feed.latest))
        console.print(f"\n{LEGEND}")
    with _step("drawing the curves", console):
        draw_curves({feed.plan.feed: feed.reports for feed in feeds}, picture)
    console.print(f"Curves: {picture}", soft_wrap=True)
