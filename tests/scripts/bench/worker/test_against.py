"""Two checkouts are compared run by run."""

import json
import sys

import numpy as np
import pytest
from scipy import stats

from scripts.bench.commands import app
from scripts.bench.report import beside, check
from scripts.bench.worker import against
from scripts.bench.worker.against import BenchFailed, compared, ratio, speeds
from scripts.command_line import main
from workers.errors import BadConfiguration

PYTHON = sys.executable

# Stands for the interpreter of a checkout: notes that it ran, and prints an ever slower session.
FAKE = """#!{python}
import json, os, pathlib, sys
log = pathlib.Path("{log}")
with log.open("a") as target:
    target.write("{name} " + " ".join(sys.argv[1:]) + "\\n")
ran = log.read_text().count("{name} ")
assert "PYTHONPATH" not in os.environ
assert pathlib.Path.cwd() == pathlib.Path("{directory}")
if pathlib.Path("broken").exists():
    raise SystemExit("out of memory")
ours, peer = {speed} / ran, 100.0 / ran
print(json.dumps({{"name": "session / null worker", "ours": ours, "peer": peer, "unit": "/s"}}))
"""


def checkout(directory, log, speed):
    (directory / ".venv" / "bin").mkdir(parents=True)
    python = directory / ".venv" / "bin" / "python"
    names = {"python": PYTHON, "log": log, "name": directory.name}
    python.write_text(FAKE.format(**names, directory=directory, speed=speed))
    python.chmod(0o755)
    return directory


@pytest.fixture
def old(tmp_path, monkeypatch):
    """Return another checkout, half as fast as the one that stands for this one."""
    log = tmp_path / "log"
    new = checkout(tmp_path / "new", log, 8_000_000.0)
    monkeypatch.setattr(against, "ROOT", new)
    monkeypatch.setattr(against.sys, "executable", str(new / ".venv" / "bin" / "python"))
    monkeypatch.setenv("PYTHONPATH", "elsewhere")
    return checkout(tmp_path / "old", log, 4_000_000.0)


def ran(tmp_path):
    return [line.split()[0] for line in (tmp_path / "log").read_text().splitlines()]


def test_the_two_take_turns_and_each_begins_every_other_pair(old, tmp_path):
    options = ("worker", "--examples", "600")
    found = compared(options, old, 4)
    assert ran(tmp_path) == ["new", "old", "old", "new"] * 2
    lines = (tmp_path / "log").read_text().splitlines()
    assert lines[0] == "new scripts/bench worker --examples 600 --json"
    assert lines[1] == "old scripts/bench worker --examples 600 --json"
    ours, peer = found.rows
    assert [one["name"] for one in (ours, peer)] == ["session", "peer: null worker"]
    # Both become slower with each run, at the same pace: the pairs do not see it.
    assert ours["ratio"] == pytest.approx(2.0, rel=1e-5)
    assert peer["ratio"] == pytest.approx(1.0, rel=0.02)


def test_a_benchmark_that_fails_is_named_with_what_it_said(old):
    (old / "broken").touch()
    with pytest.raises(BenchFailed, match=r"old: bench worker --json ended with 1: out of memory"):
        compared(("worker",), old, 2)


def test_a_directory_without_an_interpreter_is_named(tmp_path):
    with pytest.raises(BadConfiguration, match=r"nowhere: no .venv/bin/python"):
        compared(("worker",), tmp_path / "nowhere", 2)


def test_the_interval_is_that_of_a_paired_t_test_on_the_logarithms():
    rng = np.random.default_rng(0)
    ours, theirs = rng.lognormal(0.1, 0.05, 12), rng.lognormal(0.0, 0.05, 12)
    found = ratio("session", ours.tolist(), theirs.tolist())
    peer = stats.ttest_rel(np.log(ours), np.log(theirs)).confidence_interval(0.95)
    assert (found["low"], found["high"]) == pytest.approx((np.exp(peer.low), np.exp(peer.high)))
    assert found["ratio"] == pytest.approx(stats.gmean(ours / theirs))


def test_rates_and_times_are_read_as_speeds():
    rows = [
        beside("default / null worker", 4.0, 8.0),
        beside("default / river", 4.0, 9.0),
        {"name": "default: Redis", "microseconds": 2.0},
        check("default / null worker", 0.5, 0.3, is_least=True),
    ]
    assert speeds("\n".join(map(json.dumps, rows))) == {
        "default": 4.0, "peer: null worker": 8.0, "peer: river": 9.0, "default: Redis": 0.5,
    }  # fmt: skip


def test_the_command_prints_each_ratio_with_its_interval(old, tmp_path, capsys):
    command = ["worker", "--against", str(old), "--pairs", "2", "--examples", "300"]
    for option in ([], ["--json"]):
        with pytest.raises(SystemExit) as ended:
            main(app(command), "bench", [*command, *option])
        assert ended.value.code == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1:4:2] for line in lines if "session" in line][:1] == [["session", "2"]]
    assert [json.loads(one)["name"] for one in lines[-2:]] == ["session", "peer: null worker"]
