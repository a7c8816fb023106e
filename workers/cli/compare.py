"""`compare`: whether a challenger's answers are better than those of a feed."""

from typing import TYPE_CHECKING, Annotated

import typer

from workers.cli.common import Config, Feed, Json, Redis, feed_store, show_json
from workers.printable import printable

if TYPE_CHECKING:
    from online_svm.metrics.sequential.recent_mean import MeanSince
    from workers.history.comparison import FeedComparison, LossComparison

_SPELLED = {"brier": "Brier score", "log_loss": "log loss"}


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("compare")(compare)


def compare(
    feed: Feed,
    challenger: Annotated[
        str, typer.Argument(help="The feed that it is compared with.", show_default=False)
    ],
    redis: Redis = None,
    config: Config = None,
    level: Annotated[
        float,
        typer.Option(
            "--level", min=1e-9, max=0.5, help="Chance of each test to be wrong, ever; e.g. 0.05."
        ),
    ] = 0.05,
    json: Json = False,
) -> None:
    """Compare two feeds on the labelled examples that both answered.

    The difference of Brier score and log loss with an interval, and whether one of them is better.
    Both may be looked at as often as you like: they hold at all times together. Examples are known
    by the producer's id, or by the ID of the entry, as in a fork.
    """
    from workers.history.comparison import compare as compared
    from workers.reading.answers import check_known
    from workers.reading.registry import require

    with feed_store(feed, redis, config) as first, feed_store(challenger, redis, config) as second:
        for store in (first, second):
            require(store)
            check_known(store)
        found = compared(first, second, level)
    if json:
        show_json({"first": feed, "second": challenger} | found.plain())
    else:
        print(describe(feed, challenger, found))


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
