"""`scorer`: answer requests of a feed with its newest published state."""

from typing import Annotated

import typer

from workers.cli.common import Config, Feed, Redis


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("scorer")(scorer)


def scorer(
    feed: Feed,
    redis: Redis = None,
    config: Config = None,
    max_stale: Annotated[
        int,
        typer.Option(
            min=0,
            help="Answer no more where the feed has learned so many examples since the state.",
        ),
    ] = 2000,
    max_age: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Answer no more so many seconds after the state was published; default any time.",
            show_default=False,
        ),
    ] = None,
    batch: Annotated[
        int, typer.Option(min=1, max=4096, help="Requests answered at once, at most.")
    ] = 64,
    keep: Annotated[
        int, typer.Option(min=1, max=86_400, help="Seconds that an answer is kept.")
    ] = 60,
    claim_after: Annotated[
        float,
        typer.Option(
            min=0.1,
            max=3600,
            help="Seconds after which requests of a scorer that does not answer are taken over.",
        ),
    ] = 5.0,
    metrics: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Address that serves /metrics, /livez and /readyz: a port of this machine, or "
            "host:port.",
            show_default=False,
        ),
    ] = None,
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
            help="Answer though other libraries or another processor computed the feed: the last "
            "digits may then differ from the worker's.",
        ),
    ] = False,
) -> None:
    """Answer unlabelled requests with the newest state that the feed's worker has published.

    Any number of scorers share the requests of a feed. Its worker publishes states with
    --publish-every.
    """
    from workers.cli import logs
    from workers.cli.common import redis_url
    from workers.fleet.scorer import service
    from workers.fleet.scorer.counts import ScorerCounts
    from workers.fleet.scorer.endpoint import serving_scorer
    from workers.fleet.scorer.settings import ScorerSettings

    logs.configure("text")
    settings = ScorerSettings(max_stale, max_age, keep, claim_after, batch)
    url, counts = redis_url(redis, config), ScorerCounts()
    with serving_scorer(feed, counts, metrics):
        service.run(feed, url, settings, name, accept_environment, counts=counts)
