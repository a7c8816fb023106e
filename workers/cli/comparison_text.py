"""A comparison of two feeds as text."""

from typing import TYPE_CHECKING

from workers.printable import printable

if TYPE_CHECKING:
    from online_svm.metrics.sequential.recent_mean import MeanSince
    from workers.history.comparison import FeedComparison, LossComparison

_SPELLED = {"brier": "Brier score", "log_loss": "log loss"}


def describe(first: str, second: str, found: "FeedComparison") -> str:
    """Return what was found, as text."""
    names = {"first": printable(first), "second": printable(second)}
    lines = [
        f"{found.compared:,} labelled examples answered by both; {found.only_first:,} by "
        f"{names['first']} alone, {found.only_second:,} by {names['second']} alone"
    ]
    for name, loss in found.losses.items():
        lines.append(_line(_SPELLED[name], loss, names, found.level))
        if loss.since.since:
            lines.append(_since(loss.since, found.level))
    return "\n".join(lines)


def _since(mean: "MeanSince", level: float) -> str:
    return (
        f"  since number {mean.since + 1:,} of them: {mean.estimate:+.4f}, at {1 - level:.0%} in "
        f"[{mean.lower:+.4f}, {mean.upper:+.4f}], whichever start is told"
    )


def _line(name: str, loss: "LossComparison", names: dict[str, str], level: float) -> str:
    verdict = "no difference shown yet"
    if loss.better is not None:
        verdict = f"{names[loss.better]} is better (level {level:g})"
    return (
        f"{name}: {names['first']} {loss.first:.4f}, {names['second']} {loss.second:.4f}; "
        f"difference {loss.difference:+.4f}, at {1 - level:.0%} in [{loss.lower:+.4f}, "
        f"{loss.upper:+.4f}]: {verdict}"
    )
