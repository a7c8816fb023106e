"""`ask`: send requests to the scorers of a feed, and print their answers."""

import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Annotated

import typer

from workers.cli.common import Config, Feed, Redis

_AT_ONCE = 100  # lines of standard input asked together


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("ask")(ask)


def ask(
    feed: Feed,
    rows: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[X]...",
            help="Features as JSON, such as '[0.5, 1]'; default one row a line of standard input.",
            show_default=False,
        ),
    ] = None,
    redis: Redis = None,
    config: Config = None,
    timeout: Annotated[
        float, typer.Option(min=0.001, max=3600, help="Seconds to wait for an answer.")
    ] = 5.0,
) -> None:
    """Ask the scorers of a feed, and print an answer a line: JSON, with the state that gave it.

    The exit code is 1 if an answer did not come in time.
    """
    from workers.cli.common import redis_url
    from workers.fleet.scorer.asker import Asker
    from workers.printable import printable_json

    asker, missing = Asker(redis_url(redis, config), feed), 0
    try:
        for some in _pages(rows):
            for answer in asker.ask([row.encode() for row in some], timeout):
                missing += answer is None
                print("null" if answer is None else printable_json(answer.text))
            sys.stdout.flush()
    finally:
        asker.close()
    if missing:
        print(f"{missing} without an answer: is a scorer of {feed} running?", file=sys.stderr)
        raise typer.Exit(1)


def _pages(rows: Sequence[str] | None) -> Iterator[list[str]]:
    """Yield the rows, a page at a time."""
    given = iter(rows) if rows else (line.strip() for line in sys.stdin)
    while page := list(islice((row for row in given if row), _AT_ONCE)):
        yield page
