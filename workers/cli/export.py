"""`export`: write the answers of a feed as a table, or all of it as Parquet files."""

from pathlib import Path
from typing import Annotated

import typer

from workers.cli.common import Config, Feed, Json, Redis, feed_store, redis_url
from workers.cli.export_archive import ArchiveOptions, export_archive
from workers.cli.export_table import STANDARD_OUTPUT, export_table

_PARQUET = "Parquet files (--to)"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("export")(export)


def export(
    feed: Feed,
    target: Annotated[
        Path, typer.Argument(metavar="[FILE]", help="Where to; - is standard output.")
    ] = STANDARD_OUTPUT,
    redis: Redis = None,
    config: Config = None,
    features: Annotated[
        bool, typer.Option("--features", help="Add a column for each feature, as it was sent.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace FILE if it is there.")
    ] = False,
    raw: Annotated[
        bool,
        typer.Option(
            "--raw",
            help="Write text as it is. Without it, text that begins like a formula (= + - @) and "
            "is no number gets a ' in front, and a control character is written as an escape.",
        ),
    ] = False,
    to: Annotated[
        Path | None,
        typer.Option(
            "--to",
            metavar="DIR",
            help="Write answers, labels, reports, alarms and input as Parquet files by day: an "
            "archive, or what is new to one. Needs pyarrow (pip install 'online-svm[archive]').",
            show_default=False,
            rich_help_panel=_PARQUET,
        ),
    ] = None,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow",
            help="Go on with what comes, until Ctrl-C or SIGTERM.",
            rich_help_panel=_PARQUET,
        ),
    ] = False,
    every: Annotated[
        float,
        typer.Option(
            "--every",
            metavar="SECONDS",
            min=0.0,
            help="With --follow: write what is new after so long, at the latest.",
            rich_help_panel=_PARQUET,
        ),
    ] = 30.0,
    group: Annotated[
        str,
        typer.Option(
            "--group",
            help="Consumer group of the answers that is moved behind what is on disk. A worker "
            "with --downstream block trims nothing before the group downstream was.",
            rich_help_panel=_PARQUET,
        ),
    ] = "downstream",
    take_group: Annotated[
        bool,
        typer.Option(
            "--take-group",
            help="Take that group from an archive that was given up.",
            rich_help_panel=_PARQUET,
        ),
    ] = False,
    accept_gap: Annotated[
        bool,
        typer.Option(
            "--accept-gap",
            help="Go on where entries were trimmed before they came here.",
            rich_help_panel=_PARQUET,
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Write the kept answers of a feed as CSV: a row an answer, a column a number.

    true_label is the label that was learned, is_right 1 or 0. Both are blank where the entry had
    no label, and where its input was trimmed since (a worker with --keep-input keeps it).

    With --to write Parquet files instead, each entry once whatever happens: the files say where to
    go on. --json then prints what was added.
    """
    from workers.errors import BadConfiguration
    from workers.reading.answers import check_known
    from workers.reading.registry import require

    if to is not None:
        if target != STANDARD_OUTPUT or features or overwrite or raw:
            raise BadConfiguration(
                "FILE, --features, --overwrite and --raw are of the CSV table: "
                "leave them out, or --to"
            )
        options = ArchiveOptions(follow, every, group, take_group, accept_gap)
        export_archive(redis_url(redis, config), feed, to, options, json)
        return
    if follow or take_group or accept_gap or json:
        raise BadConfiguration(
            "--follow, --take-group, --accept-gap and --json are of Parquet files: give --to DIR"
        )
    with feed_store(feed, redis, config) as store:
        require(store)
        check_known(store)
        export_table(store, target, features, overwrite, raw)
