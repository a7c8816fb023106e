"""`backtest`: several configurations over one recorded history."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from workers.cli.backtest_source import Entries, HistoryOptions, opened_source
from workers.cli.common import (
    Json,
    RedisOptions,
    check_picture,
    note,
    replacing,
    show,
    show_json,
    writing,
)
from workers.cli.validity_text import cost_text
from workers.plural import counted

if TYPE_CHECKING:
    from workers.history.backtest.configurations import Configuration
    from workers.history.backtest.run import Compute, Finished


@dataclass(frozen=True, slots=True)
class ConfigurationOptions:
    """The configurations that are compared."""

    configs: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="TOML file with a section for each configuration: [name], then settings of the "
            "predictor. The first is the base: the others change what they name of it.",
            show_default=False,
        ),
    ] = None
    set: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME:KEY=VALUE,...",
            help="One more configuration, or more settings for one; may be repeated. Without "
            "--configs the base is named base.",
            show_default=False,
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Where the results go, and which processors compute them."""

    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Keep the result of each finished configuration there; the same command goes on.",
            show_default=False,
        ),
    ] = None
    curves: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.png",
            help="Draw cumulative log loss and reliability.",
            show_default=False,
        ),
    ] = None
    answers: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Answer once more and write the answers of each configuration there, as NAME.csv "
            "in the form of export: online-svm report reads it.",
            show_default=False,
        ),
    ] = None
    processes: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=1024,
            metavar="N",
            help="Configurations answered at a time; default one a processor.",
            show_default=False,
        ),
    ] = None
    ray: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Answer them on a Ray cluster, one a processor: its head, or auto.",
            show_default=False,
        ),
    ] = None


def backtest(
    source: Annotated[
        str,
        typer.Argument(
            metavar="FILE|FEED|DIR",
            help="What push takes: a file, - for standard input, a data set by name. An archive, "
            "a directory. Else a feed, of which the kept input is read.",
            show_default=False,
        ),
    ],
    *,
    compared: ConfigurationOptions,
    how: RunOptions,
    costs: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Tell what the recorded answers of a feed would have cost: a TOML file with a "
            "section for each matrix, [name.label] and below it action = cost. Nothing is "
            "answered.",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
    redis: RedisOptions,
    history: HistoryOptions,
) -> None:
    """Answer one history under several configurations, each example before it is learned.

    Settings that no configuration names are those of the feed, or else those that a worker would
    have: --config, the environment, the defaults. A file needs no Redis.
    """
    from workers.config import settings as known
    from workers.errors import BadConfiguration
    from workers.history.backtest import configurations as compared_configurations

    if costs is not None:
        if compared != ConfigurationOptions() or how != RunOptions():
            raise BadConfiguration("--costs answers nothing: leave out the other options")
        _tell_costs(source, costs, redis, json)
        return
    _check(how)
    sections = compared_configurations.sections_of(compared.configs, compared.set or ())
    given = known.load(redis.flags, redis.config, is_whole=False)
    with opened_source(source, history, redis, given) as (base, entries):
        chosen = compared_configurations.configurations(base, sections)
        finished = _finished(chosen, entries, how)
    _tell(finished, json)
    if how.curves is not None:
        _draw(finished, how.curves)


def _tell_costs(feed: str, costs: Path, redis: RedisOptions, json: bool) -> None:
    """Print what the recorded answers of a feed come to under each matrix of a file."""
    from workers.history.backtest.configurations import read_sections
    from workers.history.decision_costs import decision_costs, plain
    from workers.reading.answers import check_known
    from workers.reading.registry import require

    sections = read_sections(costs)
    with redis.store(feed) as store:
        require(store)
        check_known(store)
        found = decision_costs(store, sections)
    if json:
        show_json({"feed": feed, "costs": plain(found)})
        return
    for name, report in found.items():
        show(f"{name}: {cost_text(asdict(report))}")
        show("  " + ", ".join(f"{action} {count:,}" for action, count in report.taken.items()))


def _finished(
    chosen: "Sequence[Configuration]", entries: Entries, how: RunOptions
) -> "list[Finished]":
    """Record the history, answer it, and say how to go on where Ctrl-C ends it."""
    from workers.cli.progress import backtest_progress
    from workers.history.backtest.answers import check_labels
    from workers.history.backtest.kept_results import KeptResults
    from workers.history.backtest.recording import record
    from workers.history.backtest.run import BacktestInterrupted, run

    kept = None if how.out is None else KeptResults(how.out)
    if how.answers is not None:
        check_labels(chosen)
    with TemporaryDirectory(prefix="online-svm-backtest-") as place:
        recording = record(entries, Path(place) / "history")
        note(f"{counted(recording.entries, 'entry', 'entries')}, {recording.digest[:12]}")
        try:
            with (
                _tasks(how.ray) as compute,
                backtest_progress([one.name for one in chosen], recording.entries) as told,
            ):
                finished = run(chosen, recording, kept, how.processes, told, compute)
        except BacktestInterrupted as interrupted:
            done = f"{interrupted.finished} of {counted(len(chosen), 'configuration')}"
            note(
                f"interrupted: nothing was kept of {done}; with --out DIR it could go on"
                if kept is None
                else f"interrupted: {done} finished and kept in {kept.directory}; the same command "
                "goes on"
            )
            raise
        if how.answers is not None:
            _write_answers(chosen, recording.path, how.answers)
    return finished


def _write_answers(chosen: "Sequence[Configuration]", history: Path, directory: Path) -> None:
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
    for one in finished:
        plain = {
            "name": one.configuration.name,
            "changes": one.configuration.changes,
            "settings": one.configuration.settings,
            "was_kept": one.was_kept,
        }
        show_json(plain | one.result.model_dump(mode="json"))


def _draw(finished: "Sequence[Finished]", curves: Path) -> None:
    from workers.history.backtest.curves import draw_curves

    with writing(curves):
        draw_curves(finished, curves)
    note(f"curves in {curves}")


def _check(how: RunOptions) -> None:
    """Refuse options that could not be followed, before anything is computed.

    Raises
    ------
    BadConfiguration
        For a picture of another kind, one in no directory, or two ways to share the work.
    """
    from workers.errors import BadConfiguration

    if how.ray is not None and how.processes is not None:
        raise BadConfiguration("give --processes or --ray, not both: Ray knows its processors")
    if how.curves is not None:
        check_picture("--curves", how.curves)
