"""`dlq`: show the rejected input."""

from typing import Annotated

import typer

from workers.cli.common import Config, Feed, Json, Redis, feed_store, show


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("dlq")(dlq)


def dlq(
    feed: Feed,
    redis: Redis = None,
    config: Config = None,
    json: Json = False,
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="How many, at most.")] = 10,
) -> None:
    """Show the last rejected entries: ID, reason code, reason, size, and how each began."""
    import orjson

    from workers.printable import printable, printable_json
    from workers.reading.answers import newest
    from workers.reading.registry import require

    with feed_store(feed, redis, config) as store:
        require(store)
        for entry_id, flat in newest(store, store.keys.dlq, count):
            fields = dict(zip(flat[::2], flat[1::2], strict=True))
            shown = {"id": entry_id.decode()} | {
                printable(name): value.decode(errors="backslashreplace")
                for name, value in fields.items()
            }
            if json:
                print(printable_json(orjson.dumps(shown)))
            else:
                code, reason, size, head = (
                    shown.get(name, "") for name in ("code", "reason", "size", "head")
                )
                show(f"{shown['id']}  {code}: {reason}  {size} bytes: {head[:60]!r}")
