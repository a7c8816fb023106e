"""`export`: write the answers of a feed as a table."""

import sys
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

from typer import Argument

from workers.cli.common import (
    Overwrite,
    RedisOptions,
    Source,
    note,
    opt,
    replacing,
    replacing_bytes,
)
from workers.errors import writing
from workers.text import counted

if TYPE_CHECKING:
    from workers.broker.feed_reader import FeedReader

STANDARD_OUTPUT = Path("-")


@dataclass(frozen=True, slots=True)
class TableOptions:
    """Options of the table."""

    features: Annotated[
        bool, opt("--features", "Add a column for each feature, as it was sent.")
    ] = False
    overwrite: Overwrite = False


def export(
    source: Source,
    target: Annotated[
        Path,
        Argument(
            metavar="[FILE]",
            help="Where to; - is standard output. A name that ends in .parquet is written as "
            "Parquet, which needs pyarrow (pip install 'online-svm[archive]').",
        ),
    ] = STANDARD_OUTPUT,
    *,
    redis: RedisOptions,
    table: TableOptions,
) -> None:
    """Write the kept answers of a feed as a table: a row an answer, a column a number.

    true_label is the label that was learned, is_right 1 or 0. Both are blank where the entry had
    no label, and where its input was trimmed since (a worker with --keep-input keeps it). In CSV,
    text that begins like a formula (= + - @) and is no number gets a ' in front, and a control
    character is written as an escape.
    """
    from workers.recording.reader import reading

    with reading(source, redis.answered) as store:
        _export(store, target, table)


def _export(store: "FeedReader", target: Path, options: TableOptions) -> None:
    from workers.cli.progress import doing
    from workers.offline.answer_table import AnswerTable, write_parquet

    total = store.length(store.keys.out)
    with doing("exporting", total) as progress, writing(target):
        table = AnswerTable(store, options.features)
        if target.suffix.lower() == ".parquet":
            with replacing_bytes(target, options.overwrite) as raw:
                count = write_parquet(raw, table, progress)
        else:
            with _opened(target, options.overwrite) as file:
                count = table.write(file, progress)
    if table.trimmed:
        note(
            f"the input of {counted(table.trimmed, 'answer')} is no longer kept: true_label and "
            "is_right are blank there; online-svm worker --keep-input keeps it"
        )
    note(f"{counted(count, 'answer')} exported")


def _opened(path: Path, overwrite: bool) -> AbstractContextManager[TextIO]:
    return nullcontext(sys.stdout) if path == STANDARD_OUTPUT else replacing(path, overwrite)
