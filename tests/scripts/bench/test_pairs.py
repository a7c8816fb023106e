"""Two checkouts are compared run by run, and an interrupted comparison goes on where it was."""

import json
import sys

import numpy as np
import pytest
from scipy import stats

from scripts.bench import pairs
from scripts.bench.commands import app
from scripts.bench.pairs import BenchFailed, compared, ratio, speeds
from scripts.bench.profile import result as profile_result
from scripts.bench.report import beside
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
    monkeypatch.setattr(pairs, "ROOT", new)
    monkeypatch.setattr(pairs.sys, "executable", str(new / ".venv" / "bin" / "python"))
    monkeypatch.setenv("PYTHONPATH", "elsewhere")
    return checkout(tmp_path / "old", log, 4_000_000.0)


def ran(tmp_path):
    return [line.split()[0] for line in (tmp_path / "log").read_text().splitlines()]


def test_the_two_take_turns_and_each_begins_every_other_pair(old, tmp_path):
    options = ("--examples", "600")
    found = list(compared("worker", old, 4, tmp_path / "runs.jsonl", options))
    assert ran(tmp_path) == ["new", "old", "old", "new"] * 2
    lines = (tmp_path / "log").read_text().splitlines()
    assert lines[0] == "new scripts/bench worker --examples 600 --json"
    assert lines[1] == "old scripts/bench worker --examples 600 --json"
    ours, peer = (one.values for one in found)
    assert [(one["name"], one["pairs"]) for one in (ours, peer)] == [
        ("session", 4),
        ("peer: null worker", 4),
    ]
    # Both become slower with each run, at the same pace: the pairs do not see it.
    assert ours["ratio"] == pytest.approx(2.0, rel=1e-5)
    assert peer["ratio"] == pytest.approx(1.0, rel=0.02)


def test_an_interrupted_comparison_goes_on_where_it_was(old, tmp_path):
    file = tmp_path / "runs.jsonl"
    (old / "broken").touch()
    with pytest.raises(BenchFailed, match=r"old: bench worker --json ended with 1: out of memory"):
        list(compared("worker", old, 2, file))
    assert ran(tmp_path) == ["new", "old"]
    with file.open("a") as target:
        target.write('{"pair": 1, "si')  # the machine went down
    (old / "broken").unlink()
    first = list(compared("worker", old, 2, file))
    assert ran(tmp_path)[2:] == ["old", "old", "new"]
    assert list(compared("worker", old, 2, file)) == first
    assert len(ran(tmp_path)) == 5
    list(compared("worker", old, 3, file))
    assert len(ran(tmp_path)) == 7
    # Runs of another comparison are never mixed in.
    for bench, options in (("profile", ()), ("worker", ("--examples", "9"))):
        before = len(ran(tmp_path))
        list(compared(bench, old, 2, file, options))
        assert len(ran(tmp_path)) == before + 4
    assert list(compared("worker", old, 2, file)) == first


def test_a_directory_without_an_interpreter_is_named(tmp_path):
    with pytest.raises(BadConfiguration, match=r"nowhere: no .venv/bin/python"):
        list(compared("worker", tmp_path / "nowhere", 2, tmp_path / "runs.jsonl"))


def test_the_interval_is_that_of_a_paired_t_test_on_the_logarithms():
    rng = np.random.default_rng(0)
    ours, theirs = rng.lognormal(0.1, 0.05, 12), rng.lognormal(0.0, 0.05, 12)
    found = ratio("session", ours.tolist(), theirs.tolist()).values
    peer = stats.ttest_rel(np.log(ours), np.log(theirs)).confidence_interval(0.95)
    assert (found["low"], found["high"]) == pytest.approx((np.exp(peer.low), np.exp(peer.high)))
    assert found["ratio"] == pytest.approx(stats.gmean(ours / theirs))


def test_every_figure_of_a_profile_and_of_a_row_is_read():
    parts = {"read": 0.5, "learn, validity": 1.25}
    profile = profile_result("session", 12.5, parts, {"refit process": 2})
    results = [beside("window of 9", 0.25, 2.0), profile]
    assert speeds("\n".join(json.dumps(result.plain()) for result in results)) == {
        "window of 9": 4.0,
        "peer: window of 9": 0.5,
        "session: whole": 0.08,
        "session: read": 2.0,
        "session: learn, validity": 0.8,
        "session: processor time, refit process": 0.5,
        "session: processor time, all": 0.5,
    }


def test_the_command_prints_each_ratio_with_its_interval(old, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command = ["pairs", "--against", str(old), "--runs", "2", "worker", "--examples", "9"]
    for option in ([], ["--json"]):
        with pytest.raises(SystemExit) as ended:
            main(app("pairs"), "bench", [*command, *option])
        assert ended.value.code == 0
    first, _, *objects = capsys.readouterr().out.splitlines()
    assert first.split()[:4] == ["session", "2.000", "95", "%"]
    assert [json.loads(one)["name"] for one in objects] == ["session", "peer: null worker"]
    assert len(ran(tmp_path)) == 4
    kept = (tmp_path / "pairs-worker.jsonl").read_text().splitlines()
    assert [json.loads(line)["options"] for line in kept] == ["--examples 9"] * 4
