"""Two checkouts, run by run in turn, and how much faster one is than the other.

Each runs a benchmark as its own command with its own interpreter. They take turns to begin, and a
ratio is taken within each pair: other work on the machine that lasts longer than a pair affects
both.
"""

import math
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import orjson
import typer
from scipy import stats

from scripts.bench.harness import ROOT
from scripts.bench.report import Result, Values
from scripts.command_line import tell
from workers.errors import BadConfiguration, WorkerError

CONFIDENCE_LEVEL = 0.95
THIS, AGAINST = "this", "against"
PEER = "peer: "
"""Stands before the name of a figure that is a peer's: the same program in both checkouts."""

Speeds = dict[str, float]
"""Speeds by name: a rate, or one divided by a time."""


class BenchFailed(WorkerError):
    """The benchmark of a checkout ended with an error."""


Against = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Compare with another checkout, which has its own .venv."),
]
Pairs = Annotated[int, typer.Option(min=2, help="Pairs of runs, with --against.")]


def compared(options: Sequence[str], against: Path, pairs: int) -> Result:
    """Return the ratio of every figure that all runs have.

    `options` are the arguments of `bench` in both checkouts. A ratio is the speed
    of this checkout over the speed of the other, with its 95 % interval over the pairs. Peers are
    the same programs in both, so their ratios show how much the machine wavers.
    """
    other = against.resolve() / ".venv" / "bin" / "python"
    if not other.exists():
        raise BadConfiguration(
            f"--against {against}: no .venv/bin/python; name a checkout, and install it there"
        )
    sides = {THIS: (ROOT, Path(sys.executable)), AGAINST: (against.resolve(), other)}
    runs: dict[str, list[Speeds]] = {name: [] for name in sides}
    for pair in range(pairs):
        for name in (AGAINST, THIS) if pair % 2 else (THIS, AGAINST):
            tell(f"pair {pair + 1} of {pairs}: {sides[name][0]}")
            runs[name].append(_measured(*sides[name], options))
    return Result(
        [
            ratio(name, *([one[name] for one in runs[side]] for side in (THIS, AGAINST)))
            for name in runs[THIS][0]
            if all(name in found for found in (*runs[THIS], *runs[AGAINST]))
        ],
        f"speed of this checkout over the other's, with its 95 % interval, {pairs} pairs",
    )


def ratio(name: str, ours: Sequence[float], theirs: Sequence[float]) -> Values:
    """Return the geometric mean of the ratios of two or more pairs, and its 95 % interval."""
    logs = [math.log(a / b) for a, b in zip(ours, theirs, strict=True)]
    mean, quantile = statistics.fmean(logs), stats.t.ppf(0.5 + CONFIDENCE_LEVEL / 2, len(logs) - 1)
    reach = float(quantile) * statistics.stdev(logs) / math.sqrt(len(logs))
    middle, low, high = (math.exp(mean + sign * reach) for sign in (0, -1, 1))
    return {"name": name, "ratio": middle, "low": low, "high": high}


def _measured(directory: Path, python: Path, options: Sequence[str]) -> Speeds:
    """Run a benchmark of a checkout, and return its figures."""
    # The current directory comes first on the path of `-m`; nothing else may come before it.
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    arguments = (*options, "--json")
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
        raise BenchFailed(f"{directory}: bench {' '.join(options)} printed no figure")
    return found


def speeds(text: str) -> Speeds:
    """Return the figures that `worker` printed with `--json`."""
    found: Speeds = {}
    for row in map(orjson.loads, text.splitlines()):
        for name, speed in _of_row(row):
            found.setdefault(name, speed)  # one figure is compared with several peers
    return found


def _of_row(row: Values) -> Iterator[tuple[str, float]]:
    if "ours" in row:
        ours, _, peer = row["name"].partition(" / ")
        yield ours, row["ours"]
        yield PEER + peer, row["peer"]
    if row.get("microseconds"):
        yield row["name"], 1.0 / row["microseconds"]
