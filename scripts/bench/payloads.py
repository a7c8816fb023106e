"""What compact answers save: bytes in Redis and examples a second, beside full ones in one run."""

import statistics

from scripts.bench.feed import FEATURES, WARM_UP, our_worker, quiet, server, stream
from scripts.bench.report import Row, Tell, silent
from scripts.bench.worker import DEFAULT, ENGINE, ENGINE_REFIT_EVERY, ENTRIES, REPEATS
from workers.broker.store import Store
from workers.config.settings import Payload, WorkerSettings

CLASSES = ("a", "b")
REFIT_EVERY = {ENGINE: ENGINE_REFIT_EVERY, DEFAULT: WorkerSettings().refit_every}
"""What is measured, and how many examples lie between two refits there."""

FORMS: tuple[Payload, ...] = ("compact", "full")


def run(
    entries: int = ENTRIES, tell: Tell = silent, url: str | None = None, repeats: int = REPEATS
) -> list[Row]:
    """Measure and return the ratios of median rates, and of the bytes of an answer.

    Parameters
    ----------
    entries : int
        Examples of 20 features and two declared classes on which the rates are measured;
        `WARM_UP` more are answered before.
    tell : callable
        Is told what is measured next.
    url : str, optional
        Redis to use; default an embedded one that is thrown away. Keys of feeds named "bench..."
        are written.
    repeats : int
    """
    examples = stream(WARM_UP + entries)
    rates: dict[tuple[str, Payload], list[float]] = {}
    with quiet(), server(url) as where:
        tell("warm-up")
        our_worker(where, "bench-warm-up", WorkerSettings(), examples[: WARM_UP + 256])
        for repeat in range(repeats):
            for name, every in REFIT_EVERY.items():
                for form in FORMS:
                    tell(f"round {repeat + 1} of {repeats}: {name}, {form} answers")
                    settings = WorkerSettings(classes=CLASSES, payload=form, refit_every=every)
                    rate = our_worker(where, f"bench-{name}-{form}", settings, examples)
                    rates.setdefault((name, form), []).append(rate)
        sizes = {form: _sizes(where, f"bench-{DEFAULT}-{form}") for form in FORMS}
    median = {each: statistics.median(values) for each, values in rates.items()}
    note = f"{entries:,} examples, {FEATURES} features, two classes"
    return [
        Row(f"{name}, compact / full", median[name, "compact"], median[name, "full"], note, "/s")
        for name in REFIT_EVERY
    ] + [
        Row(f"{what}, compact / full", sizes["compact"][i], sizes["full"][i], note, "B")
        for i, what in enumerate(("payload of an answer", "an answer in Redis"))
    ]


def _sizes(url: str, feed: str) -> tuple[float, float]:
    """Return the mean bytes of the last payloads, and of an entry of `out` by MEMORY USAGE."""
    with Store(url, feed) as store:
        out = store.keys.out
        newest = store.call("XREVRANGE", out, "+", "-", "COUNT", 1000)
        used = store.call("MEMORY", "USAGE", out, "SAMPLES", 0)
        length = store.length(out)
    return statistics.fmean(len(entry[1][1]) for entry in newest), used / length
