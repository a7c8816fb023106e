"""The measured qualities as tables: one a stream, and the means over the streams."""

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table
from typing_extensions import override

from scripts.bench.quality.answers import EVERY
from scripts.bench.quality.run import Quality
from scripts.bench.quality.streams import HELD_OUT, STREAMS
from scripts.bench.report import BenchResult
from scripts.tables import table

GROUPS = {"two classes": True, "more classes": False}
HEADINGS = ("log loss", "Brier", "accuracy", "AUC", "calib.", "cover (fair)", "width", "us")


@dataclass(frozen=True, slots=True)
class Mean(BenchResult):
    """A row over all streams of a group.

    Attributes
    ----------
    group : {"two classes", "more classes"}
    row : str
    streams : int
    log_loss, microseconds : float
        Means over the streams; processor time an example.
    """

    group: str
    row: str
    streams: int
    log_loss: float
    microseconds: float

    @override
    def plain(self) -> dict[str, Any]:
        return {
            "group": self.group,
            "row": self.row,
            "streams": self.streams,
            "mean_log_loss": self.log_loss,
            "mean_microseconds": self.microseconds,
        }


def by_stream(found: Sequence[Quality]) -> dict[str, list[Quality]]:
    """Return the rows of each stream, in their order."""
    streams: dict[str, list[Quality]] = {}
    for one in found:
        streams.setdefault(one.stream, []).append(one)
    return streams


def of_group(found: Sequence[Quality], group: str) -> list[Quality]:
    """Return what was measured on streams of two classes, or of more."""
    return [one for one in found if (one.n_classes == 2) is GROUPS[group]]


def means(found: Sequence[Quality], group: str) -> list[Mean]:
    """Return the mean of each row that was measured on every stream of a group."""
    rows: dict[str, list[Quality]] = {}
    for one in of_group(found, group):
        rows.setdefault(one.row, []).append(one)
    most = max(map(len, rows.values()), default=0)
    return [
        Mean(
            group,
            row,
            most,
            statistics.fmean(one.log_loss for one in whole),
            statistics.fmean(one.microseconds for one in whole),
        )
        for row, whole in rows.items()
        if len(whole) == most
    ]


def tables(found: Sequence[Quality]) -> Iterator[Table]:
    """Yield the table of each stream, then those of the means."""
    for rows in by_stream(found).values():
        yield _of_stream(rows)
    for group in GROUPS:
        rows_of_group = means(found, group)
        if rows_of_group:
            yield _of_means(group, rows_of_group)


def _of_stream(rows: Sequence[Quality]) -> Table:
    first = rows[0]
    kind = STREAMS[first.stream]
    count = max(len(one.shuffles) for one in rows)
    order = "in time order" if kind.is_single else f"{count} {_orders(kind.order, count)}"
    held_out = ", held out" if first.stream in HELD_OUT else ""
    title = (
        f"{first.stream}{held_out}: {kind.n_classes} classes, {first.examples:,} examples, "
        f"{order}, scored from example {EVERY}"
    )
    return table(title, ["", *HEADINGS], [[one.row, *_cells(one)] for one in rows])


def _orders(order: str, count: int) -> str:
    name = "shuffle" if order == "shuffled" else "draw"
    return name if count == 1 else f"{name}s"


def _cells(one: Quality) -> Iterator[str]:
    error = one.error("log_loss")
    yield f"{one.log_loss:.4f}" + ("" if error is None else f" ± {error:.4f}")
    yield from (_shown(one.mean(name), 4) for name in ("brier", "accuracy", "auc"))
    yield f"{one.calibration_error:.3f}"
    coverage, fair = one.mean("coverage"), one.mean("coverage_of_perfect")
    yield "" if coverage is None or fair is None else f"{100 * coverage:.0f} ({100 * fair:.0f})"
    yield _shown(one.mean("width"), 3)
    yield f"{one.microseconds:,.0f}"


def _shown(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def _of_means(group: str, rows: Sequence[Mean]) -> Table:
    best_first = sorted(rows, key=lambda mean: mean.log_loss)
    cells = [[one.row, f"{one.log_loss:.4f}", f"{one.microseconds:,.0f}"] for one in best_first]
    return table(f"{group}: means over {rows[0].streams} streams", ["", "log loss", "us"], cells)
