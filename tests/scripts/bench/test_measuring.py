"""What benchmarks measure with: processes, clocks, peers, and files that keep what was measured."""

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import pytest
from processes import Process

from scripts.bench import harness, latency, profile, start
from scripts.bench.harness import WARM_UP, WorkerEnded, drifting, family, python, stream
from scripts.bench.kept import KeptLines, StreamCell, measured_cells, program, stream_cells
from scripts.bench.worker import bare_commits
from workers.broker.store import Store
from workers.errors import BadConfiguration

# Top-level packages below site-packages that are loaded when a worker stands ready.
LOADED = """
import json, sys, sysconfig
import workers.cli, workers.cli.worker, workers.cli.progress
import workers.runner.service, workers.runner.feed_supervisor
site = sysconfig.get_path("purelib")
inside = {m.split(".")[0] for m, v in list(sys.modules.items())
          if (getattr(v, "__file__", None) or "").startswith(site)}
print(json.dumps(sorted(inside)))
"""


def loaded(statement):
    return set(json.loads(subprocess.check_output([sys.executable, "-c", statement], text=True)))


def test_the_bare_imports_are_those_of_a_worker():
    own = loaded(LOADED)
    statement = f"import {', '.join(start.PACKAGES)}\n{LOADED.replace('import workers', '#')}"
    assert loaded(statement) >= own - {"workers", "online_svm"}
    assert {name.split(".")[0] for name in start.PACKAGES} <= own


def test_server_and_feed_are_checked_without_what_takes_long_to_load():
    statement = LOADED.replace(", workers.runner.feed_supervisor", "")
    assert not loaded(statement) & {"scipy", "sklearn"}


def test_the_null_worker_answers_each_entry_once_and_acknowledges_it(embedded_url):
    rows = list(drifting(20))
    with (
        python("-m", "scripts.bench.null", embedded_url, "null-alone", "300"),
        latency.Client(embedded_url, "null-alone") as client,
        Store(embedded_url, "null-alone") as store,
    ):
        assert all(client.ask(row) > 0 for row in rows)
        assert client.length == 300
        out = store.call("XRANGE", store.keys.out, "-", "+")
        source = store.call("XRANGE", store.keys.input, "-", "+")
        assert [entry[0] for entry in out] == [entry[0] for entry in source]
        assert len(out) == 20
        # The answers can be read a moment before the acknowledgement of the last one.
        assert store.call("XPENDING", store.keys.input, "null")[0] <= 1


def test_the_bare_commits_write_an_answer_to_every_entry(embedded_url):
    bare_commits(embedded_url, stream(WARM_UP + 700), length=300)
    with Store(embedded_url, "bench-bare") as store:
        ids = [entry[0] for entry in store.call("XRANGE", store.keys.input, "-", "+")]
        assert [entry[0] for entry in store.call("XRANGE", store.keys.out, "-", "+")] == ids
        assert store.state().position.cursor == ids[-1]


def test_a_client_whose_worker_is_gone_says_so(embedded_url, monkeypatch):
    monkeypatch.setattr(latency, "_WAIT_MS", 20)
    with (
        latency.Client(embedded_url, "nobody-answers") as client,
        pytest.raises(WorkerEnded, match="no answer"),
    ):
        client.ask(next(drifting(1)))


def test_a_process_that_fails_is_reported_with_what_it_said():
    with python("-c", "raise SystemExit('out of ideas')") as process:
        process.process.wait()
        with pytest.raises(WorkerEnded, match="ended with 1: out of ideas"):
            process.wait_until(lambda: False)


def test_a_process_started_by_another_thread_belongs_to_the_family():
    reads = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    with (
        ThreadPoolExecutor(1) as pool,
        pool.submit(Process, reads, stdin=subprocess.PIPE).result() as process,
    ):
        assert process.pid in set(family(os.getpid()))
        process.communicate()


@pytest.mark.slow
def test_the_parts_of_a_profile_make_the_whole(monkeypatch):
    class Clock:
        """Goes on only when it is looked at."""

        perf_counter = count().__next__
        process_time = time.process_time

    monkeypatch.setattr(profile, "time", Clock)
    monkeypatch.setattr(harness, "time", Clock)
    before = Store.send
    for found in profile.run(600):
        whole, parts = found.values["whole"], found.values["parts"]
        # It goes on by one outside of all parts, between two steps of the worker; a step without an
        # entry takes two looks at least, one with some takes twenty.
        assert 0.5 * whole < sum(parts.values()) < whole
        assert all(value >= 0 for value in parts.values())
        assert parts["parse"] > 0
    assert Store.send is before


def test_kept_lines_outlive_a_run_and_a_cut_one_is_dropped(tmp_path):
    path, one, two = tmp_path / "kept.jsonl", *({"stream": "a", "draw": i} for i in range(2))
    first = KeptLines(path, float)
    first.add(one, 0.5)
    first.add(two, 0.25)
    assert path.read_text() == (
        '{"stream":"a","draw":0,"measured":0.5}\n{"stream":"a","draw":1,"measured":0.25}\n'
    )
    path.write_bytes(path.read_bytes()[:-5])
    second = KeptLines(path, float)
    assert (second.get(one), second.get(two)) == (0.5, None)
    second.add(two, 0.75)
    assert KeptLines(path, float).get(two) == 0.75


@pytest.mark.parametrize("line", ["{}", "[1]", "no json", '{"stream": "a", "draw": 0}'])
def test_a_file_of_something_else_is_refused_and_stays(tmp_path, line):
    path = tmp_path / "kept.jsonl"
    path.write_text(f"{line}\n")
    with pytest.raises(BadConfiguration, match="line 1: no cell of this benchmark"):
        KeptLines(path, float)
    assert path.read_text() == f"{line}\n"
    with pytest.raises(BadConfiguration, match=f"--results {tmp_path}: "):
        KeptLines(tmp_path, float)


def test_a_run_of_cells_resumes_and_names_what_cannot_run(tmp_path):
    cells = stream_cells(("elec2", "swap"), ("none", "river ARF"), 3, "elec2".__eq__, 500)
    assert [(cell.stream, cell.draw) for cell in cells[:4]] == [("elec2", 0), ("swap", 0)] * 2
    assert [(cell.stream, cell.draw) for cell in cells[4:]] == [("swap", 1)] * 2 + [("swap", 2)] * 2
    ran = []

    def measure(cell):
        ran.append(cell)
        if cell.stream == "elec2":
            raise BadConfiguration("no file")
        return float(cell.draw)

    results = tmp_path / "kept.jsonl"
    measured_cells(cells[:4], measure, float, results)
    found = measured_cells(cells, measure, float, results)
    assert list(found.items()) == [
        (cell, "no file" if cell.stream == "elec2" else cell.draw) for cell in cells
    ]
    # What could not be run is tried again.
    assert ran == [*cells[:4], *(c for c in cells if c.stream == "elec2" or c.draw)]


def test_ours_are_measured_again_after_a_change_of_ours_and_peers_are_not(monkeypatch):
    from scripts.bench import kept as module

    methods = ("headline", "reset", "default monitors, level .01", "river ARF", "rolling LR")
    before = [StreamCell("swap", 0, method).key for method in methods]
    monkeypatch.setattr(module, "code_digest", lambda: "another")
    after = [StreamCell("swap", 0, method).key for method in methods]
    same = [a == b for a, b in zip(before, after, strict=True)]
    assert same == [False, False, False, True, True]
    assert program("rolling SVC, tuned").startswith("scikit-learn ")
    assert program("capymoa ARF").startswith("capymoa")
