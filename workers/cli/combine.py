"""`combine`: several classifiers, one decision."""

from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from typer import Argument, Option

from workers.cli.common import RedisOptions, note, opt
from workers.cli.progress import at_intervals

if TYPE_CHECKING:
    from workers.session.answer import Outcome


@dataclass(frozen=True, slots=True)
class DecisionOptions:
    """Combination and recalibration of the masses; with None the stored setting applies."""

    rule: Annotated[
        Literal["dempster", "cautious"] | None,
        Option(
            help="Dempster's rule, or the cautious one, which counts overlap once (default "
            "dempster)."
        ),
    ] = None
    recalibration: Annotated[
        Literal["platt", "isotonic"] | None,
        Option(help="Map from the combined log odds to the probability (default platt)."),
    ] = None
    recalibrate_every: Annotated[
        int | None, Option(min=1, help="Labels between two recalibrations (default 100).")
    ] = None
    window: Annotated[
        int | None,
        Option(min=10, help="Labels that the recalibration is fitted on (default 2000)."),
    ] = None


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """Batches, metrics and log of the process."""

    batch: Annotated[int, Option(min=1, max=65_536, help="Answers committed at once.")] = 256
    wait_replicas: Annotated[
        int,
        Option(min=0, max=16, help="Replicas of Redis that must have a commit before it counts."),
    ] = 0
    once: Annotated[bool, opt("--once", "Combine what is there, then end.")] = False
    metrics: Annotated[
        str | None,
        Option(
            envvar="ONLINE_SVM_METRICS",
            metavar="ADDRESS",
            help="Address that serves /metrics, /livez and /readyz: a port of this machine, or "
            "host:port.",
        ),
    ] = None
    log_format: Annotated[
        Literal["text", "json"],
        Option(
            envvar="ONLINE_SVM_LOG_FORMAT",
            help="Log lines as text for people, or as json objects (default text).",
            show_default=False,
        ),
    ] = "text"


def combine(
    feeds: Annotated[list[str], Argument(help="Feeds that score the same ids; at least two.")],
    into: Annotated[str, opt("FEED", "Feed to write the answers to.")],
    *,
    redis: RedisOptions,
    decision: DecisionOptions,
    join_window: Annotated[
        int | None,
        Option(
            min=0,
            help="Places that the answers to one id may lie apart. An id that a feed lacks is "
            "waited for until that feed is so far ahead (default 100).",
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
    counts, url = Counter[str](), redis.url()
    with watching(url, work.metrics) as watch:
        waiting = combination.run(
            combination.Combined(feeds, into, options, join_window, work.once), url,
            settings=WorkerSettings(batch=work.batch, wait_replicas=work.wait_replicas),
            observe=_counting(into, counts),
            watch=watch, known=KnownFeeds.of_user(url),
        )  # fmt: skip
    note(
        f"{into}: {counts['out']:,} combined, {counts['dlq']:,} dead letters, "
        f"{waiting:,} wait for another feed"
    )


def _counting(into: str, counts: Counter[str]) -> Callable[["Outcome"], None]:
    """Return a callback that counts answers and dead letters, and prints answers at intervals."""
    show = at_intervals(lambda count: f"{into}: {count:,} combined")

    def observe(outcome: "Outcome") -> None:
        counts.update(out=len(outcome.out), dlq=len(outcome.dlq))
        show(counts["out"])

    return observe
