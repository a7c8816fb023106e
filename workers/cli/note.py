"""`note`: write an event about a feed: a note, an acknowledged alarm, or a silence."""

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
        opt(
            "TIME|NOTICE",
            "Post nothing to the webhook for 90s, 30m, 2h or 1d; 0s ends all silences. Or the "
            "code of an open notice: until it ends, it is neither posted nor in the verdict.",
        ),
    ] = None,
    *,
    redis: RedisOptions,
) -> None:
    """Note what happened to a feed: the page and the report mark it in their plots.

    With --ack note that an alarm was seen; with --silence that none is to be posted for a while, or
    that a notice is known.
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


def _silenced(store: "Store", given: str, reason: str) -> str:
    from workers.admin.notes import duration, silence, silence_notice
    from workers.reading.dates import moment

    if ":" in given:
        return f"silenced until it ends: {silence_notice(store, given, reason).words}"
    until = silence(store, duration(given), reason)
    return f"nothing is posted until {moment(until)} UTC" if until else "nothing is silenced"
