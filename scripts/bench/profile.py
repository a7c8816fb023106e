"""Profile of a worker: its parts by the clock.

The clocks are laid around the parts from outside, for the time of the measurement, so that they
cost a worker nothing. A part's time is its own: what it waits for is in it, what parts within it
take is not. These are of the worker's own thread; Redis and the refit process work meanwhile. The
processor time of each process, user and system, stands below.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import Any

from online_svm.predictor.active_model import ActiveModel
from online_svm.predictor.answerer import Answerer
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.refit.committee.model import CommitteeModel
from online_svm.refit.committee.trees import TreeModel
from online_svm.svm.kernel_model import KernelModel
from scripts.bench.feed import WARM_UP, Pairs, our_worker, server, stream
from scripts.bench.processes import family, redis_seconds, seconds_of
from scripts.bench.report import Result
from scripts.bench.worker import BATCH, DEFAULT, ENGINE, ENGINE_REFIT_EVERY, Measured
from scripts.command_line import tell
from workers.broker.store import Store
from workers.config.settings import WorkerSettings
from workers.refit.pool import RefitPool
from workers.refit.pooled_refitter import PooledRefitter
from workers.runner.loop import FeedLoop
from workers.session import answer as answering
from workers.session.commit_writer import CommitWriter
from workers.stop import Stop

_REFIT = "refit"
# Object, the name of its function, and the part it belongs to.
_PARTS: list[tuple[Any, str, str]] = [
    (Store, "send_read", "read"),
    (Store, "receive_read", "read"),
    (answering, "decode", "parse"),
    (KernelModel, "scores", "score"),
    (TreeModel, "scores", "score"),
    (CommitteeModel, "scores", "score"),
    (CommitteeModel, "said", "score"),
    (ActiveModel, "answer", "calibrated probabilities"),
    (Answerer, "_answer_block", "learn, validity"),
    (answering, "encode_answers", "encode"),
    (answering, "encode_report", "encode"),
    (answering, "chain", "digest"),
    (Store, "send", "commit"),
    (Store, "confirm", "commit"),
    (OnlinePredictor, "snapshot", "snapshot"),
    (CommitWriter, "_with_snapshot", "snapshot"),
    (ActiveModel, "calibrate", _REFIT),
    (PooledRefitter, "submit", _REFIT),
    (PooledRefitter, "result", _REFIT),
    (Stop, "wait_for", "wait"),
    (FeedLoop, "turn", "the rest"),
]


def run(examples: Measured = 20_000) -> Iterator[Result]:
    """Measure where a microsecond goes: read, parse, score, learn, encode, commit, refit.

    Of the engine with rare refits, of a single machine and of the default configuration.
    """
    configurations = {
        ENGINE: WorkerSettings(batch=BATCH, refit_every=ENGINE_REFIT_EVERY),
        "single": WorkerSettings(batch=BATCH, committee="single"),
        DEFAULT: WorkerSettings(batch=BATCH),
    }
    pairs = stream(WARM_UP + examples)
    with server() as url:
        tell("warm-up")
        our_worker(url, "bench-warm-up", configurations[DEFAULT], pairs[: WARM_UP + BATCH])
        for name, settings in configurations.items():
            tell(name)
            yield result(name, *_measured(f"bench-profile-{name}", settings, url, pairs))


def result(name: str, whole: float, parts: dict[str, float], processor: dict[str, float]) -> Result:
    """Return microseconds an example: by the clock, of each part, and of each process's processor.

    Examples
    --------
    >>> print(result("default", 4.0, {"read": 1.0}, {"worker": 2.0, "Redis": 1.0}))
    default: 4.00 microseconds an example
      read                          1.00   25.0%
      processor time, worker                2.00
      processor time, Redis                 1.00
      processor time, all                   3.00
    """
    processor = {**processor, "all": sum(processor.values())}
    lines = [f"{name}: {whole:.2f} microseconds an example"]
    lines += [f"  {part:<26}{value:8.2f} {value / whole:7.1%}" for part, value in parts.items()]
    lines += [f"  {f'processor time, {of}':<34}{value:8.2f}" for of, value in processor.items()]
    values = {"name": name, "whole": whole, "parts": parts, "processor": processor}
    return Result(values, lines)


def _measured(
    feed: str, settings: WorkerSettings, url: str, examples: Pairs
) -> tuple[float, dict[str, float], dict[str, float]]:
    clock, seconds = PartClock(), list[dict[str, float]]()
    with RefitPool(processes=1) as pool, Store(url, feed) as store, _watched(clock):

        def note() -> None:
            # The worker is this process. Its refit processes count as one.
            refits = sum(seconds_of(each) for pid in pool.pids for each in family(pid))
            own = time.process_time()
            seconds.append({"worker": own, "Redis": redis_seconds(store), "refit process": refits})

        def begin() -> None:
            clock.spent.clear()
            note()

        rate = our_worker(url, feed, settings, examples, at_warm=begin, at_end=note, pool=pool)
    before, after = seconds
    scale = 1e6 / (len(examples) - WARM_UP)
    parts = {part: scale * clock.spent.get(part, 0.0) for _, _, part in _PARTS}
    return 1e6 / rate, parts, {of: scale * (after[of] - before[of]) for of in after}


class PartClock:
    """Seconds spent in each part; that of a part within another is not in the other's.

    What a refit scores is part of the refit: its own parts are not told from it.
    """

    def __init__(self) -> None:
        self.spent: dict[str, float] = {}
        self._within: list[str] = []
        self._since = 0.0

    def enter(self, part: str) -> None:
        """Stop the clock of the part around, and start this one's."""
        self._charge()
        self._within.append(_REFIT if _REFIT in self._within[-1:] else part)

    def leave(self) -> None:
        """Stop the clock of the innermost part."""
        self._charge()
        self._within.pop()

    def _charge(self) -> None:
        now = time.perf_counter()
        if self._within:
            part = self._within[-1]
            self.spent[part] = self.spent.get(part, 0.0) + now - self._since
        self._since = now


@contextmanager
def _watched(clock: PartClock) -> Iterator[None]:
    """Time the parts in the block."""
    with ExitStack() as stack:
        for owner, name, part in _PARTS:
            plain, is_own = getattr(owner, name), name in vars(owner)
            setattr(owner, name, _timing(plain, part, clock))
            if is_own:
                stack.callback(setattr, owner, name, plain)
            else:
                stack.callback(delattr, owner, name)
        yield


def _timing(function: Callable[..., Any], part: str, clock: PartClock) -> Callable[..., Any]:
    @wraps(function)
    def timing(*args: Any, **options: Any) -> Any:
        clock.enter(part)
        try:
            return function(*args, **options)
        finally:
            clock.leave()

    return timing
