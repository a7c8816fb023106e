"""`check`: run the checks of a worker, without starting it."""

from typing import Annotated, Any

import typer

from workers.cli.common import Config, Feed, Redis, attached_url, note, show
from workers.cli.options import with_settings
from workers.cli.worker import given_flags


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("check")(check)


@with_settings
def check(
    feed: Feed,
    redis: Redis = None,
    config: Config = None,
    accept_environment: Annotated[
        bool, typer.Option("--accept-environment", help="As for worker.")
    ] = False,
    **settings: Any,
) -> None:
    """Check whether a worker with these settings could begin; nothing is written."""
    from workers.config.feed_settings import FeedSettings

    loaded = FeedSettings(given_flags(settings, redis, None), config).of(feed)
    from workers.engine.known_feeds import KnownFeeds
    from workers.engine.service import check_permissions, open_store, run_preflight
    from workers.monitor.watching import check_outlets

    check_outlets(loaded)
    url = loaded.url or attached_url()

    with open_store(feed, loaded, url) as store:
        known = KnownFeeds.of_user(url, is_kept=False)
        found, _ = run_preflight(store, loaded, accept_environment, known=known)
        check_permissions(store, loaded)
    for warning in found.warnings:
        note(f"warning: {warning}")
    begun = "a new feed" if found.state is None else f"{found.state.position.seq:,} answered"
    show(f"feed {feed}: a worker may begin ({begun}, Redis {found.redis})")
