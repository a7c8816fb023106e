"""Two checkouts, run by run in turn, and how much faster one is than the other.

Each runs a benchmark as its own command with its own interpreter. They take turns to begin, and a
ratio is taken within each pair: other work on the machine that lasts longer than a pair affects
both. Every run is kept in a file, so an interrupted comparison continues.
"""

import math
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from scipy import stats

from scripts.bench.harness import ROOT
from scripts.bench.kept import KeptLines
from scripts.bench.report import Result
from scripts.command_line import tell
from workers.errors import BadConfiguration, WorkerError

CONFIDENCE_LEVEL = 0.95
THIS, AGAINST = "this", "against"
PEER = "peer: "
"""Stands before the name of a figure that is a peer's: the same program in both checkouts."""

CONTEXT = {"allow_extra_args": True, "ignore_unknown_options": True}
Speeds = dict[str, float]
"""Speeds by name: a rate, or one divided by a time."""

_DATA = "ONLINE_SVM_DATA"


class Paired(StrEnum):
    """The benchmarks that are compared, as the command line spells them."""

    WORKER = "worker"
    PROFILE = "profile"
    SOLVER = "solver"


class BenchFailed(WorkerError):
    """The benchmark of a checkout ended with an error."""


def run(
    context: typer.Context,
    bench: Annotated[Paired, typer.Argument(help="What is run.", show_default=False)],
    against: Annotated[
        Path,
        typer.Option(metavar="DIR", help="The other checkout, with its own .venv."),
    ],
    runs: Annotated[int, typer.Option(min=2, help="Pairs of runs.")] = 12,
    results: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Keeps each run as it ends; the same command goes on from it. "
            "Default pairs-BENCH.jsonl.",
        ),
    ] = None,
) -> Iterator[Result]:
    """Compare this checkout with another: each runs a benchmark in turn, pair by pair.

    For each figure the speed of this one in parts of the other's, with its 95 % interval over the
    pairs. Peers are the same programs in both, so theirs say how much the machine wavers. Further
    options are passed on to both benchmarks.
    """
    path = results or Path(f"pairs-{bench}.jsonl")
    return compared(bench, against, runs, path, tuple(context.args))


def compared(
    bench: str, against: Path, pairs: int, path: Path, options: Sequence[str] = ()
) -> Iterator[Result]:
    """Run what the file lacks, and yield the ratio of every figure that all runs have.

    Runs of other commits or options in the file are not used.
    """
    other = against.resolve() / ".venv" / "bin" / "python"
    if not other.exists():
        raise BadConfiguration(
            f"--against {against}: no .venv/bin/python; name a checkout, and install it there"
        )
    sides = {THIS: (ROOT, Path(sys.executable)), AGAINST: (against.resolve(), other)}
    kept = KeptLines[Speeds](path, Speeds)
    asked: dict[str, Any] = {"bench": bench, "options": " ".join(options)}
    asked |= {name: f"{path} {_revision(path)}" for name, (path, _) in sides.items()}
    runs: dict[str, list[Speeds]] = {name: [] for name in sides}

    def measure(name: str, pair: int) -> Speeds:
        tell(f"pair {pair + 1} of {pairs}: {sides[name][0]}")
        return _measured(*sides[name], bench, options)

    for pair in range(pairs):
        for name in (AGAINST, THIS) if pair % 2 else (THIS, AGAINST):
            key = asked | {"pair": pair, "side": name}
            runs[name].append(kept.measured(key, partial(measure, name, pair)))
    for name in runs[THIS][0]:
        if all(name in found for found in (*runs[THIS], *runs[AGAINST])):
            yield ratio(name, *([one[name] for one in runs[side]] for side in (THIS, AGAINST)))


def ratio(name: str, ours: Sequence[float], theirs: Sequence[float]) -> Result:
    """Return the geometric mean of the ratios of two or more pairs, and its 95 % interval."""
    logs = [math.log(a / b) for a, b in zip(ours, theirs, strict=True)]
    mean, quantile = statistics.fmean(logs), stats.t.ppf(0.5 + CONFIDENCE_LEVEL / 2, len(logs) - 1)
    reach = float(quantile) * statistics.stdev(logs) / math.sqrt(len(logs))
    middle, low, high = (math.exp(mean + sign * reach) for sign in (0, -1, 1))
    values = {"name": name, "pairs": len(logs), "ratio": middle, "low": low, "high": high}
    interval = f"95 % [{low:.3f}, {high:.3f}]"
    return Result(values, [f"{name:<58}{middle:>8.3f}  {interval}  {len(logs)} pairs"])


def _revision(directory: Path) -> str:
    """Return the commit, with "-dirty" after changes; "unknown" without git."""
    git = ("git", "-C", str(directory), "describe", "--always", "--dirty", "--abbrev=40")
    try:
        found = subprocess.run(git, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return "unknown"
    return found.stdout.strip() or "unknown"


def _measured(directory: Path, python: Path, bench: str, options: Sequence[str]) -> Speeds:
    """Run a benchmark of a checkout, and return its figures."""
    # The current directory comes first on the path of `-m`; nothing else may come before it.
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    if _DATA in environment:
        environment[_DATA] = str(Path(environment[_DATA]).resolve())
    arguments = (bench, *options, "--json")
    ended = subprocess.run(
        [python, "scripts/bench", *arguments],
        cwd=directory, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if ended.returncode:
        last = " | ".join(ended.stderr.strip().splitlines()[-3:])
        command = " ".join(arguments)
        raise BenchFailed(f"{directory}: bench {command} ended with {ended.returncode}: {last}")
    found = speeds(ended.stdout)
    if not found:
        raise BenchFailed(f"{directory}: bench {bench} printed no figure")
    return found


def speeds(text: str) -> Speeds:
    """Return the figures that `worker`, `profile` or `solver` printed with `--json`."""
    found: Speeds = {}
    for line in text.splitlines():
        for name, speed in _of_result(orjson.loads(line)):
            if 0.0 < speed < math.inf:
                found.setdefault(name, speed)  # one figure is compared with several peers
    return found


def _of_result(result: dict[str, Any]) -> Iterator[tuple[str, float]]:
    name = result["name"]
    if "ours" in result:
        ours, _, peer = name.partition(" / ")
        yield ours, _speed(result["ours"], result["unit"])
        yield PEER + (peer or ours), _speed(result["peer"], result["unit"])
    if "whole" in result:
        yield f"{name}: whole", _speed(result["whole"])
    for part, value in result.get("parts", {}).items():
        yield f"{name}: {part}", _speed(value)
    for process, value in result.get("processor", {}).items():
        yield f"{name}: processor time, {process}", _speed(value)


def _speed(value: float, unit: str = "s") -> float:
    return value if unit == "/s" else 1.0 / value if value else math.inf
