"""`report`: write a past run of a feed to a file, or compare two feeds on the same examples."""

from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument

from workers.cli.common import (
    Json,
    Overwrite,
    RedisOptions,
    note,
    opt,
    replacing,
    show,
    show_json,
)
from workers.cli.progress import doing
from workers.errors import BadConfiguration, writing
from workers.python_process import importing
from workers.text import printable

if TYPE_CHECKING:
    from online_svm.metrics.sequential.comparison import MeanSince
    from workers.dashboard.shown_feed import Excerpt
    from workers.offline.comparison import FeedComparison, LossComparison


@dataclass(frozen=True, slots=True)
class FileOptions:
    """The file of a report, and the span of time that it shows."""

    out: Annotated[Path, opt("FILE", "The HTML file to write.")] = Path("report.html")
    since: Annotated[
        str | None, opt("TIME", "Begin here, as 2026-03-12 or 2026-03-12T09:00 in UTC.")
    ] = None
    until: Annotated[str | None, opt("TIME", "End here; a date is its last moment.")] = None
    positive: Annotated[
        str | None, opt("LABEL", "The class of interest; default the rare classes.")
    ] = None
    card: Annotated[
        bool,
        opt(
            "--card",
            "Write a model card instead: one page of facts for auditors, as Markdown and HTML "
            "beside each other (report.md, report.html).",
        ),
    ] = False
    overwrite: Overwrite = False


def report(
    feed: Annotated[
        str,
        Argument(
            metavar="FEED|FILE",
            help="Name of the feed, a file of online-svm backup, or a CSV file of export.",
        ),
    ],
    *,
    file: FileOptions,
    against: Annotated[
        str | None,
        opt(
            "OTHER",
            "Compare with this feed or file instead: print which of the two is better on the "
            "labelled examples that both answered. No file is written.",
        ),
    ] = None,
    redis: RedisOptions,
    json: Json = False,
) -> None:
    """Write what a feed keeps of a span of time as one HTML file that needs no network.

    The verdict and the facts come first, which are printed too, then the plots of the page.

    --against OTHER tells the difference of Brier score and log loss with an interval, and whether
    one of the feeds is better. Both hold at all times together: look as often as you like.
    Examples are known by the producer's id, or by the ID of the entry, as in a fork.
    """
    if against is None:
        _write(feed, file, redis, json)
    elif file.since or file.until:
        raise BadConfiguration("--against compares all that both keep: leave out the times")
    else:
        _compare(feed, against, redis, json)


def _write(feed: str, file: FileOptions, redis: RedisOptions, as_json: bool) -> None:
    with doing("reading what is kept"):
        past = replace(_past(feed, file, redis), positive=file.positive)
    if file.card:
        _write_card(past, file, feed, as_json)
        return
    with doing("drawing the report"):
        with importing():
            from workers.dashboard.html_report import html_report
        text = html_report(past)
    with writing(file.out), replacing(file.out, file.overwrite) as target:
        target.write(text)
    if as_json:
        found = {"verdict": past.trust(), "facts": past.facts()}
        show_json({"feed": feed, "file": str(file.out)} | found)
        return
    show(f"{past.trust().sentence}. {past.trust().advice}".strip())
    for fact in past.facts():
        show(f"{fact.name:<9}  {fact.sentence}")
    note(f"the report is in {file.out}")


def _write_card(past: "Excerpt", file: FileOptions, feed: str, as_json: bool) -> None:
    with doing("writing the card"):
        from workers.dashboard.model_card import as_html, as_markdown, model_card

        title, sections = f"Model card of feed {past.feed}", model_card(past)
    written = [file.out.with_suffix(".md"), file.out.with_suffix(".html")]
    for path, render in zip(written, (as_markdown, as_html), strict=True):
        with writing(path), replacing(path, file.overwrite) as target:
            target.write(render(title, sections))
    if as_json:
        show_json({"feed": feed, "files": [str(path) for path in written]})
    else:
        note(f"the card is in {written[0]} and {written[1]}")


def _compare(first: str, second: str, redis: RedisOptions, as_json: bool) -> None:
    from workers.offline.comparison import compare
    from workers.recording.reader import reading

    opened = redis.answered
    with reading(first, opened) as one, reading(second, opened) as other, doing("comparing"):
        found = compare(one, other)
    if as_json:
        show_json({"first": first, "second": second} | asdict(found))
    else:
        print(describe(first, second, found))


def _past(source: str, file: FileOptions, redis: RedisOptions) -> "Excerpt":
    since = _milliseconds("--since", file.since)
    until = _milliseconds("--until", file.until, is_end=True)
    with importing():
        from workers.dashboard.past_export import read_export
        from workers.dashboard.past_run import read_past
        from workers.reading.registry import require
        from workers.recording.file import is_recording
        from workers.recording.reader import reading
    if Path(source).is_file() and not is_recording(source):
        return read_export(Path(source), since, until)
    with reading(source, redis.store) as store:
        require(store)
        return read_past(store, since, until)


def _milliseconds(option: str, text: str | None, is_end: bool = False) -> float | None:
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


_SPELLED = {"brier": "Brier score", "log_loss": "log loss"}


def describe(first: str, second: str, found: "FeedComparison") -> str:
    """Return a comparison as text."""
    names = {"first": printable(first), "second": printable(second)}
    lines = [
        f"{found.compared:,} labelled examples answered by both; {found.only_first:,} by "
        f"{names['first']} alone, {found.only_second:,} by {names['second']} alone"
    ]
    for name, loss in found.losses.items():
        lines.append(_line(_SPELLED[name], loss, names, found.level))
        if loss.since.since:
            lines.append(_since(loss.since, found.level))
    return "\n".join(lines)


def _since(mean: "MeanSince", level: float) -> str:
    return (
        f"  since number {mean.since + 1:,} of them: {mean.estimate:+.4f}, at {1 - level:.0%} in "
        f"[{mean.lower:+.4f}, {mean.upper:+.4f}], whichever start is told"
    )


def _line(name: str, loss: "LossComparison", names: dict[str, str], level: float) -> str:
    verdict = "no difference shown yet"
    if loss.better is not None:
        verdict = f"{names[loss.better]} is better (level {level:g})"
    return (
        f"{name}: {names['first']} {loss.first:.4f}, {names['second']} {loss.second:.4f}; "
        f"difference {loss.difference:+.4f}, at {1 - level:.0%} in [{loss.lower:+.4f}, "
        f"{loss.upper:+.4f}]: {verdict}"
    )
