"""What it costs to be watched: monitors, the endpoint, the page; pairs of runs of the real command.

Which of the two begins changes from pair to pair. A run answers a feed that was filled before; the
clock begins when its first entries are answered.
"""

import socket
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

from scripts.bench.feed import WARM_UP, Pairs, push, quiet, server, stream
from scripts.bench.pairs import PairedRatio
from scripts.bench.processes import Measured, python, worker
from scripts.bench.processor_time import family, seconds_of
from scripts.bench.report import Tell, silent
from workers.broker.store import Store

ENTRIES = 20_000
PAIRS = 12
OFF = ("--monitors", "off", "--metrics-window", "none")
MONITORS = "monitors and windowed figures"
SERVED = "endpoint, scraped every second, and page"
_FEED = "bench-watching"
_LOOK = 0.01


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one run: examples a second, and examples a second of processor time.

    The processor time is of the worker and all that it started.
    """

    rate: float
    of_processor: float


def run(
    entries: int = ENTRIES,
    pairs: int = PAIRS,
    tell: Tell = silent,
    url: str | None = None,
    warm_up: int = WARM_UP,
    compared: Sequence[str] = (MONITORS, SERVED),
) -> Iterator[PairedRatio]:
    """Measure pairs of runs, with and without; yield the ratios of their rates.

    Parameters
    ----------
    entries : int
        Examples on which the rates are measured.
    pairs : int
        Two or more.
    tell : callable
        Is told what is measured next.
    url : str, optional
        Redis to use; default an embedded one that is thrown away.
    warm_up : int
        Examples that are answered before the clock starts.
    compared : sequence of str
        What is added to a worker.
    """
    examples = stream(warm_up + entries)
    with quiet(), server(url) as where:
        tell("warm-up")
        _measure(where, examples[: warm_up + 500], warm_up, is_served=False)
        for name in compared:
            runs: dict[bool, list[Figures]] = {True: [], False: []}
            for pair in range(pairs):
                for has_it in (True, False) if pair % 2 else (False, True):
                    tell(f"{name}: pair {pair + 1} of {pairs}, {'with' if has_it else 'without'}")
                    options = OFF if name == MONITORS and not has_it else ()
                    is_served = name == SERVED and has_it
                    runs[has_it].append(_measure(where, examples, warm_up, options, is_served))
            yield from _ratios(name, runs[True], runs[False])


def _ratios(name: str, ours: Sequence[Figures], theirs: Sequence[Figures]) -> Iterator[PairedRatio]:
    rates = ([one.rate for one in side] for side in (ours, theirs))
    yield PairedRatio.of(f"{name}: rate", *rates)
    costs = ([one.of_processor for one in side] for side in (ours, theirs))
    yield PairedRatio.of(f"{name}: rate by processor time", *costs)


def _measure(
    url: str,
    examples: Pairs,
    warm_up: int,
    options: Sequence[str] = (),
    is_served: bool = False,
) -> Figures:
    """Answer examples with a worker, and return its rates after the warm-up."""
    with Store(url, _FEED) as store:
        for key in store.snapshot_keys():
            store.call("DEL", key)
        push(store, examples)
        port = _free_port()
        served = ("--metrics", f"127.0.0.1:{port}", "--dashboard", "0") if is_served else ()
        with python(*worker(_FEED, url, (*options, *served))) as process:
            first = _wait(store, process, warm_up)
            with _scraped(port) if is_served else nullcontext():
                began, used = time.perf_counter(), _processor_seconds(process)
                done = _wait(store, process, len(examples)) - first
                seconds = time.perf_counter() - began
            return Figures(done / seconds, done / (_processor_seconds(process) - used))


def _wait(store: Store, process: Measured, count: int) -> int:
    """Wait until so many entries are answered; return how many are."""
    while (seq := int(store.call("HGET", store.keys.state, "seq") or 0)) < count:
        process.check()
        time.sleep(_LOOK)
    return seq


def _processor_seconds(process: Measured) -> float:
    return sum(map(seconds_of, family(process.pid)))


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def _scraped(port: int) -> Iterator[None]:
    """Scrape an endpoint every second while the block runs."""
    ends = threading.Event()

    def scrape() -> None:
        while not ends.wait(1.0):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
                answer.read()

    thread = threading.Thread(target=scrape)
    thread.start()
    try:
        yield
    finally:
        ends.set()
        thread.join()
