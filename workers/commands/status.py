"""`status`: how one feed stands, or all of them."""

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from workers.commands.common import Config, Json, Redis, redis_url

if TYPE_CHECKING:
    from workers.feeds import Status


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("status")(status)


def status(
    feed: Annotated[
        str | None, typer.Argument(help="Name of the feed; default all.", show_default=False)
    ] = None,
    redis: Redis = None,
    config: Config = None,
    json: Json = False,
) -> None:
    """Show how a feed stands: answered, waiting, who holds it, how valid its answers are."""
    import orjson

    from workers import feeds
    from workers.errors import AccessDenied
    from workers.store import Store

    url = redis_url(redis, config)
    with Store(url, feed or "any") as store:
        wanted = [feed] if feed else feeds.names(store)
    for i, name in enumerate(wanted):
        try:
            with Store(url, name) as store:
                found = feeds.status(store)
        except (feeds.NoSuchFeed, AccessDenied) as error:
            if feed:
                raise
            # Its keys were deleted, or are another team's: the others are asked for all the same.
            print(f"{name}: {error}", file=sys.stderr)
            continue
        if json:
            print(orjson.dumps(asdict(found)).decode())
        else:
            print("\n" * (i > 0) + describe(found))
    if not wanted and not json:
        print("no feeds yet: online-svm push FEED SOURCE, or online-svm worker FEED, begins one")


def describe(found: "Status") -> str:
    """Return a status as text, a line a fact."""
    from workers.feeds import COUNTED

    waiting = f"{found.waiting:,}" + (" or more" if found.waiting >= COUNTED else "")
    lines = [
        f"feed {found.feed}",
        f"  answered   {found.seq:,} entries, {found.n:,} learned, up to {found.cursor}",
        f"  waiting    {waiting}",
        f"  kept       {found.out:,} answers, {found.met:,} reports, {found.dlq:,} rejected",
        f"  worker     {found.holder or 'none'} ({found.epoch} so far)",
        f"  snapshots  {_snapshots(found.snapshots)}",
        f"  digest     {found.digest[:16]}",
    ]
    if found.validity is not None:
        lines.append(f"  validity   {_validity(found.validity)}")
    return "\n".join(lines)


def _snapshots(at: list[int]) -> str:
    """Return where a feed can be continued from.

    Examples
    --------
    >>> _snapshots([]), _snapshots([20_000, 10_000])
    ('none yet', 'at n = 20,000 and 10,000')
    """
    return f"at n = {' and '.join(f'{n:,}' for n in at)}" if at else "none yet"


def _validity(message: dict[str, Any]) -> str:
    """Return the last report in a line, with what it covers: not the warm-up, nor what came since.

    Examples
    --------
    >>> own = {"accuracy": 0.887, "lower": 0.872, "probability": 0.88, "upper": 0.888}
    >>> _validity({"n": 1200, "scored": 1190, "venn": {"predicted": own}}).split("] ")[1]
    'over 1,190 scored of the first 1,200 learned'
    """
    own = message["venn"]["predicted"]
    if own["accuracy"] is None:
        return "nothing scored yet"
    return (
        f"accuracy {own['accuracy']:.3f} against probability {own['probability']:.3f} in "
        f"[{own['lower']:.3f}, {own['upper']:.3f}] over {message['scored']:,} scored of the first "
        f"{message['n']:,} learned"
    )
