"""`combine`: several classifiers, one decision."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from workers.cli.common import RedisOptions, note

if TYPE_CHECKING:
    from workers.session.answer import Outcome


@dataclass(frozen=True, slots=True)
class DecisionOptions:
    """How masses are combined and recalibrated; None for what the combination was begun with."""

    rule: Annotated[
        Literal["dempster", "cautious"] | None,
        typer.Option(
            help="Dempster's rule, or the cautious one, which counts overlap once (default "
            "dempster).",
            show_default=False,
        ),
    ] = None
    recalibration: Annotated[
        Literal["platt", "isotonic"] | None,
        typer.Option(
            help="Map from the combined log odds to the probability (default platt).",
            show_default=False,
        ),
    ] = None
    recalibrate_every: Annotated[
        int | None,
        typer.Option(
            min=1, help="Labels between two recalibrations (default 100).", show_default=False
        ),
    ] = None
    window: Annotated[
        int | None,
        typer.Option(
            min=10,
            help="Labels that the recalibration is fitted on (default 2000).",
            show_default=False,
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """How the process works and what it tells."""

    batch: Annotated[int, typer.Option(min=1, max=65_536, help="Answers committed at once.")] = 256
    wait_replicas: Annotated[
        int,
        typer.Option(
            min=0, max=16, help="Replicas of Redis that must have a commit before it counts."
        ),
    ] = 0
    once: Annotated[bool, typer.Option("--once", help="Combine what is there, then end.")] = False
    metrics: Annotated[
        str | None,
        typer.Option(
            envvar="ONLINE_SVM_METRICS",
            metavar="ADDRESS",
            help="Address that serves /metrics, /livez and /readyz: a port of this machine, or "
            "host:port.",
            show_default=False,
        ),
    ] = None
    log_format: Annotated[
        Literal["text", "json"],
        typer.Option(
            envvar="ONLINE_SVM_LOG_FORMAT",
            help="Log lines as text for people, or as json objects (default text).",
            show_default=False,
        ),
    ] = "text"


def combine(
    feeds: Annotated[
        list[str], typer.Argument(help="Feeds that score the same ids; at least two.")
    ],
    into: Annotated[
        str, typer.Option("--into", metavar="FEED", help="Feed to write the answers to.")
    ],
    *,
    redis: RedisOptions,
    decision: DecisionOptions,
    join_window: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Places that the answers to one id may lie apart. An id that a feed lacks is "
            "waited for until that feed is so far ahead (default 100).",
            show_default=False,
        ),
    ] = None,
    work: ServiceOptions,
) -> None:
    """Join the answers of feeds that score the same ids, combine them, and recalibrate.

    The masses of a source are the belief and plausibility of its first evidential map, or else its
    Venn interval. The answers follow the order of the first feed and carry no guarantee. Of a
    combination that was begun, options that are not given are as it was begun with.
    """
    from workers.config.settings import WorkerSettings
    from workers.log import configure
    from workers.monitor.watching import watching
    from workers.runner import combination
    from workers.session.known_feeds import KnownFeeds

    configure(work.log_format)
    options = {name: value for name, value in asdict(decision).items() if value is not None}
    told = _Count()
    url = redis.url()
    with watching(url, work.metrics) as watch:
        waiting = combination.run(
            combination.Combined(feeds, options, join_window), into, url,
            settings=WorkerSettings(batch=work.batch, wait_replicas=work.wait_replicas),
            once=work.once, observe=told, watch=watch, known=KnownFeeds.of_user(url),
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
