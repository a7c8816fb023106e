"""Where a microsecond goes: the real engine, its parts by the clock.

The clocks are laid around the parts from outside, for the time of the measurement, so that they
cost a worker nothing. A part's time is its own: what it waits for is in it, what parts within it
take is not. Only the worker's own thread is looked at; Redis and the refit process work meanwhile.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

from online_svm.predictor.active_model import ActiveModel
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.svm.kernel_model import KernelModel
from workers.broker.store import Store
from workers.config.settings import WorkerSettings
from workers.engine import answer as answering
from workers.engine.loop import Engine
from workers.lab.bench.feed import WARM_UP, our_worker, quiet, server, stream
from workers.lab.bench.worker import DEFAULT, ENGINE, ENGINE_REFIT_EVERY, ENTRIES
from workers.refit.pool import ProcessRefitter

REFIT = "refit"

# Object, the name of its function, and the part it belongs to.
_PARTS: list[tuple[Any, str, str]] = [
    (Store, "read", "read"),
    (Store, "send_read", "read"),
    (Store, "receive_read", "read"),
    (answering, "decode", "parse"),
    (KernelModel, "scores", "score"),
    (ActiveModel, "answer", "calibrated probabilities"),
    (OnlinePredictor, "step_many", "learn, validity"),
    (answering, "encode_block", "encode"),
    (answering, "encode_report", "encode"),
    (answering, "chain", "digest"),
    (Store, "send", "commit"),
    (Store, "confirm", "commit"),
    (Engine, "_with_snapshot", "snapshot"),
    (ActiveModel, "calibrate", REFIT),
    (ProcessRefitter, "submit", REFIT),
    (ProcessRefitter, "result", REFIT),
    (Engine, "advance", "the rest"),
]


@dataclass(frozen=True, slots=True)
class Profile:
    """Microseconds an example, by part.

    Attributes
    ----------
    name : str
        Of the configuration.
    whole : float
        Microseconds an example by the wall clock.
    parts : mapping of str to float
    """

    name: str
    whole: float
    parts: Mapping[str, float]

    def plain(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {"name": self.name, "whole": self.whole, "parts": dict(self.parts)}

    def __str__(self) -> str:
        head = f"{self.name}: {self.whole:.2f} microseconds an example"
        lines = [
            f"  {part:<26}{value:8.2f} {value / self.whole:7.1%}"
            for part, value in self.parts.items()
        ]
        return "\n".join([head, *lines])


def run(url: str | None = None, entries: int = ENTRIES, batch: int = 256) -> list[Profile]:
    """Return the profiles of the engine and of the default configuration.

    Parameters
    ----------
    url : str, optional
        Redis to use; default an embedded one that is thrown away. Keys of feeds named "bench..."
        are written.
    entries, batch : int
        As for `workers.lab.bench.worker.run`.
    """
    engine = WorkerSettings(batch=batch, refit_every=ENGINE_REFIT_EVERY)
    default = WorkerSettings(batch=batch)
    examples = stream(WARM_UP + entries)
    with quiet(), server(url) as where:
        our_worker(where, "bench-warm-up", default, examples[: WARM_UP + batch])
        return [
            _profile(name, settings, where, examples)
            for name, settings in ((ENGINE, engine), (DEFAULT, default))
        ]


def _profile(name: str, settings: WorkerSettings, url: str, examples: Any) -> Profile:
    clock = _Clock()
    with _laid(clock):
        rate = our_worker(url, f"bench-profile-{name}", settings, examples, clock.spent.clear)
    scale = 1e6 / (len(examples) - WARM_UP)
    parts = dict.fromkeys(part for _, _, part in _PARTS) | clock.spent
    return Profile(name, 1e6 / rate, {part: scale * (parts[part] or 0.0) for part in parts})


@dataclass(slots=True)
class _Clock:
    """Seconds spent in each part, and the parts that are entered now, each within the last."""

    spent: dict[str, float] = field(default_factory=dict)
    _within: list[str] = field(default_factory=list)
    _since: float = 0.0

    def enter(self, part: str) -> None:
        """Stop the clock of the part around, and start this one's."""
        self._charge()
        # What a refit scores is part of the refit.
        self._within.append(REFIT if REFIT in self._within[-1:] else part)

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
def _laid(clock: _Clock) -> Iterator[None]:
    """Lay the clock around all parts."""
    with ExitStack() as stack:
        for owner, name, part in _PARTS:
            function = getattr(owner, name)
            setattr(owner, name, _timed(function, part, clock))
            stack.callback(setattr, owner, name, function)
        yield


def _timed(function: Callable[..., Any], part: str, clock: _Clock) -> Callable[..., Any]:
    @wraps(function)
    def timed(*args: Any, **options: Any) -> Any:
        clock.enter(part)
        try:
            return function(*args, **options)
        finally:
            clock.leave()

    return timed
