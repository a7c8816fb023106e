"""`scorer`: answer requests of a feed with its newest published state."""

from dataclasses import asdict, dataclass
from typing import Annotated, Any

from typer import Option

from workers.cli.common import Feed, RedisOptions, opt, with_settings
from workers.python_process import importing
from workers.scorer.settings import ScorerSettings

_DEFAULT = ScorerSettings()


@dataclass(frozen=True, slots=True)
class AnswerOptions:
    """Bounds on the age of states and requests, and sizes of batches."""

    max_stale: Annotated[
        int,
        Option(
            min=0,
            help="Answer no more where the feed has learned so many examples since the state.",
        ),
    ] = 2000
    max_age: Annotated[
        float | None,
        Option(
            min=0,
            help="Answer no more so many seconds after the state was published; default any time.",
        ),
    ] = _DEFAULT.max_age
    max_wait: Annotated[
        float | None,
        Option(
            min=0,
            help="Answer no more a request that waited for so many seconds; default any time.",
        ),
    ] = _DEFAULT.max_wait
    batch: Annotated[int, Option(min=1, max=4096, help="Requests answered at once, at most.")] = (
        _DEFAULT.batch
    )
    keep: Annotated[int, Option(min=1, max=86_400, help="Seconds that an answer is kept.")] = (
        _DEFAULT.keep
    )
    claim_after: Annotated[
        float,
        Option(
            min=0.1,
            max=3600,
            help="Seconds after which requests of a scorer that does not answer are taken over.",
        ),
    ] = _DEFAULT.claim_after


@with_settings("metrics", "log_format", "wait_redis")
def scorer(
    feed: Feed,
    *,
    redis: RedisOptions,
    options: AnswerOptions,
    name: Annotated[
        str | None,
        opt("NAME", "Name of this scorer, which no other has; default host, process and chance."),
    ] = None,
    **shared: Any,
) -> None:
    """Answer unlabelled requests with the newest state that the feed's worker has published.

    Any number of scorers share the requests of a feed. Its worker publishes states with
    --publish-every.
    """
    with importing():
        from workers.cli.common import attached_url
        from workers.config.loading import load
        from workers.log import configure
        from workers.scorer import service
        from workers.scorer.endpoint import serving_scorer
        from workers.scorer.settings import ScorerCounts

        given = {key: value for key, value in shared.items() if value is not None}
        known = load(given | redis.flags, redis.config, is_whole=False, feed=feed)
        configure(known.log_format)
    settings = ScorerSettings(**asdict(options), wait=known.wait_redis)
    url, counts = known.url or attached_url(), ScorerCounts()
    with serving_scorer(feed, counts, known.metrics):
        service.run(feed, url, settings, name, counts=counts)
