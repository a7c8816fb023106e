"""`scorer`: answer requests of a feed with its newest published state."""

from dataclasses import asdict, dataclass
from typing import Annotated, Any

import typer

from workers.cli.common import Feed, RedisOptions
from workers.cli.option_groups import with_some_settings
from workers.fast_imports import importing
from workers.scorer.settings import ScorerSettings

_DEFAULT = ScorerSettings()


@dataclass(frozen=True, slots=True)
class AnswerOptions:
    """Which requests are answered, and how."""

    max_stale: Annotated[
        int,
        typer.Option(
            min=0,
            help="Answer no more where the feed has learned so many examples since the state.",
        ),
    ] = 2000
    max_age: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Answer no more so many seconds after the state was published; default any time.",
            show_default=False,
        ),
    ] = _DEFAULT.max_age
    max_wait: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Answer no more a request that waited for so many seconds; default any time.",
            show_default=False,
        ),
    ] = _DEFAULT.max_wait
    batch: Annotated[
        int, typer.Option(min=1, max=4096, help="Requests answered at once, at most.")
    ] = _DEFAULT.batch
    keep: Annotated[
        int, typer.Option(min=1, max=86_400, help="Seconds that an answer is kept.")
    ] = _DEFAULT.keep
    claim_after: Annotated[
        float,
        typer.Option(
            min=0.1,
            max=3600,
            help="Seconds after which requests of a scorer that does not answer are taken over.",
        ),
    ] = _DEFAULT.claim_after


@with_some_settings("metrics", "log_format", "wait_redis")
def scorer(
    feed: Feed,
    *,
    redis: RedisOptions,
    options: AnswerOptions,
    name: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Name of this scorer, which no other has; default host, process and chance.",
            show_default=False,
        ),
    ] = None,
    accept_environment: Annotated[
        bool,
        typer.Option(
            "--accept-environment",
            help="Answer though another version of numba computed the feed: the last digits may "
            "then differ from the worker's.",
        ),
    ] = False,
    **shared: Any,
) -> None:
    """Answer unlabelled requests with the newest state that the feed's worker has published.

    Any number of scorers share the requests of a feed. Its worker publishes states with
    --publish-every.
    """
    with importing():
        from workers.cli.common import attached_url
        from workers.config.settings import load
        from workers.log import configure
        from workers.scorer import service
        from workers.scorer.counts import ScorerCounts
        from workers.scorer.endpoint import serving_scorer

        given = {key: value for key, value in shared.items() if value is not None}
        known = load(given | redis.flags, redis.config, is_whole=False, feed=feed)
        configure(known.log_format)
    settings = ScorerSettings(**asdict(options), wait=known.wait_redis)
    url, counts = known.url or attached_url(), ScorerCounts()
    with serving_scorer(feed, counts, known.metrics):
        service.run(feed, url, settings, name, accept_environment, counts=counts)
