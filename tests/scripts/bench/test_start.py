"""The benchmark of starts measures the real command, against what the worker really imports."""

import json
import subprocess
import sys

import pytest

from scripts.bench import start
from scripts.bench.commands import app
from scripts.command_line import main

# Top-level packages below site-packages that are loaded when a worker stands ready.
LOADED = """
import json, sys, sysconfig
import workers.cli, workers.cli.worker, workers.cli.worker_progress
import workers.runner.service, workers.runner.hosting
site = sysconfig.get_path("purelib")
inside = {m.split(".")[0] for m, v in list(sys.modules.items())
          if (getattr(v, "__file__", None) or "").startswith(site)}
print(json.dumps(sorted(inside)))
"""


def loaded(statement):
    found = subprocess.run(
        [sys.executable, "-c", statement], check=True, capture_output=True, text=True
    )
    return set(json.loads(found.stdout))


def test_the_bare_imports_are_those_of_a_worker():
    own = loaded(LOADED)
    statement = f"import {', '.join(start.PACKAGES)}\n{LOADED.replace('import workers', '#')}"
    assert loaded(statement) >= own - {"workers", "online_svm"}
    assert {name.split(".")[0] for name in start.PACKAGES} <= own


def test_server_and_feed_are_checked_without_what_takes_long_to_load():
    statement = LOADED.replace(", workers.runner.hosting", "")
    assert not loaded(statement) & {"numba", "scipy", "sklearn"}


@pytest.mark.slow
def test_a_small_run_measures_starts_with_and_without_a_replay(capsys, monkeypatch):
    found = start.run(repeats=1, replayed=300, window=300)
    middle = found.values["seconds"]
    assert set(middle) == {"imports", "first", "replaying", "live"}
    assert 0 < middle["imports"] < middle["first"]
    assert [check.bound for check in found.checks] == [1.5, 1.0, 1.0]
    monkeypatch.setattr(start, "run", lambda *_: found)
    with pytest.raises(SystemExit) as ended:
        main(app, "bench", ["start", "--json"])
    assert ended.value.code == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["replayed"] == 300
    assert len(printed["checks"]) == 3
