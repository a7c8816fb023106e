"""`backtest`: several configurations over one recorded history."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from workers.cli.common import (
    Json,
    RedisOptions,
    check_picture,
    note,
    opt,
    replacing,
    show,
    show_json,
)
from workers.cli.source_options import SourceOptions
from workers.errors import BadConfiguration, EmbeddedNotRunning, writing
from workers.reading.facts import cost_text
from workers.text import counted

if TYPE_CHECKING:
    from workers.config.settings import WorkerSettings
    from workers.offline.backtest.prequential import Configuration
    from workers.offline.backtest.run import Compute, Finished


Entry = tuple[bytes, list[bytes]]  # ID, empty for a row of a file; and fields
Entries = Iterable[Entry]

SUMMARY_ROWS = 1000  # rows that are read for the summary of the columns


@dataclass(frozen=True, slots=True)
class HistoryOptions(SourceOptions):
    """Options to read a history; those of files are refused for a feed or its recording."""

    limit: Annotated[int | None, Option(min=1, help="Entries to answer, at most.")] = None

    def entries(self, source: str) -> Iterator[Entry]:
        """Yield the entries that `push` would send; first print how the source is read."""
        from workers.push.ingest import encoded
        from workers.push.rows import Layout
        from workers.push.sources import rows

        layout = Layout()
        chosen, _ = self.chosen(rows(source, self.reading(), layout), limit=self.limit)
        for row in self.summarized(chosen, layout, SUMMARY_ROWS):
            yield b"", encoded(row)

    def refuse_file_options(self, source: str) -> None:
        """Raise BadConfiguration if an option for files was given."""
        for option in fields(SourceOptions):
            given = getattr(self, option.name)
            if given not in (None, False) or (given is False and option.name == "day_first"):
                raise BadConfiguration(
                    f"--{option.name.replace('_', '-')} is for a file, and {source} is none: it is "
                    "taken for a feed, whose entries are answered as they are"
                )


@contextmanager
def opened_source(
    source: str, how: HistoryOptions, redis: RedisOptions, given: "WorkerSettings"
) -> "Iterator[tuple[WorkerSettings, Entries]]":
    """Yield the settings of a recording, a feed or a file (`given` for a file), and its entries."""
    from workers.recording.file import is_recording

    if not is_recording(source) and _is_readable(source):
        yield given, how.entries(source)
        return
    how.refuse_file_options(source)
    with _feed_history(source, redis, given) as (base, entries):
        yield base, islice(entries, how.limit)


def _is_readable(source: str) -> bool:
    """Return whether `push` would read a source: a file, standard input, or a data set by name."""
    from workers.push.datasets import NAMES
    from workers.push.sources import comes_with_river, looks_like_a_path

    is_file = source == "-" or Path(source).exists() or looks_like_a_path(source)
    return is_file or source in NAMES or comes_with_river(source)


@contextmanager
def _feed_history(
    name: str, redis: RedisOptions, given: "WorkerSettings"
) -> "Iterator[tuple[WorkerSettings, Entries]]":
    from workers.feed.keys import FeedKeys
    from workers.offline.backtest.history import FeedHistory
    from workers.recording.file import is_recording
    from workers.recording.reader import reading

    if not is_recording(name):
        FeedKeys(name)
    try:
        with reading(name, redis.store) as store:
            history = FeedHistory(store)
            yield history.settings(given), _printing_counts(history.entries(), history, name)
    except EmbeddedNotRunning as error:
        raise BadConfiguration(
            f"{name}: no such file or data set, so it would be a feed; {error}"
        ) from None


def _printing_counts(entries: Iterator[Entry], history: Any, name: str) -> Iterator[Entry]:
    """Yield the entries; at the end print how many earlier ones are missing."""
    yield from entries
    if history.missing.trimmed:
        oldest = counted(history.missing.trimmed, "oldest entry", "oldest entries")
        note(
            f"feed {name} no longer has its {oldest}: the history begins after them (a worker with "
            "--keep-input keeps all)"
        )
    if history.missing.erased:
        note(f"feed {name} lacks {history.missing.erased_shown}: the history is without them")


@dataclass(frozen=True, slots=True)
class ConfigurationOptions:
    """The configurations that are compared."""

    configs: Annotated[
        Path | None,
        opt(
            "FILE",
            "TOML file with a section for each configuration: [name], then settings of the "
            "predictor. The first is the base: the others change what they name of it.",
        ),
    ] = None
    set: Annotated[
        list[str] | None,
        opt(
            "NAME:KEY=VALUE,...",
            "One more configuration, or more settings for one; may be repeated. Without "
            "--configs the base is named base.",
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Files of the results, number of processes, and the file for costs of recorded answers."""

    out: Annotated[
        Path | None,
        opt(
            "DIR", "Keep the result of each finished configuration there; the same command goes on."
        ),
    ] = None
    curves: Annotated[Path | None, opt("FILE.png", "Draw cumulative log loss and reliability.")] = (
        None
    )
    answers: Annotated[
        Path | None,
        opt(
            "DIR",
            "Answer once more and write the answers of each configuration there, as NAME.csv "
            "in the form of export: online-svm report reads it.",
        ),
    ] = None
    processes: Annotated[
        int | None,
        Option(
            min=1,
            max=1024,
            metavar="N",
            help="Configurations answered at a time; default one a processor.",
        ),
    ] = None
    ray: Annotated[
        str | None,
        opt("HOST:PORT", "Answer them on a Ray cluster, one a processor: its head, or auto."),
    ] = None
    costs: Annotated[
        Path | None,
        opt(
            "FILE",
            "Tell what the recorded answers of a feed would have cost: a TOML file with a "
            "section for each matrix, [name.label] and below it action = cost. Nothing is "
            "answered.",
        ),
    ] = None


def backtest(
    source: Annotated[
        str,
        Argument(
            metavar="FILE|FEED",
            help="What push takes: a file, - for standard input, a data set by name. A file of "
            "`backup`. Else a feed, of which the kept input is read.",
        ),
    ],
    *,
    compared: ConfigurationOptions,
    how: RunOptions,
    json: Json = False,
    redis: RedisOptions,
    history: HistoryOptions,
) -> None:
    """Answer one history under several configurations, each example before it is learned.

    Settings that no configuration names come from the feed, or else from the sources of a worker:
    --config, the environment, the defaults. A file needs no Redis.
    """
    from workers.config.settings import load
    from workers.offline.backtest.configurations import configurations, sections_of

    if how.costs is not None:
        if compared != ConfigurationOptions() or how != RunOptions(costs=how.costs):
            raise BadConfiguration("--costs answers nothing: leave out the other options")
        _print_costs(source, how.costs, redis, json)
        return
    _check(how)
    sections = sections_of(compared.configs, compared.set or (), has_base=history.score is None)
    given = load(redis.flags, redis.config, is_whole=False)
    with opened_source(source, history, redis, given) as (base, entries):
        chosen = configurations(base, sections)
        finished = _finished(chosen, entries, how)
    _print_results(finished, json)
    if how.curves is not None:
        _draw(finished, how.curves)


def _print_costs(feed: str, file: Path, redis: RedisOptions, json: bool) -> None:
    from workers.cli.progress import doing
    from workers.offline.backtest.configurations import read_sections
    from workers.offline.decision_costs import decision_costs
    from workers.recording.reader import reading

    sections = read_sections(file)
    with reading(feed, redis.answered) as store, doing("reading the answers"):
        found = decision_costs(store, sections)
    if json:
        costs = {name: asdict(report) for name, report in found.items()}
        show_json({"feed": feed, "costs": costs})
        return
    for name, report in found.items():
        show(f"{name}: {cost_text(asdict(report))}")
        show("  " + ", ".join(f"{action} {count:,}" for action, count in report.taken.items()))


def _finished(
    chosen: "Sequence[Configuration]", entries: Entries, how: RunOptions
) -> "list[Finished]":
    """Record the history and answer it; after Ctrl-C print how to continue."""
    from workers.cli.progress import backtest_progress, doing
    from workers.offline.backtest.answers import check_labels
    from workers.offline.backtest.history import record
    from workers.offline.backtest.kept_results import KeptResults
    from workers.offline.backtest.run import BacktestInterrupted, run

    kept = None if how.out is None else KeptResults(how.out)
    if how.answers is not None:
        check_labels(chosen)
    with TemporaryDirectory(prefix="online-svm-backtest-") as place:
        with doing("reading the entries"):
            recording = record(entries, Path(place) / "history")
        note(f"{counted(recording.entries, 'entry', 'entries')}, {recording.digest[:12]}")
        try:
            with (
                _tasks(how.ray) as compute,
                backtest_progress([each.name for each in chosen], recording.entries) as progress,
            ):
                finished = run(chosen, recording, kept, how.processes, progress, compute)
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
    from workers.offline.backtest.answers import write_answers
    from workers.offline.backtest.history import read

    for configuration in chosen:
        path = directory / f"{configuration.name}.csv"
        with writing(path):
            directory.mkdir(exist_ok=True)
            with replacing(path, overwrite=True) as target:
                count = write_answers(configuration, read(history), target)
        note(f"{counted(count, 'answer')} in {path}")


@contextmanager
def _tasks(ray: str | None) -> "Iterator[Compute | None]":
    """Connect to the Ray cluster that is named, if any; yield its executor of tasks."""
    if ray is None:
        yield None
        return
    from workers.ray_fleet.connection import connected

    with connected(ray) as module:
        from workers.ray_fleet.backtest import RayTasks

        yield RayTasks(module)


def _print_results(finished: "Sequence[Finished]", json: bool) -> None:
    if not json:
        from workers.offline.backtest.table import table

        for line in table(finished):
            show(line)
        return
    for each in finished:
        plain = {
            "name": each.configuration.name,
            "changes": each.configuration.changes,
            "settings": each.configuration.settings,
            "was_kept": each.was_kept,
        }
        show_json(plain | each.result.model_dump(mode="json"))


def _draw(finished: "Sequence[Finished]", curves: Path) -> None:
    from workers.offline.backtest.curves import draw_curves

    with writing(curves):
        draw_curves(finished, curves)
    note(f"curves in {curves}")


def _check(how: RunOptions) -> None:
    """Raise BadConfiguration for options that cannot work, before anything is computed."""
    if how.ray is not None and how.processes is not None:
        raise BadConfiguration("give --processes or --ray, not both: Ray knows its processors")
    if how.curves is not None:
        check_picture("--curves", how.curves)
