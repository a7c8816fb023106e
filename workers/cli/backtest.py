"""`backtest`: several configurations over one recorded history."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from workers.cli.backtest_source import Entries, FileOptions, opened_source
from workers.cli.common import Config, Json, Redis, note, show, writing
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
)
from workers.plural import counted

if TYPE_CHECKING:
    from workers.history.backtest.configurations import Configuration
    from workers.history.backtest.kept_results import KeptResults
    from workers.history.backtest.run import Compute, Finished

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
    from workers.history.backtest import configurations as compared
    from workers.history.backtest.kept_results import KeptResults

    _check(curves, ray, processes)
    sections = compared.sections_of(configs, set or ())
    given = known.load({} if redis is None else {"redis": redis}, config, is_whole=False)
    kept = None if out is None else KeptResults(out)
    how = FileOptions(
        format, label, prob, no_header, features, drop, id, na, arrays, shuffle, data_dir
    )
    with opened_source(source, feed, how, limit, redis, config, given) as (base, entries):
        chosen = compared.configurations(base, sections)
        finished = _finished(chosen, entries, kept, processes, ray, answers)
    _tell(finished, json)
    if curves is not None:
        _draw(finished, curves)


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
    from workers.placed.connection import connected

    with connected(ray) as module:
        from workers.placed.backtest import RayTasks

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


def _draw(finished: "Sequence[Finished]", curves: Path) -> None:
    from workers.history.backtest.curves import draw_curves

    with writing(curves):
        draw_curves(finished, curves)
    note(f"curves in {curves}")


def _check(curves: Path | None, ray: str | None, processes: int | None) -> None:
    """Refuse options that could not be followed, before anything is computed.

    Raises
    ------
    BadConfiguration
        For a picture of another kind, one in no directory, or two ways to share the work.
    """
    from workers.errors import BadConfiguration

    if ray is not None and processes is not None:
        raise BadConfiguration("give --processes or --ray, not both: Ray knows its processors")
    if curves is None:
        return
    if curves.suffix.lower() != ".png":
        raise BadConfiguration(f"--curves {curves}: give a name that ends in .png")
    if not curves.parent.is_dir():
        raise BadConfiguration(f"--curves {curves}: there is no directory {curves.parent}")
