"""`combine`: several classifiers, one decision."""

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from workers.cli.common import Config, Redis, note, redis_url

if TYPE_CHECKING:
    from workers.combine.answers import Outcome


Feeds = Annotated[list[str], typer.Argument(help="Feeds that score the same ids; at least two.")]
Into = Annotated[str, typer.Option("--into", metavar="FEED", help="Feed to write the answers to.")]
Rule = Annotated[
    Literal["dempster", "cautious"] | None,
    typer.Option(
        help="Dempster's rule, or the cautious one, which counts overlap once (default dempster).",
        show_default=False,
    ),
]
Recalibration = Annotated[
    Literal["platt", "isotonic"] | None,
    typer.Option(
        help="Map from the combined log odds to the probability (default platt).",
        show_default=False,
    ),
]
RecalibrateEvery = Annotated[
    int | None,
    typer.Option(
        min=1, help="Labels between two recalibrations (default 100).", show_default=False
    ),
]
Window = Annotated[
    int | None,
    typer.Option(
        min=10,
        help="Labels that the recalibration is fitted on (default 2000).",
        show_default=False,
    ),
]
JoinWindow = Annotated[
    int | None,
    typer.Option(
        min=0,
        help="Places that the answers to one id may lie apart. An id that a feed lacks is "
        "waited for until that feed is so far ahead (default 100).",
        show_default=False,
    ),
]

Metrics = Annotated[
    str | None,
    typer.Option(
        envvar="ONLINE_SVM_METRICS",
        metavar="ADDRESS",
        help="Address that serves /metrics, /livez and /readyz: a port of this machine, or "
        "host:port.",
        show_default=False,
    ),
]
LogFormat = Annotated[
    Literal["text", "json"],
    typer.Option(
        envvar="ONLINE_SVM_LOG_FORMAT",
        help="Log lines as text for people, or as json objects (default text).",
        show_default=False,
    ),
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("combine")(combine)


def combine(
    feeds: Feeds,
    into: Into,
    redis: Redis = None,
    config: Config = None,
    rule: Rule = None,
    recalibration: Recalibration = None,
    recalibrate_every: RecalibrateEvery = None,
    window: Window = None,
    join_window: JoinWindow = None,
    batch: Annotated[int, typer.Option(min=1, max=65_536, help="Answers committed at once.")] = 256,
    wait_replicas: Annotated[
        int,
        typer.Option(
            min=0, max=16, help="Replicas of Redis that must have a commit before it counts."
        ),
    ] = 0,
    once: Annotated[bool, typer.Option("--once", help="Combine what is there, then end.")] = False,
    metrics: Metrics = None,
    log_format: LogFormat = "text",
) -> None:
    """Join the answers of feeds that score the same ids, combine them, and recalibrate.

    The masses of a source are the belief and plausibility of its first evidential map, or else its
    Venn interval. The answers follow the order of the first feed and carry no guarantee. Of a
    combination that was begun, options that are not given are as it was begun with.
    """
    from workers.cli import logs
    from workers.combine import service
    from workers.monitor.watching import watching
    from workers.session.known_feeds import KnownFeeds

    logs.configure(log_format)
    named: dict[str, object] = {
        "rule": rule,
        "recalibration": recalibration,
        "recalibrate_every": recalibrate_every,
        "window": window,
    }
    options = {name: value for name, value in named.items() if value is not None}
    told = _Count()
    url = redis_url(redis, config)
    with watching(url, metrics) as watch:
        waiting = service.run(
            feeds, into, url, options, join_window, once, batch, told, watch, wait_replicas,
            KnownFeeds.of_user(url),
        )  # fmt: skip
    note(
        f"{into}: {told.answers:,} combined, {told.letters:,} dead letters, "
        f"{waiting:,} wait for another feed"
    )


class _Count:
    """Counts what was committed."""

    def __init__(self) -> None:
        self.answers = self.letters = 0

    def __call__(self, outcome: "Outcome") -> None:
        self.answers += len(outcome.out)
        self.letters += len(outcome.dlq)
