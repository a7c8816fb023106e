"""Examples a second through Redis, against null workers and river's classifier, in one run.

The processor time of each process of our worker stands below.
"""

import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any

import redis
import typer
from river import linear_model, preprocessing

from scripts.bench import harness
from scripts.bench.harness import timed
from scripts.bench.report import Result, beside, check
from scripts.bench.worker.against import Against, Pairs, compared
from scripts.bench.worker.null import BATCH, GROUP, answer_by_script, answer_next
from scripts.command_line import tell
from workers.broker.store import Store
from workers.config.settings import WorkerSettings
from workers.feed.selection import Selection
from workers.push.sources import Row
from workers.refit.pool import RefitPool
from workers.runner import service
from workers.session.answer import Outcome
from workers.session.preflight import open_store
from workers.stop import Stop

# Examples answered before the clock starts: then the window is full, the early refits are over (the
# last is at 5,120), and every process has started.
WARM_UP = 5376
REPEATS = 3
SINGLE, DEFAULT = "single", "default"
NULL, SCRIPT = "null worker", "null worker with one script call"
RIVER = "river StandardScaler | LogisticRegression"
CONFIGURATIONS = {
    SINGLE: WorkerSettings(batch=BATCH, committee="single"),
    DEFAULT: WorkerSettings(batch=BATCH),
}

NULL_BYTES = 773
"""Bytes of the null workers' answers: of ours when the goal was set, so that runs compare."""

MIN_NULL_RATIO = 0.3

Used = Counter[str]
"""Seconds of processor time of each process."""


def run(
    # More than a batch: one that ends the warm-up and the run at once is waited for for ever.
    examples: Annotated[int, typer.Option(min=300, help="Examples that are measured.")] = 20_000,
    against: Against = None,
    pairs: Pairs = 12,
) -> Iterator[Result]:
    """Measure examples a second through Redis against null workers, and river in process.

    A single machine and the default configuration against two null workers, and the default against
    river's logistic regression without Redis; then processor time. All take turns, so that other
    work on the machine falls on all of them; ratios are of median rates. --against compares this
    checkout with another, run by run in turn.
    """
    if against is None:
        yield from measured(examples)
    else:
        yield compared(("worker", "--examples", str(examples)), against, pairs)


def measured(examples: int) -> Iterator[Result]:
    """Yield each rate beside a peer's, then the processor time of our worker's processes."""
    rows = harness.stream(WARM_UP + examples)
    used = {name: Used() for name in CONFIGURATIONS}
    rates: dict[str, list[float]] = {name: [] for name in (NULL, SCRIPT, RIVER, *CONFIGURATIONS)}
    with harness.server() as url:
        tell("warm-up")
        our_worker(url, "bench-warm-up", CONFIGURATIONS[DEFAULT], rows[: WARM_UP + BATCH])
        for turn in range(REPEATS):
            tell(f"round {turn + 1} of {REPEATS}")
            rates[NULL].append(null_worker(url, rows, answer_next))
            rates[SCRIPT].append(null_worker(url, rows, answer_by_script))
            rates[RIVER].append(_river(rows))
            for name, settings in CONFIGURATIONS.items():
                rate, taken = our_worker(url, f"bench-{name}-{turn}", settings, rows)
                rates[name].append(rate)
                used[name].update(taken)
    median = {name: statistics.median(values) for name, values in rates.items()}
    peers = [(SINGLE, NULL), (DEFAULT, NULL), (DEFAULT, SCRIPT), (DEFAULT, RIVER)]
    found = [beside(f"{ours} / {peer}", median[ours], median[peer]) for ours, peer in peers]
    title = f"examples a second: {examples:,}, {harness.FEATURES} features, batches of {BATCH}"
    bound = check(found[1]["name"], found[1]["ratio"], MIN_NULL_RATIO, is_least=True)
    yield Result(found, title, None, [bound])
    scale = 1e6 / (examples * REPEATS)
    times = [
        {"name": f"{name}: {process}", "microseconds": scale * seconds}
        for name in CONFIGURATIONS
        for process, seconds in [*used[name].items(), ("all", used[name].total())]
    ]
    yield Result(times, "microseconds of processor time an example")


def our_worker(
    url: str, feed: str, settings: WorkerSettings, examples: Sequence[Row]
) -> tuple[float, Used]:
    """Return the examples a second of a worker as `online-svm worker` runs it, on a new feed.

    The examples wait when it begins. `WARM_UP` of them are answered before the clocks start, or a
    few more: a batch is not cut.
    """
    stop, goals, marks = Stop(), [WARM_UP, len(examples)], list[tuple[int, float, Used]]()
    with open_store(feed, settings, url) as store, RefitPool(processes=1) as pool:
        harness.push_again(store, examples)

        def look(_feed: str, outcome: Outcome) -> None:
            if goals and outcome.after.seq >= goals[0]:
                goals.pop(0)
                marks.append((outcome.after.seq, time.perf_counter(), _used(store, pool)))
                if not goals:
                    stop.request()

        service.Worker(Selection([feed]), settings, url, stop, observe=look, pool=pool).run()
    (first, began, before), (last, ended, after) = marks
    after.subtract(before)
    return (last - first) / (ended - began), after


def _used(store: Store, pool: RefitPool) -> Used:
    """Return what was used so far; the worker is this process, its refit processes are one."""
    family = {one for pid in pool.pids for one in harness.family(pid)}
    refits = sum(map(harness.seconds_of, family))
    of_redis = harness.used_cpu(store.call("INFO", "cpu"))
    return Used({"worker": time.process_time(), "Redis": of_redis, "refit process": refits})


def null_worker(url: str, rows: Sequence[Row], answer: Callable[..., int]) -> float:
    """Return the examples a second of a worker that only moves messages, by a way to answer."""
    with Store(url, "bench-null") as store, redis.Redis.from_url(url, protocol=2) as client:
        keys = store.keys
        client.delete(keys.input, keys.out)
        harness.push_again(store, rows)
        client.xgroup_create(keys.input, GROUP, "0")

        def drain(count: int) -> None:
            while store.length(keys.out) < count:
                answer(client, keys, b"x" * NULL_BYTES)

        drain(WARM_UP)
        left = len(rows) - store.length(keys.out)
        return left / timed(lambda: drain(len(rows)))


def _river(rows: Sequence[Row]) -> float:
    """Return the examples a second of river's scaler and its classifier, predict then learn."""
    examples = [(dict(enumerate(row.x)), row.y == "b") for row in rows]
    model: Any = preprocessing.StandardScaler()  # Any: river ships no types
    model |= linear_model.LogisticRegression()

    def learn(some: list[tuple[dict[int, Any], bool]]) -> None:
        for x, y in some:
            model.predict_one(x)
            model.learn_one(x, y)

    learn(examples[:WARM_UP])
    return (len(rows) - WARM_UP) / timed(lambda: learn(examples[WARM_UP:]))
