"""Measure the parts that are not kept yet, and hold what was measured against its bounds."""

from collections.abc import Iterator, Sequence
from dataclasses import astuple
from pathlib import Path
from typing import Any

from scripts.bench.feed import FEATURES
from scripts.bench.feeds import by_number
from scripts.bench.feeds.harness import Sizes
from scripts.bench.feeds.measure import PARTS, Figures
from scripts.bench.kept import KeptLines, Key
from scripts.bench.report import Check, Checked, Tell, silent
from workers.config.settings import WorkerSettings

GRACE: float = WorkerSettings.model_fields["grace"].default
"""Seconds in which a process that is asked to stop has ended."""


def run(
    sizes: Sizes, results: Path, parts: Sequence[str] = tuple(PARTS), tell: Tell = silent
) -> Iterator[Checked]:
    """Yield what each part measures; it is kept in a file of JSON lines, and not measured again.

    Parameters
    ----------
    sizes : Sizes
    results : Path
    parts : sequence of str
        Names of `PARTS`.
    tell : callable
        Is told what is measured next.

    Raises
    ------
    BadConfiguration
        If the file cannot be read, or on a system without /proc.
    """
    kept = KeptLines[Figures](results, Figures)
    for name in parts:
        key = key_of(name, sizes)
        figures = kept.get(key)
        if figures is None:
            figures = PARTS[name](sizes, tell)
            kept.add(key, figures)
        yield result(name, sizes, figures)


def result(part: str, sizes: Sizes, figures: Figures) -> Checked:
    """Return the figures of a part, whose units are in their names, and those that have bounds."""
    values: dict[str, Any] = {"part": part, "figures": figures}
    if part == "sizes":
        values["limits"] = by_number.limits(figures, sizes.counts)
        return Checked(values, [], list(by_number.table(figures, sizes.counts)))
    lines = [f"{f'{part}: {name}':<42}{value:>17,.2f}" for name, value in figures.items()]
    return Checked(values, _CHECKS[part](sizes, figures), lines)


def key_of(part: str, sizes: Sizes) -> Key:
    """Return the key under which a part is kept."""
    parts = (value if isinstance(value, tuple) else (value,) for value in astuple(sizes))
    return {
        "part": part,
        "sizes": "/".join("+".join(f"{number:g}" for number in one) for one in parts),
    }


def _idle(sizes: Sizes, found: Figures) -> list[Check]:
    # The bounds are of 1,000 feeds; those of fewer are in proportion.
    part = sizes.idle / 1000
    return [
        Check("MB of an idle feed", found["mb_a_feed"], 3.0),
        Check(f"% of a core, {sizes.idle:,} idle feeds", 100.0 * found["share"], 2.0 * part),
        Check(f"s to start {sizes.idle:,} after a stop", found["start_stopped_s"], 10.0 * part),
        Check(f"s to stop {sizes.idle:,}", found["stop_s"], GRACE),
    ]


def _learning(sizes: Sizes, found: Figures) -> list[Check]:
    window = 8 * FEATURES * sizes.window / 1e6
    return [Check("MB of a feed that learns", found["mb_a_feed"], 5.0 + window)]


def _busy(sizes: Sizes, found: Figures) -> list[Check]:
    late = found["p99_ms_many"] / found["p99_ms_alone"]
    cost = found["processor_us_many"] / found["processor_us_alone_fast"]
    return [
        Check(f"p99 of {sizes.busy} feeds / one feed alone", late, 2.0),
        Check("processor time an example / alone", cost, 1.25),
    ]


def _new(sizes: Sizes, found: Figures) -> list[Check]:
    slower = found["p50_ms_beside"] / found["p50_ms_alone"]
    return [Check(f"median beside {sizes.new} new feeds / without them", slower, 2.0)]


_CHECKS = {"idle": _idle, "learning": _learning, "busy": _busy, "new": _new}
