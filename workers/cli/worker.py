"""`worker`: answer a feed."""

from contextlib import ExitStack, closing
from typing import Annotated, Any

import typer

from workers.cli.common import Config, Feed, Redis, embedded_url
from workers.cli.options import with_settings
from workers.errors import BadConfiguration
from workers.fast_imports import importing


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("worker")(worker)


@with_settings
def worker(
    feed: Feed,
    redis: Redis = None,
    config: Config = None,
    name: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Stable name of this worker; default the host's name."),
    ] = None,
    accept_environment: Annotated[
        bool,
        typer.Option(
            "--accept-environment",
            help="Go on after a change of libraries or processor, if a replay gives equal bytes.",
        ),
    ] = False,
    sigma: Annotated[
        float | None,
        typer.Option(
            help="Width of the rbf kernel exp(-|u-v|^2 / (2 sigma^2)): --gamma 1/(2 sigma^2).",
            rich_help_panel="Predictor",
            show_default=False,
        ),
    ] = None,
    dashboard: Annotated[
        int | None,
        typer.Option(
            metavar="PORT",
            min=0,
            max=65535,
            help="Show the feed in a browser, on this port of loopback; 0 is any free one.",
            show_default=False,
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress lines.")] = False,
    **settings: Any,
) -> None:
    """Answer a feed, each example before its label is learned, until stopped."""
    with importing():
        from workers.cli import logs
        from workers.config import settings as known

        loaded = known.load(given_flags(settings, redis, sigma), config, is_whole=False)
        logs.configure(loaded.log_format)
        url = loaded.url or embedded_url()
    # Slow imports come last, so that a wrong setting is reported at once.
    with importing():
        from workers.cli.progress import LoggedProgress, WorkerProgress
        from workers.dashboard.beside import page_beside
        from workers.engine import service
        from workers.monitor.watching import watching
        from workers.monitor.webhook_post import receiver_of
    progress = LoggedProgress(feed) if loaded.log_format == "json" else WorkerProgress(feed)
    with ExitStack() as opened:
        telemetry = opened.enter_context(
            watching(feed, url, loaded.metrics, receiver=receiver_of(loaded))
        )
        if dashboard is not None:
            opened.enter_context(page_beside(feed, url, dashboard))
        observe = None if quiet else opened.enter_context(closing(progress))
        service.run(feed, loaded, url, name, accept_environment, observe, telemetry)


def given_flags(settings: dict[str, Any], redis: str | None, sigma: float | None) -> dict[str, Any]:
    """Return the settings given as flags.

    Raises
    ------
    BadConfiguration
        If sigma is not positive, or gamma is given too.

    Examples
    --------
    >>> given_flags({"C": "2", "gamma": None}, None, 0.5)
    {'C': '2', 'gamma': 2.0}
    """
    flags = {
        name: value for name, value in (settings | {"redis": redis}).items() if value is not None
    }
    if sigma is not None:
        if "gamma" in flags:
            raise BadConfiguration("give --sigma or --gamma, not both")
        if not 0 < sigma < float("inf"):
            raise BadConfiguration("setting sigma: must be a positive number")
        flags["gamma"] = 1 / (2 * sigma**2)
    return flags
