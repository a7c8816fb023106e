"""`worker`: answer feeds."""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from workers.cli.common import RedisOptions, embedded_url, note, opt, with_settings
from workers.config.environment import PREFIX
from workers.errors import BadConfiguration
from workers.python_process import command, environment, importing
from workers.text import counted

if TYPE_CHECKING:
    from workers.config.settings import FeedSettings
    from workers.feed.selection import Selection, Shard

_END_SECONDS = 10.0  # time for the page process to exit before it is killed


@contextmanager
def page_process(feeds: Sequence[str], url: str, port: int, *options: str) -> Iterator[None]:
    """Serve the page of feeds on loopback within the block; `options` are passed to `dashboard`.

    The page process prints its address, or an error, on standard error. It exits when its standard
    input ends, so that it never outlives this process.
    """
    page = ("dashboard", *feeds, "--port", str(port))
    # The URL may hold a password, so it is passed in the environment, not in the list of processes.
    # It includes the credentials of other settings, so those are not passed.
    inherited = {name: text for name, text in environment().items() if not name.startswith(PREFIX)}
    process = subprocess.Popen(
        command("-m", "workers.cli", *page, *options, "--until-input-ends"),
        env=inherited | {f"{PREFIX}REDIS": url},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )
    assert process.stdin is not None
    try:
        yield
    finally:
        process.stdin.close()
        try:
            process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


Feeds = Annotated[
    list[str],
    Argument(
        metavar="FEED",
        help="Names of feeds, and patterns such as 'sensors-*' over the feeds there are.",
    ),
]


@dataclass(frozen=True, slots=True)
class ProcessOptions:
    """The name of the worker, its shard of the feeds, and its output."""

    name: Annotated[
        str | None, opt("NAME", "Stable name of this worker; default the host's name.")
    ] = None
    shard: Annotated[
        str | None,
        opt(
            "I/N",
            "Answer only the feeds of shard I of N, from 0 on; auto/N takes I from the number "
            "that ends the host's name.",
        ),
    ] = None
    dashboard: Annotated[
        int | None,
        Option(
            metavar="PORT",
            min=0,
            max=65535,
            help="Show the feeds in a browser, on this port of loopback; 0 is any free one.",
        ),
    ] = None
    quiet: Annotated[bool, opt("--quiet", "No progress lines: alarms, warnings and the stop.")] = (
        False
    )


@with_settings
def worker(
    feeds: Feeds,
    *,
    redis: RedisOptions,
    process: ProcessOptions,
    from_file: Annotated[
        Path | None,
        Option(
            "--from",
            metavar="FILE",
            help="Begin the feed, if it does not exist yet, with a model: what "
            "OnlineClassifier.save or `backup` saved.",
        ),
    ] = None,
    **settings: Any,
) -> None:
    """Answer feeds, each example before its label is learned, until stopped.

    Of a pattern, feeds that match are taken up as they get input. Each feed has the
    answers that a worker of its own gives it.
    """
    with importing():
        from workers.config.settings import FeedSettings
        from workers.feed.selection import Selection
        from workers.log import configure

        known = FeedSettings(given_flags(settings, redis), redis.config)
        configure(known.general.log_format)
        shard = None if process.shard is None else _shard(process.shard)
        selection = Selection(feeds, None if shard is None else shard.owns)
        given_url = known.general.url
        url = given_url or embedded_url()
    # Slow imports come after the settings, so that a wrong setting is reported at once.
    with importing():
        from workers.broker.embedded import kept_running
        from workers.cli.progress import LoggedProgress, WorkerProgress
        from workers.monitor.watching import watching
        from workers.monitor.webhook_post import receiver_of
        from workers.runner.service import Worker
        from workers.session import spans
        from workers.session.preflight import KnownFeeds
        from workers.stop import Stop, signals

    spans.start()
    named = [known.of(feed) for feed in selection.names]
    for each in (*named, *(known.every() if selection.patterns else ())):
        receiver_of(each)  # raises if its URL of alarms cannot be used
    # The section of the only feed of a process applies to the process as well.
    general = named[0] if len(named) == 1 and not selection.patterns else known.general
    if from_file is not None:
        _begin(from_file, selection, known, url)
    stop = Stop(general.grace)
    kind = LoggedProgress if general.log_format == "json" else WorkerProgress
    with ExitStack() as opened:
        opened.enter_context(signals(stop))
        if given_url is None:
            opened.enter_context(kept_running())
        watch = opened.enter_context(watching(url, general.metrics))
        if process.dashboard is not None:
            _open_page(opened, feeds, shard, url, process.dashboard)
        observe = opened.enter_context(closing(kind(is_quiet=process.quiet)))
        Worker(
            selection, general, url, stop,
            name=process.name, settings_of=known.of, observe=observe, watch=watch,
            known=KnownFeeds.of_user(url),
        ).run()  # fmt: skip


def _begin(file: Path, selection: "Selection", known: "FeedSettings", url: str) -> None:
    """Begin the only feed of this worker with a model, unless it exists."""
    from workers.broker.store import Store
    from workers.recording.begin import begin
    from workers.session.preflight import KnownFeeds

    if len(selection.names) != 1 or selection.patterns:
        raise BadConfiguration("--from begins one feed: give its name, and no pattern")
    (feed,) = selection.names
    with Store(url, feed) as store:
        n = begin(store, file, known.of(feed), KnownFeeds.of_user(url))
    if n is None:
        note(f"feed {feed!r} exists: it goes on, and {file} is not read")
        return
    note(f"feed {feed!r} begins with {file}, which has learned {counted(n, 'example')}")


def _open_page(
    opened: ExitStack, feeds: list[str], shard: "Shard | None", url: str, port: int
) -> None:

    if shard is None:
        opened.enter_context(page_process(feeds, url, port))
    elif shard.index < shard.count:  # a shard that stands by has no feeds to show
        opened.enter_context(page_process(feeds, url, port, "--shard", str(shard)))


def _shard(text: str) -> "Shard":
    from workers.feed.selection import Shard

    shard = Shard.parse(text)
    if shard.index >= shard.count:
        note(f"--shard {text}: this is number {shard.index}, so it owns no feed and stands by")
    return shard


def given_flags(settings: dict[str, Any], redis: RedisOptions) -> dict[str, Any]:
    """Return the settings that were given as flags."""
    return {name: value for name, value in settings.items() if value is not None} | redis.flags
