"""The measured qualities as tables, and each of ours beside the best rolling SVC."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.table import Table
from typing_extensions import override

from workers.lab.bench.quality import MEASURES, Quality, standard_error
from workers.lab.bench.quality_methods import EVERY
from workers.lab.bench.quality_streams import STREAMS
from workers.lab.bench.report import Result

HEADINGS = {
    "log_loss": "log loss",
    "brier": "Brier",
    "accuracy": "accuracy",
    "ece": "ECE",
    "seconds": "seconds",
}
NEAR, NEAR_CROSSFIT = 0.02, 0.005  # of the best rolling SVC where the order has no meaning


@dataclass(frozen=True, slots=True)
class Comparison(Result):
    """Log loss of one of ours less that of the best rolling SVC, over the same orders.

    Attributes
    ----------
    ours, peer : Quality
    difference : float
        Mean over the orders; negative is in our favour.
    error : float or None
        Its standard error, from the differences of each order.
    most : float
        The difference that is asked for: none in time order, where the split should pay.
    """

    ours: Quality
    peer: Quality
    difference: float
    error: float | None
    most: float

    @override
    def plain(self) -> dict[str, object]:
        pair = {"stream": self.ours.stream, "method": self.ours.method, "peer": self.peer.method}
        return pair | {"difference": self.difference, "error": self.error, "most": self.most}


def comparisons(qualities: Sequence[Quality]) -> list[Comparison]:
    """Return our probabilities on a stream beside the rolling SVC with the least mean log loss."""
    rolling = [quality for quality in qualities if quality.method.startswith("rolling SVC")]
    if not rolling:
        return []
    peer = min(rolling, key=lambda quality: quality.mean("log_loss"))
    return [_compared(quality, peer) for quality in qualities if quality.method.startswith("ours")]


def tables(qualities: Sequence[Quality]) -> Iterator[Table]:
    """Yield the table of one stream, then that of the differences."""
    yield _of_stream(qualities)
    yield _of_differences(comparisons(qualities))


def _compared(ours: Quality, peer: Quality) -> Comparison:
    differences = ours.values["log_loss"] - peer.values["log_loss"]
    mean, error = float(differences.mean()), standard_error(differences)
    if "crossfit" in ours.method:
        return Comparison(ours, peer, mean, error, NEAR_CROSSFIT)
    return Comparison(ours, peer, mean, error, NEAR if STREAMS[ours.stream].is_shuffled else 0.0)


def _of_stream(qualities: Sequence[Quality]) -> Table:
    first = qualities[0]
    orders = len(first.values["log_loss"])
    order = f"{orders} shuffles" if STREAMS[first.stream].is_shuffled else "in time order"
    title = f"{first.stream}: {first.examples:,} examples, {order}, scored from example {EVERY}"
    table = Table("", title=title, title_justify="left")
    for measure in MEASURES:
        table.add_column(HEADINGS[measure], justify="right")
    for quality in qualities:
        table.add_row(quality.method, *(_cell(quality, measure) for measure in MEASURES))
    return table


def _of_differences(compared: Sequence[Comparison]) -> Table:
    title = "log loss less that of the best rolling SVC, and the most that is asked for"
    table = Table("stream", "ours", "difference", "at most", "", title=title, title_justify="left")
    for one in compared:
        difference = _with_error(one.difference, one.error, sign=True)
        verdict = "" if one.difference <= one.most else "more"
        table.add_row(one.ours.stream, one.ours.method, difference, f"{one.most:.3f}", verdict)
    return table


def _cell(quality: Quality, measure: str) -> str:
    if measure == "seconds":
        return f"{quality.mean(measure):.2f}"
    error = quality.error(measure) if measure == "log_loss" else None
    return _with_error(quality.mean(measure), error)


def _with_error(value: float, error: float | None, *, sign: bool = False) -> str:
    shown = f"{value:+.4f}" if sign else f"{value:.4f}"
    return shown if error is None else f"{shown} ± {error:.4f}"
