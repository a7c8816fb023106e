"""Options by which a source is read: `push`, `verify` and `backtest` share them."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from typing_extensions import override

from workers.cli.common import DataDir, note

if TYPE_CHECKING:
    from workers.push.rows import Layout, Reading, Row


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """How a file, standard input or a data set by name is read."""

    format: Annotated[
        Literal["csv", "jsonl", "libsvm", "arff"] | None,
        typer.Option(
            help="Default: by the file's extension; jsonl for standard input.", show_default=False
        ),
    ] = None
    label: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column of the label; default the last one, y in JSON lines.",
            show_default=False,
        ),
    ] = None
    prob: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column of an annotator's probability of the second class, where there is no "
            "label; p in JSON lines. For learner psvm.",
            show_default=False,
        ),
    ] = None
    no_header: Annotated[
        bool, typer.Option("--no-header", help="A CSV file begins with data: send arrays.")
    ] = False
    features: Annotated[
        int | None,
        typer.Option(min=1, max=100_000, help="Features of a LIBSVM source.", show_default=False),
    ] = None
    drop: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN", help="Column to leave out; may be repeated.", show_default=False
        ),
    ] = None
    id: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column of the producer's id, which the answer repeats; id in JSON lines with x.",
            show_default=False,
        ),
    ] = None
    time: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column of the time of an example, for a feed whose horizon counts time: ISO "
            "8601, or seconds or milliseconds since 1970; time in JSON lines with x.",
            show_default=False,
        ),
    ] = None
    na: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEXT",
            help="Text that stands for a missing value, beside an empty cell and ?; may be "
            "repeated. A missing feature is sent as null, which is a gap; in an array only a "
            "worker with --missing mean takes it. A row without a label is answered, not learned.",
            show_default=False,
        ),
    ] = None
    arrays: Annotated[
        bool,
        typer.Option("--arrays", help="Send columns as an array in their order, without names."),
    ] = False
    shuffle: Annotated[
        int | None,
        typer.Option(
            metavar="SEED",
            help="Push in the order of numpy.random.default_rng(SEED).permutation(n).",
            show_default=False,
        ),
    ] = None
    data_dir: DataDir = None

    def reading(self) -> "Reading":
        """Return the options as a reader takes them."""
        from workers.push.rows import Reading

        return Reading(
            format=self.format,
            label=self.label,
            header=not self.no_header,
            features=self.features,
            data_dir=self.data_dir,
            prob=self.prob,
            drop=tuple(self.drop or ()),
            id=self.id,
            na=tuple(self.na or ()),
            time=self.time,
            named=not self.arrays,
        )

    def chosen(
        self, rows: "Iterable[Row]", skip: int = 0, limit: int | None = None
    ) -> "tuple[Iterable[Row], int | None]":
        """Return the rows to push, and their number if it is known."""
        from workers.push.ingest import shuffled

        end = None if limit is None else skip + limit
        if self.shuffle is None:
            return islice(rows, skip, end), limit
        held = shuffled(rows, self.shuffle)[skip:end]
        return held, len(held)

    def told(self, rows: "Iterable[Row]", layout: "Layout", chunk: int) -> "Iterable[Row]":
        """Print how the first rows are read; return all rows.

        No more rows are read than one chunk: rows of a live source must not wait for later ones.
        """
        from workers.push.source_summary import HEAD, head_of, summary

        remaining = iter(rows)
        head = head_of(remaining, min(HEAD, chunk))
        for line in summary(head, layout, self.arrays):
            note(line)
        return chain(head, remaining)


@dataclass(frozen=True, slots=True)
class PushedSourceOptions(SourceOptions):
    """How a source is read that a feed gets, where rows may be without labels."""

    no_label: Annotated[bool, typer.Option("--no-label", help="Every column is a feature.")] = False
    slice: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="Column of text that is sent as a slice and is no feature, for a feed with "
            "--slices COLUMN; may be repeated. s in JSON lines with x.",
            show_default=False,
        ),
    ] = None

    @override
    def reading(self) -> "Reading":
        # Not super(): a dataclass with slots is another class than the one in its methods.
        known = SourceOptions.reading(self)
        return replace(known, labelled=not self.no_label, slices=tuple(self.slice or ()))
