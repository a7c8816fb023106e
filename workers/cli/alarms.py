"""`alarms`: show the alarms of a feed, and say that one was seen or that none is wanted."""

import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typing_extensions import override

from workers.cli.common import Config, Feed, Json, Redis, feed_store, note
from workers.cli.tail import pages


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(
        cls=_ShowsByDefault,
        no_args_is_help=True,
        help="Show the alarms of a feed, `alarms FEED`; say that one was seen (ack), or let none "
        "be posted for a while (silence).",
    )
    group.command("show")(alarms)
    group.command("ack")(ack)
    group.command("silence")(silence)
    app.add_typer(group, name="alarms")


class _ShowsByDefault(TyperGroup):
    """Takes `alarms FEED` for `alarms show FEED`."""

    @override
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in (*self.commands, "--help"):
            args = ["show", *args]
        return super().parse_args(ctx, args)


def alarms(
    feed: Feed,
    redis: Redis = None,
    config: Config = None,
    json: Json = False,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Wait for more.")] = False,
    count: Annotated[
        int, typer.Option("--count", "-n", min=0, help="Entries to begin with; 0 is all kept.")
    ] = 10,
) -> None:
    """Show the last alarms of a feed: what was found, after which example, what was done, and when.

    --json prints the payloads; the alarms that one entry raised share one.
    """
    from workers.message.event import KEPT
    from workers.printable import printable, printable_json
    from workers.reading.alarms import commit_times
    from workers.reading.answers import check_known, newest, payload
    from workers.reading.registry import require

    with feed_store(feed, redis, config) as store:
        if not follow:
            require(store)
        check_known(store)
        if not follow and not store.length(store.keys.alarms):
            note(f"no alarm of {feed} is kept")
        for page in pages(store, store.keys.alarms, count, follow):
            if json:
                for entry in page:
                    print(printable_json(payload(entry)))
            else:
                times = commit_times(newest(store, store.keys.raised, KEPT))
                for entry in page:
                    for text in lines(payload(entry)):
                        print(printable(f"{text}{_committed(times.get(entry[0]))}"))
            if follow:
                sys.stdout.flush()


def ack(
    feed: Feed,
    alarm: Annotated[
        str, typer.Argument(help="Its n, as `alarms FEED` shows it, or the ID of its entry.")
    ],
    why: Annotated[str, typer.Option("--why", metavar="TEXT", help="What you found.")] = "",
    redis: Redis = None,
    config: Config = None,
) -> None:
    """Note that you have seen an alarm; the page shows it. The alarm itself stays open."""
    from workers.admin.attention import acknowledge

    with feed_store(feed, redis, config) as store:
        entry = acknowledge(store, alarm, why)
    note(f"{feed}: the alarm at {entry} is acknowledged")


def silence(
    feed: Feed,
    seconds: Annotated[
        str, typer.Option("--for", metavar="TIME", help="90s, 30m, 2h or 1d; 0s ends a silence.")
    ],
    why: Annotated[str, typer.Option("--why", metavar="TEXT", help="The reason.")],
    redis: Redis = None,
    config: Config = None,
) -> None:
    """Let no alarm of a feed be posted to the webhook for a while; alarms go on meanwhile."""
    from datetime import UTC, datetime

    from workers.admin import attention

    with feed_store(feed, redis, config) as store:
        until = attention.silence(store, attention.duration(seconds), why)
    at = datetime.fromtimestamp(until / 1000, UTC)
    note(f"{feed}: no alarm is posted until {at:%Y-%m-%d %H:%M:%S} UTC")


def _committed(milliseconds: int | None) -> str:
    """Return when an alarm was committed, as the end of its line; nothing where it is not known.

    Examples
    --------
    >>> _committed(1_700_000_000_123)
    '  committed 2023-11-14 22:13:20 UTC'
    """
    from datetime import UTC, datetime

    if milliseconds is None:
        return ""
    try:
        at = datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (OSError, OverflowError, ValueError):  # another program wrote it: no time of this era
        return ""
    return f"  committed {at:%Y-%m-%d %H:%M:%S} UTC"


def lines(data: bytes) -> list[str]:
    """Return the alarms of a payload as lines of text.

    Examples
    --------
    >>> lines(b"<html>")
    ['not of this program: <html>']
    """
    import orjson

    try:
        return [line(alarm) for alarm in orjson.loads(data)["alarms"]]
    except (TypeError, ValueError, LookupError, AttributeError):
        return [f"not of this program: {data[:200].decode(errors='backslashreplace')}"]


def line(alarm: dict[str, Any]) -> str:
    """Return one alarm as a line of text.

    Examples
    --------
    >>> alarm = {"n": 5040, "kind": "calibration", "scope": "class", "name": "b", "monitor": "b",
    ...          "log_wealth": 5.73, "threshold": 5.3, "since": 10}
    >>> line(alarm).partition(": ")
    ('n 5,040  calibration', ': ', 'the probability of class b was off by more than the tolerance \
since n = 10  b e^5.7 of e^5.3')
    """
    from online_svm.stream.alarm import Alarm

    found = Alarm.of(alarm)
    done = "" if found.action == "report" else f"  {found.action}"
    evidence = f"{found.monitor} e^{found.log_wealth:.1f} of e^{found.threshold:.1f}"
    return f"n {found.n:,}  {found.kind}: {found.words}  {evidence}{done}"
