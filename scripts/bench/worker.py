"""Examples a second through Redis, beside what bounds them and what others do; one run.

The engine is measured with refits so far apart (10,000) that they hardly count, then the default
configuration, with one every 250.
"""

import statistics
from collections.abc import Callable

from scripts.bench.feed import FEATURES, WARM_UP, Pairs, our_worker, quiet, server, stream
from scripts.bench.peers import RIVER, bare_commits, null_worker, refits_alone, river_in_process
from scripts.bench.report import Row, Tell, silent
from workers.broker.store import Store
from workers.config.settings import WorkerSettings

ENTRIES = 20_000
REPEATS = 3
ENGINE_REFIT_EVERY = 10_000

ENGINE, DEFAULT = "engine", "default"
NULL, BARE, REFITS = "null worker", "reads and commits alone", "one refit after the other"

Task = Callable[[int], float]


def run(
    entries: int = ENTRIES,
    tell: Tell = silent,
    url: str | None = None,
    batch: int = 256,
    repeats: int = REPEATS,
) -> list[Row]:
    """Measure and return the ratios of median rates.

    All take turns, so that other work on the machine falls on all of them.

    Parameters
    ----------
    entries : int
        Examples of 20 features and two classes on which the rates are measured; they are pushed
        before the clock starts, and `WARM_UP` more are answered.
    tell : callable
        Is told what is measured next.
    url : str, optional
        Redis to use; default an embedded one that is thrown away. Keys of feeds named "bench..."
        are written.
    batch : int
        Entries read at once by every worker.
    repeats : int
    """
    examples = stream(WARM_UP + entries)
    with quiet(), server(url) as where:
        tell("warm-up")
        length = _warm_up(where, WorkerSettings(batch=batch), examples)
        tasks = _tasks(where, batch, examples, length)
        rates: dict[str, list[float]] = {name: [] for name in tasks}
        for repeat in range(repeats):
            for name, task in tasks.items():
                tell(f"round {repeat + 1} of {repeats}: {name}")
                rates[name].append(task(repeat))
    median = {name: statistics.median(values) for name, values in rates.items()}
    note = f"{entries:,} examples, {FEATURES} features, batch {batch}, {length} bytes an answer"
    return [
        Row(f"{ours} / {peer}", median[ours], median[peer], note, unit="/s")
        for ours, peer in _compared()
    ]


def _compared() -> list[tuple[str, str]]:
    peers = [NULL, REFITS, *map(_river, RIVER)]
    return [(ENGINE, NULL), (ENGINE, BARE), *((DEFAULT, peer) for peer in peers)]


def _river(name: str) -> str:
    return f"river StandardScaler | {name}"


def _tasks(url: str, batch: int, examples: Pairs, length: int) -> dict[str, Task]:
    """Return what is measured, by name, each given the number of the run."""
    default = WorkerSettings(batch=batch)
    engine = WorkerSettings(batch=batch, refit_every=ENGINE_REFIT_EVERY)
    return {
        NULL: lambda _: null_worker(url, examples, batch, length),
        BARE: lambda _: bare_commits(url, default, examples, length),
        ENGINE: lambda i: our_worker(url, f"bench-engine-{i}", engine, examples),
        DEFAULT: lambda i: our_worker(url, f"bench-default-{i}", default, examples),
        REFITS: lambda _: refits_alone(default.predictor, examples),
    } | {_river(name): lambda _, name=name: river_in_process(name, examples) for name in RIVER}


def _warm_up(url: str, settings: WorkerSettings, examples: Pairs) -> int:
    """Compile everything, and return the mean length of our payloads."""
    our_worker(url, "bench-warm-up", settings, examples[: WARM_UP + settings.batch])
    with Store(url, "bench-warm-up") as store:
        newest = store.call("XREVRANGE", store.keys.out, "+", "-", "COUNT", 1000)
    return round(statistics.fmean(len(entry[1][1]) for entry in newest))
