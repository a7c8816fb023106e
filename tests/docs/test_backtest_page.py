"""The example of the page on backtests shows what the present code computes."""

import re
import tomllib
from pathlib import Path

import pytest

from workers.config.settings import WorkerSettings
from workers.history.backtest.configurations import configurations
from workers.history.backtest.prequential import answer
from workers.history.backtest.result import result_of
from workers.history.backtest.run import Finished
from workers.history.backtest.table import table
from workers.push.ingest import encoded, shuffled
from workers.push.sources import Reading, rows

PAGE = (Path(__file__).parents[2] / "docs" / "backtest.md").read_text(encoding="utf-8")
HOW = "the example is old: run the command of docs/backtest.md and put in what it prints"
# Other versions of the libraries may round the last decimal otherwise.
UNIT = 0.00101


def block(kind):
    (found,) = re.findall(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)
    return found


def numbers(line):
    return [float(text) for text in re.findall(r"[+-]?\d+\.\d+", line)]


def words(line):
    """What a line says beside its numbers."""
    return re.sub(r"[+-]?\d[\d.,]*", "#", " ".join(line.split()))


def test_the_table_is_what_the_command_prints():
    assert "online-svm backtest Phishing --shuffle 0 --configs compare.toml" in block("sh")
    chosen = configurations(WorkerSettings(), tomllib.loads(block("toml")))
    history = [(b"", encoded(row)) for row in shuffled(rows("Phishing", Reading()), 0)]
    results = [result_of(answer(one, [history])) for one in chosen]
    computed = table([Finished(*pair, False) for pair in zip(chosen, results, strict=True)])
    shown = block("text").splitlines()
    assert list(map(words, shown)) == list(map(words, computed)), HOW
    for ours, theirs in zip(shown, computed, strict=True):
        if "an entry" not in ours:  # what it costs differs from run to run
            assert numbers(ours) == pytest.approx(numbers(theirs), abs=UNIT), HOW
