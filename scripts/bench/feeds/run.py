"""Measure the parts that are not kept yet, and hold what was measured against its bounds."""

from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from scripts.bench.feed import FEATURES
from scripts.bench.feeds import by_number
from scripts.bench.feeds.harness import Sizes
from scripts.bench.feeds.measure import PARTS, Figures
from scripts.bench.kept_lines import KeptLines, Key
from scripts.bench.report import Check, Checked, Tell, silent
from workers.config.settings import WorkerSettings

GRACE: float = WorkerSettings.model_fields["grace"].default
"""Seconds in which a process that is asked to stop has ended."""

_NAMES = ("part", "sizes")


@dataclass(frozen=True, slots=True)
class Part(Checked):
    """What one part measured.

    Attributes
    ----------
    name : str
    sizes : Sizes
    figures : dict of str to float
        Their units are in their names.
    """

    name: str
    sizes: Sizes
    figures: Figures

    @property
    def checks(self) -> list[Check]:  # type: ignore[override]  # computed, never set
        """The figures that have bounds."""
        return _CHECKS[self.name](self.sizes, self.figures)

    def values(self) -> dict[str, Any]:
        """Return the figures as JSON values."""
        values = {"part": self.name, "figures": self.figures}
        if self.name == "sizes":
            values["limits"] = by_number.limits(self.figures, self.sizes.counts)
        return values

    def lines(self) -> Iterator[str]:
        """Yield each figure."""
        if self.name == "sizes":
            yield from by_number.table(self.figures, self.sizes.counts)
            return
        for name, value in self.figures.items():
            yield f"{f'{self.name}: {name}':<42}{value:>17,.2f}"


def run(
    sizes: Sizes, results: Path, parts: Sequence[str] = tuple(PARTS), tell: Tell = silent
) -> Iterator[Part]:
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
    kept = KeptLines[Figures](results, _NAMES, dict, dict)
    for name in parts:
        key = key_of(name, sizes)
        figures = kept.get(key)
        if figures is None:
            figures = PARTS[name](sizes, tell)
            kept.add(key, figures)
        yield Part(name, sizes, figures)


def key_of(part: str, sizes: Sizes) -> Key:
    """Return the key under which a part is kept."""
    parts = (value if isinstance(value, tuple) else (value,) for value in astuple(sizes))
    return part, "/".join("+".join(f"{number:g}" for number in part) for part in parts)


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


def _sizes(_sizes: Sizes, _found: Figures) -> list[Check]:
    return []  # figures of the machine, without a goal


_CHECKS = {"idle": _idle, "learning": _learning, "busy": _busy, "new": _new, "sizes": _sizes}
