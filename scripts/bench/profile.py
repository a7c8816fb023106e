"""Profile of a worker: its parts by the clock.

The clocks are laid around the parts from outside, for the time of the measurement, so that they
cost a worker nothing. A part's time is its own: what it waits for is in it, what parts within it
take is not. These are of the worker's own thread; Redis and the refit process work meanwhile. The
processor time of each process, user and system, stands below.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import wraps
from typing import Any
from unittest.mock import patch

from online_svm.predictor.active_model import ActiveModel
from online_svm.predictor.inference_engine import InferenceEngine
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.refit.committee.boosting import TreeModel
from online_svm.refit.committee.stack import CommitteeModel
from online_svm.svm.kernel_model import KernelModel
from scripts.bench import harness
from scripts.bench.harness import WARM_UP
from scripts.bench.report import Result
from scripts.bench.worker import CONFIGURATIONS, Measured, warm_up
from scripts.command_line import tell
from workers.broker.store import Store
from workers.push.sources import Row
from workers.refit.pool import RefitPool
from workers.refit.refitter import PooledRefitter
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
    (CommitteeModel, "member_outputs", "score"),
    (ActiveModel, "answer", "calibrated probabilities"),
    (InferenceEngine, "_answer_block", "learn, validity"),
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
    (FeedLoop, "run_turn", "the rest"),
]


def run(examples: Measured = 20_000) -> Iterator[Result]:
    """Measure where a microsecond goes: read, parse, score, learn, encode, commit, refit.

    Of the engine with rare refits, of a single machine and of the default configuration.
    """
    rows = harness.stream(WARM_UP + examples)
    with harness.server() as url:
        warm_up(url, rows)
        for name in CONFIGURATIONS:
            tell(name)
            yield result(name, *_measured(name, url, rows))


def result(name: str, whole: float, parts: dict[str, float], processor: dict[str, float]) -> Result:
    """Return microseconds an example: of each part by the clock, and of each process."""
    processor = {**processor, "all": sum(processor.values())}
    lines = [f"{name}: {whole:.2f} microseconds an example"]
    lines += [f"  {part:<26}{value:8.2f} {value / whole:7.1%}" for part, value in parts.items()]
    lines += [f"  {f'processor time, {of}':<34}{value:8.2f}" for of, value in processor.items()]
    values = {"name": name, "whole": whole, "parts": parts, "processor": processor}
    return Result(values, lines)


def _measured(
    name: str, url: str, rows: Sequence[Row]
) -> tuple[float, dict[str, float], dict[str, float]]:
    clock, marks = _PartClock(), list[tuple[Counter[str], dict[str, float]]]()
    feed = f"bench-profile-{name}"
    with RefitPool(processes=1) as pool, Store(url, feed) as store, ExitStack() as stack:
        for owner, function, part in _PARTS:
            timing = clock.timing(getattr(owner, function), part)
            stack.enter_context(patch.object(owner, function, timing))

        def mark() -> None:
            # The worker is this process. Its refit processes count as one.
            refits = sum(
                harness.seconds_of(one) for pid in pool.pids for one in harness.family(pid)
            )
            used = {"worker": time.process_time(), "Redis": harness.redis_seconds(store)}
            marks.append((clock.spent.copy(), used | {"refit process": refits}))

        rate = harness.our_worker(url, feed, CONFIGURATIONS[name], rows, mark, pool)
    scale = 1e6 / (len(rows) - WARM_UP)
    (parts, used), (parts_after, used_after) = marks
    return (
        1e6 / rate,
        {part: scale * (parts_after[part] - parts[part]) for _, _, part in _PARTS},
        {of: scale * (used_after[of] - used[of]) for of in used},
    )


class _PartClock:
    """Seconds spent in each part, without the parts inside it; what a refit scores is refit."""

    def __init__(self) -> None:
        self.spent = Counter[str]()
        self._within: list[str] = []
        self._since = 0.0

    def timing(self, function: Callable[..., Any], part: str) -> Callable[..., Any]:
        """Return the function with this clock around it."""

        @wraps(function)
        def timing(*args: Any, **options: Any) -> Any:
            self._charge()
            self._within.append(_REFIT if _REFIT in self._within[-1:] else part)
            try:
                return function(*args, **options)
            finally:
                self._charge()
                self._within.pop()

        return timing

    def _charge(self) -> None:
        now = time.perf_counter()
        if self._within:
            self.spent[self._within[-1]] += now - self._since  # type: ignore[assignment]
        self._since = now
