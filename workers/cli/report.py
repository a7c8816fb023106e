"""`report`: a past run of a feed as one file, or two feeds on the same examples."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from workers.cli.common import (
    Config,
    Json,
    Redis,
    feed_store,
    note,
    replacing,
    show_json,
    writing,
)
from workers.fast_imports import importing

if TYPE_CHECKING:
    from workers.dashboard.excerpt import Axis, Excerpt


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("report")(report)


def report(
    feed: Annotated[
        str,
        typer.Argument(
            metavar="FEED|FILE|DIR",
            help="Name of the feed, a CSV file of online-svm export, or an archive.",
            show_default=False,
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", help="The HTML file to write.")] = Path(
        "report.html"
    ),
    since: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Begin here, as 2026-03-12 or 2026-03-12T09:00 in UTC."),
    ] = None,
    until: Annotated[
        str | None, typer.Option(metavar="TIME", help="End here; a date is its last moment.")
    ] = None,
    along: Annotated[
        str, typer.Option(metavar="n|time", help="Draw along examples learned, or along time.")
    ] = "n",
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace FILE if it is there.")
    ] = False,
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            metavar="OTHER",
            help="Compare with this feed instead: print which of the two is better on the "
            "labelled examples that both answered. No file is written.",
            show_default=False,
        ),
    ] = None,
    level: Annotated[
        float,
        typer.Option(
            "--level",
            min=1e-9,
            max=0.5,
            help="With --against: chance of each test to be wrong, ever.",
        ),
    ] = 0.05,
    redis: Redis = None,
    config: Config = None,
    json: Json = False,
) -> None:
    """Write what a feed keeps of a span of time as one HTML file that needs no network.

    A summary in sentences comes first, then the plots of the page. --json prints the summary too.

    --against OTHER tells the difference of Brier score and log loss with an interval, and whether
    one of the feeds is better. Both hold at all times together: look as often as you like.
    Examples are known by the producer's id, or by the ID of the entry, as in a fork.
    """
    from workers.errors import BadConfiguration

    if against is not None:
        if since or until:
            raise BadConfiguration("--against compares all that both keep: leave out the times")
        _compare(feed, against, level, redis, config, json)
        return

    if along not in ("n", "time"):
        raise BadConfiguration(f"--along {along!r}: expected n or time")
    span = _milliseconds("--since", since), _milliseconds("--until", until, is_end=True)
    past = _past(feed, span, "time" if along == "time" else "n", redis, config)
    with importing():
        from workers.dashboard.report.html_report import html_report
        from workers.dashboard.report.summary import sentences
    text = html_report(past)
    with writing(out), replacing(out, overwrite) as file:
        file.write(text)
    if json:
        show_json({"feed": feed, "file": str(out), "summary": sentences(past)})
        return
    for sentence in sentences(past):
        print(sentence)
    note(f"the report is in {out}")


def _compare(
    first: str, second: str, level: float, redis: str | None, config: Path | None, as_json: bool
) -> None:
    """Print which of two feeds is better on the examples that both answered."""
    from workers.cli.comparison_text import describe
    from workers.history.comparison import compare
    from workers.reading.answers import check_known
    from workers.reading.registry import require

    with feed_store(first, redis, config) as one, feed_store(second, redis, config) as other:
        for store in (one, other):
            require(store)
            check_known(store)
        found = compare(one, other, level)
    if as_json:
        show_json({"first": first, "second": second} | found.plain())
    else:
        print(describe(first, second, found))


def _past(
    source: str,
    span: tuple[float | None, float | None],
    axis: "Axis",
    redis: str | None,
    config: Path | None,
) -> "Excerpt":
    """Return what a feed, an exported file or an archive holds of a span."""
    with importing():
        from workers.dashboard.report.past_archive import read_archive
        from workers.dashboard.report.past_export import read_export
        from workers.dashboard.report.past_feed import read_past
        from workers.history.archive.layout import is_archive
        from workers.history.archive.reader import Archive
        from workers.reading.registry import require
    if Path(source).is_file():
        return read_export(Path(source), *span, axis)
    if is_archive(Path(source)):
        return read_archive(Archive(Path(source)), *span, axis)
    with feed_store(source, redis, config) as store:
        require(store)
        return read_past(store, *span, axis)


def _milliseconds(option: str, text: str | None, is_end: bool = False) -> float | None:
    """Return a time in milliseconds since 1970; None where none was given.

    Raises
    ------
    BadConfiguration
        If it is no time.

    Examples
    --------
    >>> _milliseconds("--since", "1970-01-02"), _milliseconds("--until", "1970-01-01", is_end=True)
    (86400000.0, 86399999.0)
    >>> _milliseconds("--since", "1970-01-01T02:00+02:00")
    0.0
    """
    from workers.errors import BadConfiguration

    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise BadConfiguration(
            f"{option} {text[:40]!r}: expected a time such as 2026-03-12 or 2026-03-12T09:00"
        ) from None
    moment = (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1000
    is_date = len(text) <= len("2026-03-12")
    end = moment + 86_400_000 - 1 if is_date and is_end else moment
    if end < 0:
        raise BadConfiguration(f"{option} {text[:40]!r}: is before 1970")
    return end
