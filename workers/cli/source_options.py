"""Options to read a source, shared by `push`, `verify` and `backtest`."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Annotated, Literal

from typer import Option
from typing_extensions import override

from workers.cli.common import note, opt
from workers.text import counted

if TYPE_CHECKING:
    from workers.push.preview import LabelSpellings, TableFinding
    from workers.push.reading import Reading
    from workers.push.rows import Layout, Row


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """Options to read a file, standard input or a named data set."""

    format: Annotated[
        Literal["csv", "jsonl", "libsvm", "arff", "xlsx", "parquet"] | None,
        Option(help="Default: by the file's extension; jsonl for standard input."),
    ] = None
    sheet: Annotated[
        str | None,
        opt("NAME", "Sheet of an Excel workbook; default the first visible one with a table."),
    ] = None
    flatten: Annotated[
        bool,
        opt(
            "--flatten",
            "Send the parts of objects in JSON lines as features: user.age of "
            '{"user": {"age": 35}}.',
        ),
    ] = False
    label: Annotated[
        str | None, opt("COLUMN", "Column of the label; default the last one, y in JSON lines.")
    ] = None
    no_header: Annotated[bool, opt("--no-header", "A CSV file begins with data: send arrays.")] = (
        False
    )
    features: Annotated[
        int | None, Option(min=1, max=100_000, help="Features of a LIBSVM source.")
    ] = None
    drop: Annotated[list[str] | None, opt("COLUMN", "Column to leave out; may be repeated.")] = None
    text: Annotated[
        list[str] | None,
        opt("COLUMN", "Column of a table that is text, as codes like 1E5; may be repeated."),
    ] = None
    id: Annotated[
        str | None,
        opt(
            "COLUMN",
            "Column of the producer's id, which the answer repeats; id in JSON lines with x.",
        ),
    ] = None
    time: Annotated[
        str | None,
        opt(
            "COLUMN",
            "Column of the time of an example, for a feed whose horizon counts time: ISO "
            "8601, or seconds or milliseconds since 1970; time in JSON lines with x.",
        ),
    ] = None
    score: Annotated[
        str | None,
        opt(
            "COLUMN",
            "Column of another model's score, for a feed with --scores; score in JSON lines "
            "with x.",
        ),
    ] = None
    na: Annotated[
        list[str] | None,
        opt(
            "TEXT",
            "Text that stands for a missing value, beside an empty cell and ?; may be "
            "repeated. A missing feature is sent as null, which is a gap; in an array only a "
            "worker with --missing mean takes it. A row without a label is answered, not learned.",
        ),
    ] = None
    shuffle: Annotated[
        int | None,
        opt("SEED", "Push in the order of numpy.random.default_rng(SEED).permutation(n)."),
    ] = None
    decimal: Annotated[
        Literal[",", "."] | None,
        opt("SIGN", "Decimal sign of a table, comma or point, where its values do not prove one."),
    ] = None
    day_first: Annotated[
        bool | None,
        opt(
            "--day-first/--month-first",
            "Whether 01/02/2025 is the first of February, where the table does not prove it.",
        ),
    ] = None
    time_unit: Annotated[
        Literal[
            "date", "excel", "minutes", "seconds", "milliseconds", "microseconds", "nanoseconds"
        ]
        | None,
        Option(help="What a number in --time counts; date is one such as 20251231."),
    ] = None
    zone: Annotated[
        str | None,
        opt("NAME", "Time zone of times that have none, as Europe/Berlin; default UTC."),
    ] = None
    encoding: Annotated[
        str | None,
        opt("NAME", "Encoding of a CSV file; default Unicode if it is that, else Windows-1252."),
    ] = None
    label_case: Annotated[
        Literal["lower", "keep"] | None,
        Option(help="lower makes labels lower case, so that Fraud and FRAUD are one class."),
    ] = None

    def reading(self) -> "Reading":
        """Return the options for a reader of `workers.push`."""
        from workers.push.reading import Reading

        return Reading(
            format=self.format, label=self.label, header=not self.no_header, features=self.features,
            drop=tuple(self.drop or ()), id=self.id, texts=tuple(self.text or ()),
            na=tuple(self.na or ()), time=self.time, score=self.score, decimal=self.decimal,
            order=None if self.day_first is None else "dmy" if self.day_first else "mdy",
            time_unit=self.time_unit, zone=self.zone, encoding=self.encoding,
            label_case=self.label_case, sheet=self.sheet, flatten=self.flatten,
        )  # fmt: skip

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

    def summarized(
        self,
        rows: "Iterable[Row]",
        layout: "Layout",
        chunk: int,
        full: bool = False,
        tell: "Callable[[TableFinding], None]" = lambda found: note(str(found)),
    ) -> "Iterable[Row]":
        """Tell how the first rows are read, if `full` how each column is; return all rows.

        Findings of later rows are shown as they come, or after the last one. At most one chunk is
        read ahead: rows of a live source must not wait for later ones.
        """
        from workers.push.columns import MAX_ROWS, head_of, summary
        from workers.push.preview import LabelSpellings, columns

        remaining = iter(rows)
        head = head_of(remaining, min(MAX_ROWS, chunk))
        those = (
            "the first row is" if len(head) == 1 else f"the first {counted(len(head), 'row')} are"
        )
        note(f"{those} read like this:" if head else "the source has no rows")
        shown = summary(head, layout)
        for found in shown:
            tell(found)
        for line in columns(head, layout) if full else ():
            note(line)
        labels = LabelSpellings(row.y for row in head if row.y is not None)
        return chain(head, watched(remaining, layout, labels, tell, len(head), shown))


def watched(
    rows: "Iterable[Row]",
    layout: "Layout",
    labels: "LabelSpellings",
    tell: "Callable[[TableFinding], None]",
    before: int = 0,
    shown: "Sequence[TableFinding]" = (),
) -> "Iterator[Row]":
    """Yield rows, `before` of which were read; tell what they show beyond what was `shown`."""
    from workers.push.preview import at_end

    for at, row in enumerate(rows, before + 1):
        if row.y is not None and (other := labels.finding_of(row.y, at)) is not None:
            tell(other)
        yield row
    for found in at_end(layout, shown):
        tell(found)


@dataclass(frozen=True, slots=True)
class PushedSourceOptions(SourceOptions):
    """Options to read a source for a feed; rows may lack labels."""

    no_label: Annotated[bool, opt("--no-label", "Every column is a feature.")] = False
    slice: Annotated[
        list[str] | None,
        opt(
            "COLUMN",
            "Column of text that is sent as a slice and is no feature, for a feed with "
            "--slices COLUMN; may be repeated. s in JSON lines with x.",
        ),
    ] = None

    @override
    def reading(self) -> "Reading":
        # Not super(): `slots=True` makes a new class, but super() refers to the original one.
        known = SourceOptions.reading(self)
        return replace(known, labelled=not self.no_label, slices=tuple(self.slice or ()))
