"""`backtest`: several configurations over one recorded history."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from workers.cli.common import Config, Json, Redis, feed_store, note, show, writing
from workers.cli.reading import (
    Arrays,
    DataDir,
    Drop,
    Format,
    IdColumn,
    Label,
    Na,
    NoHeader,
    Prob,
    Shuffle,
    Width,
    reading_of,
    selected,
    with_summary,
)
from workers.plural import counted

if TYPE_CHECKING:
    from workers.config.settings import WorkerSettings
    from workers.history.backtest.configurations import Configuration
    from workers.history.backtest.kept_results import KeptResults
    from workers.history.backtest.run import Compute, Finished
    from workers.push.rows import Reading

Entries = Iterable[Sequence[bytes]]

HEAD = 1000
"""Rows that are looked at before it is told how they are read."""


Source = Annotated[
    str,
    typer.Argument(
        metavar="FILE|FEED|DIR",
        help="What push takes: a file, - for standard input, a data set by name. An archive, a "
        "directory. Else a feed, of which the kept input is read.",
        show_default=False,
    ),
]
Configs = Annotated[
    Path | None,
    typer.Option(
        "--configs",
        metavar="FILE",
        help="TOML file with a section for each configuration: [name], then settings of the "
        "predictor. The first is the base: the others change what they name of it.",
        show_default=False,
    ),
]
Changes = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME:KEY=VALUE,...",
        help="One more configuration, or more settings for one; may be repeated. Without "
        "--configs the base is named base.",
        show_default=False,
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="DIR",
        help="Keep the result of each finished configuration there; the same command goes on.",
        show_default=False,
    ),
]
Curves = Annotated[
    Path | None,
    typer.Option(
        "--curves",
        metavar="FILE.png",
        help="Draw cumulative log loss and reliability.",
        show_default=False,
    ),
]
Answers = Annotated[
    Path | None,
    typer.Option(
        "--answers",
        metavar="DIR",
        help="Answer once more and write the answers of each configuration there, as NAME.csv in "
        "the form of export: online-svm report reads it.",
        show_default=False,
    ),
]
Processes = Annotated[
    int | None,
    typer.Option(
        "--processes",
        min=1,
        max=1024,
        metavar="N",
        help="Configurations answered at a time; default one a processor.",
        show_default=False,
    ),
]
Ray = Annotated[
    str | None,
    typer.Option(
        "--ray",
        metavar="HOST:PORT",
        help="Answer them on a Ray cluster, one a processor: its head, or auto.",
        show_default=False,
    ),
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("backtest")(backtest)


def backtest(
    source: Source,
    configs: Configs = None,
    set: Changes = None,
    out: Out = None,
    curves: Curves = None,
    answers: Answers = None,
    processes: Processes = None,
    ray: Ray = None,
    json: Json = False,
    feed: Annotated[
        bool, typer.Option("--feed", help="It is a feed, though a file or data set has the name.")
    ] = False,
    redis: Redis = None,
    config: Config = None,
    format: Format = None,
    label: Label = None,
    prob: Prob = None,
    no_header: NoHeader = False,
    features: Width = None,
    drop: Drop = None,
    id: IdColumn = None,
    na: Na = None,
    arrays: Arrays = False,
    shuffle: Shuffle = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Entries to answer, at most.", show_default=False)
    ] = None,
    data_dir: DataDir = None,
) -> None:
    """Answer one history under several configurations, each example before it is learned.

    Settings that no configuration names are those of the feed, or else those that a worker would
    have: --config, the environment, the defaults. A file needs no Redis.
    """
    from workers.config import settings as known
    from workers.errors import BadConfiguration
    from workers.history.archive.layout import is_archive
    from workers.history.backtest import configurations as compared
    from workers.history.backtest.kept_results import KeptResults

    if curves is not None:
        _check(curves)
    if ray is not None and processes is not None:
        raise BadConfiguration("give --processes or --ray, not both: Ray knows its processors")
    sections = compared.sections_of(configs, set or ())
    given = known.load({} if redis is None else {"redis": redis}, config, is_whole=False)
    kept = None if out is None else KeptResults(out)
    archived = not feed and is_archive(Path(source))
    if archived or feed or not _is_readable(source):
        for_files = {
            "--format": format, "--label": label, "--prob": prob, "--no-header": no_header,
            "--features": features, "--drop": drop, "--id": id, "--na": na, "--arrays": arrays,
            "--shuffle": shuffle, "--data-dir": data_dir,
        }  # fmt: skip
        _refuse(source, for_files)
        opened = (
            nullcontext(_archived(source, given))
            if archived
            else _feed_history(source, redis, config, given, feed)
        )
        with opened as (base, entries):
            chosen = compared.configurations(base, sections)
            finished = _finished(chosen, islice(entries, limit), kept, processes, ray, answers)
    else:
        chosen = compared.configurations(given, sections)
        reading = reading_of(
            format, label, prob, False, no_header, features, drop, id, na, data_dir, None
        )
        entries = _source_history(source, reading, arrays, shuffle, limit)
        finished = _finished(chosen, entries, kept, processes, ray, answers)
    _tell(finished, json)
    if curves is not None:
        from workers.history.backtest.curves import draw_curves

        with writing(curves):
            draw_curves(finished, curves)
        note(f"curves in {curves}")


def _is_readable(source: str) -> bool:
    """Return whether `push` would read a source: a file, standard input, or a data set by name."""
    from workers.push.datasets import NAMES
    from workers.push.named_sets import comes_with_river

    looks_like_a_path = "/" in source or Path(source).suffix != ""
    is_there = source == "-" or Path(source).exists() or looks_like_a_path
    return is_there or source in NAMES or comes_with_river(source)


def _source_history(
    source: str, reading: "Reading", arrays: bool, shuffle: int | None, limit: int | None
) -> Entries:
    """Return the entries that `push` would send of a source; say how it is read."""
    from workers.push.ingest import encoded
    from workers.push.rows import Layout
    from workers.push.sources import rows

    layout = Layout()
    chosen, _ = selected(rows(source, reading, layout), shuffle, 0, limit)
    return (encoded(row, arrays) for row in with_summary(chosen, layout, arrays, HEAD))


@contextmanager
def _feed_history(
    name: str,
    redis: str | None,
    config: Path | None,
    given: "WorkerSettings",
    is_meant: bool,
) -> "Iterator[tuple[WorkerSettings, Entries]]":
    """Yield the settings to start from and the entries of a feed.

    Raises
    ------
    BadConfiguration
        If there is no such feed, or an option is given that is for files.
    """
    from workers.errors import BadConfiguration, EmbeddedNotRunning
    from workers.feed.keys import FeedKeys
    from workers.history.backtest.feed_history import FeedHistory

    FeedKeys(name)
    try:
        with feed_store(name, redis, config) as store:
            history = FeedHistory(store)
            yield history.settings(given), _told(history.entries(), history, name)
    except EmbeddedNotRunning as error:
        if is_meant:
            raise
        raise BadConfiguration(
            f"{name}: no such file or data set, so it would be a feed; {error}"
        ) from None


def _refuse(name: str, for_files: dict[str, Any]) -> None:
    """Raise BadConfiguration if an option for files is given where the source is none."""
    from workers.errors import BadConfiguration

    for option, value in for_files.items():
        if value not in (None, False):
            raise BadConfiguration(
                f"{option} is for a file, and {name} is none: it is taken for a feed, whose "
                "entries are answered as they are"
            )


def _archived(source: str, given: "WorkerSettings") -> "tuple[WorkerSettings, Entries]":
    """Return the settings to start from and the entries of an archive."""
    from workers.errors import BadConfiguration
    from workers.feed.stored_settings import stored_settings
    from workers.history.archive.reader import Archive
    from workers.history.backtest.recording import Identified

    archive = Archive(Path(source))
    stored = stored_settings(archive.identity.feed, archive.identity.agreement)
    if stored is None:
        raise BadConfiguration(f"{source}: is of a combination: backtest its sources")
    return given.over(*stored), (Identified(*e) for page in archive.inputs() for e in page)


def _told(entries: Iterator[list[bytes]], history: Any, name: str) -> Iterator[list[bytes]]:
    """Pass the entries on, and say at the end what is missing before them."""
    yield from entries
    if history.trimmed:
        note(
            f"feed {name} no longer has its {counted(history.trimmed, 'oldest entry', 'oldest')} "
            "entries: the history begins after them (a worker with --keep-input keeps all)"
        )


def _finished(
    chosen: "Sequence[Configuration]",
    entries: Entries,
    kept: "KeptResults | None",
    processes: int | None,
    ray: str | None,
    answers: Path | None,
) -> "list[Finished]":
    """Record the history, answer it, and say how to go on where Ctrl-C ends it."""
    from workers.cli.progress import backtest_progress
    from workers.history.backtest.answers import check_labels
    from workers.history.backtest.recording import record
    from workers.history.backtest.run import BacktestInterrupted, run

    if answers is not None:
        check_labels(chosen)
    with TemporaryDirectory(prefix="online-svm-backtest-") as place:
        recording = record(entries, Path(place) / "history")
        note(f"{counted(recording.entries, 'entry', 'entries')}, {recording.digest[:12]}")
        try:
            with (
                _tasks(ray) as compute,
                backtest_progress([one.name for one in chosen], recording.entries) as told,
            ):
                finished = run(chosen, recording, kept, processes, told, compute)
        except BacktestInterrupted as interrupted:
            done = f"{interrupted.finished} of {counted(len(chosen), 'configuration')}"
            note(
                f"interrupted: nothing was kept of {done}; with --out DIR it could go on"
                if kept is None
                else f"interrupted: {done} finished and kept in {kept.directory}; the same command "
                "goes on"
            )
            raise
        if answers is not None:
            _write_answers(chosen, recording.path, answers)
    return finished


def _write_answers(chosen: "Sequence[Configuration]", history: Path, directory: Path) -> None:
    from workers.cli.common import replacing
    from workers.history.backtest.answers import write_answers
    from workers.history.backtest.recording import read

    for one in chosen:
        path = directory / f"{one.name}.csv"
        with writing(path):
            directory.mkdir(exist_ok=True)
            with replacing(path, overwrite=True) as target:
                count = write_answers(one, read(history), target)
        note(f"{counted(count, 'answer')} in {path}")


@contextmanager
def _tasks(ray: str | None) -> "Iterator[Compute | None]":
    """Connect to a Ray cluster, if one is named; yield what computes there."""
    if ray is None:
        yield None
        return
    from workers.fleet.placed.connection import connected

    with connected(ray) as module:
        from workers.fleet.placed.backtest import RayTasks

        yield RayTasks(module)


def _tell(finished: "Sequence[Finished]", json: bool) -> None:
    if not json:
        from workers.history.backtest.table import table

        for line in table(finished):
            show(line)
        return
    import orjson

    for one in finished:
        plain = {
            "name": one.configuration.name,
            "changes": one.configuration.changes,
            "settings": one.configuration.settings,
            "was_kept": one.was_kept,
        }
        print(orjson.dumps(plain | one.result.model_dump(mode="json")).decode(), flush=True)


def _check(curves: Path) -> None:
    """Refuse a picture that could not be drawn, before anything is computed.

    Raises
    ------
    BadConfiguration
        For another kind of file, or a directory that does not exist.
    """
    from workers.errors import BadConfiguration

    if curves.suffix.lower() != ".png":
        raise BadConfiguration(f"--curves {curves}: give a name that ends in .png")
    if not curves.parent.is_dir():
        raise BadConfiguration(f"--curves {curves}: there is no directory {curves.parent}")
