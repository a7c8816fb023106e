"""`note`: write an event about a feed: a note, an acknowledged alarm, or a silence of alarms."""

from typing import TYPE_CHECKING, Annotated

from typer import Argument

from workers.cli.common import Feed, RedisOptions, opt
from workers.cli.common import note as print_note
from workers.errors import BadConfiguration

if TYPE_CHECKING:
    from workers.broker.store import Store


def note(
    feed: Feed,
    text: Annotated[
        str,
        Argument(
            help="What happened, such as 'deployed v2'; what you found, with --ack; the reason, "
            "with --silence."
        ),
    ] = "",
    ack: Annotated[
        str | None,
        opt(
            "ALARM",
            "You have seen this alarm: its n, as tail --stream alarms shows it, or the ID of "
            "its entry. It stays open.",
        ),
    ] = None,
    silence: Annotated[
        str | None,
        opt("TIME", "Post no alarm to the webhook for 90s, 30m, 2h or 1d; 0s ends a silence."),
    ] = None,
    *,
    redis: RedisOptions,
) -> None:
    """Note what happened to a feed: the page and the report mark it in their plots.

    With --ack or --silence note that an alarm was seen, or that none is to be posted for a while.
    """
    if ack is not None and silence is not None:
        raise BadConfiguration("give --ack or --silence, not both")
    from workers.admin.notes import note as note_of

    with redis.store(feed) as store:
        if ack is not None:
            done = _acknowledged(store, ack, text)
        elif silence is not None:
            done = _silenced(store, silence, text)
        else:
            done = f"noted at example {note_of(store, text):,}"
    print_note(f"{feed}: {done}")


def _acknowledged(store: "Store", alarm: str, reason: str) -> str:
    from workers.admin.notes import acknowledge

    return f"the alarm at {acknowledge(store, alarm, reason)} is acknowledged"


def _silenced(store: "Store", time: str, reason: str) -> str:
    from workers.admin.notes import duration, silence
    from workers.reading.events import moment

    return f"no alarm is posted until {moment(silence(store, duration(time), reason))} UTC"
