"""Profile of a worker: its parts by the clock.

The clocks are laid around the parts from outside, for the time of the measurement, so that they
cost a worker nothing. A part's time is its own: what it waits for is in it, what parts within it
take is not. These are of the worker's own thread; Redis and the refit process work meanwhile. The
processor time of each process, user and system, stands below.
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from typing_extensions import override

from online_svm.predictor.active_model import ActiveModel
from online_svm.predictor.answerer import Answerer
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.refit.committee.model import CommitteeModel
from online_svm.svm.kernel_model import KernelModel
from scripts.bench.feed import WARM_UP, our_worker, quiet, server, stream
from scripts.bench.processes import family, redis_seconds, seconds_of
from scripts.bench.report import BenchResult, Tell, silent
from scripts.bench.timing import Part, PartClock, watched
from scripts.bench.worker import DEFAULT, ENGINE, ENGINE_REFIT_EVERY, ENTRIES
from workers.broker.store import Store
from workers.config.settings import WorkerSettings
from workers.refit.pool import RefitPool
from workers.refit.pooled_refitter import PooledRefitter
from workers.runner.loop import FeedLoop
from workers.session import answer as answering
from workers.session.commit_writer import CommitWriter
from workers.stop import Stop

REFIT = "refit"
SINGLE: Literal["single"] = "single"

# Object, the name of its function, and the part it belongs to.
_PARTS: list[Part] = [
    (Store, "send_read", "read"),
    (Store, "receive_read", "read"),
    (answering, "decode", "parse"),
    (KernelModel, "scores", "score"),
    (CommitteeModel, "scores", "score"),
    (ActiveModel, "answer", "calibrated probabilities"),
    (Answerer, "_answer_block", "learn, validity"),
    (answering, "encode_answers", "encode"),
    (answering, "encode_report", "encode"),
    (answering, "chain", "digest"),
    (Store, "send", "commit"),
    (Store, "confirm", "commit"),
    (OnlinePredictor, "snapshot", "snapshot"),
    (CommitWriter, "_with_snapshot", "snapshot"),
    (ActiveModel, "calibrate", REFIT),
    (PooledRefitter, "submit", REFIT),
    (PooledRefitter, "result", REFIT),
    (Stop, "wait_for", "wait"),
    (FeedLoop, "turn", "the rest"),
]


@dataclass(frozen=True, slots=True)
class Profile(BenchResult):
    """Microseconds an example, by part.

    Attributes
    ----------
    name : str
        Of the configuration.
    whole : float
        Microseconds an example by the wall clock.
    parts : mapping of str to float
    processor : mapping of str to float
        Microseconds of processor time an example, by process.
    """

    name: str
    whole: float
    parts: Mapping[str, float]
    processor: Mapping[str, float]

    @override
    def plain(self) -> dict[str, Any]:
        return asdict(self) | {"processor": self._processor_times()}

    def __str__(self) -> str:
        head = f"{self.name}: {self.whole:.2f} microseconds an example"
        lines = [
            f"  {part:<26}{value:8.2f} {value / self.whole:7.1%}"
            for part, value in self.parts.items()
        ]
        times = [
            f"  {f'processor time, {process}':<34}{value:8.2f}"
            for process, value in self._processor_times().items()
        ]
        return "\n".join([head, *lines, *times])

    def _processor_times(self) -> dict[str, float]:
        """Return the processor time of each process, and of all."""
        return {**self.processor, "all": sum(self.processor.values())}


def run(
    entries: int = ENTRIES, tell: Tell = silent, url: str | None = None, batch: int = 256
) -> Iterator[Profile]:
    """Yield the profiles of the engine, of a single machine and of the default configuration.

    Parameters
    ----------
    entries, tell, url, batch
        As for `scripts.bench.worker.run`.
    """
    engine = WorkerSettings(batch=batch, refit_every=ENGINE_REFIT_EVERY)
    single = WorkerSettings(batch=batch, committee=SINGLE)
    default = WorkerSettings(batch=batch)
    examples = stream(WARM_UP + entries)
    with quiet(), server(url) as where:
        tell("warm-up")
        our_worker(where, "bench-warm-up", default, examples[: WARM_UP + batch])
        for name, settings in ((ENGINE, engine), (SINGLE, single), (DEFAULT, default)):
            tell(name)
            yield _profile(name, settings, where, examples)


def _profile(name: str, settings: WorkerSettings, url: str, examples: Any) -> Profile:
    # What a refit scores is part of the refit.
    clock = PartClock(closed=REFIT)
    seconds: list[dict[str, float]] = []
    with (
        RefitPool(processes=1) as pool,
        Store(url, f"bench-profile-{name}") as store,
        watched(_PARTS, clock),
    ):

        def note() -> None:
            seconds.append(_processor_seconds(store, pool))

        def begin() -> None:
            clock.spent.clear()
            note()

        rate = our_worker(
            url, store.keys.feed, settings, examples, at_warm=begin, at_end=note, pool=pool
        )
    before, after = seconds
    scale = 1e6 / (len(examples) - WARM_UP)
    parts = dict.fromkeys(part for _, _, part in _PARTS) | clock.spent
    return Profile(
        name,
        1e6 / rate,
        {part: scale * (parts[part] or 0.0) for part in parts},
        {process: scale * (after[process] - before[process]) for process in after},
    )


def _processor_seconds(store: Store, pool: RefitPool) -> dict[str, float]:
    """Return the seconds that each process of a worker has taken since it began.

    The worker is this process. Its refit processes count as one.
    """
    refits = sum(seconds_of(each) for pid in pool.pids for each in family(pid))
    worker = time.process_time()
    return {"worker": worker, "Redis": redis_seconds(store), "refit process": refits}
