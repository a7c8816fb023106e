"""What benchmarks measure with: processes, clocks, peers, and files that keep what was measured."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
import redis
from processes import Process

from scripts.bench.harness import WorkerEnded, drifting, family, push_again, python
from scripts.bench.kept import Cell, KeptLines, cells_of, measured_cells, program
from scripts.bench.worker import latency
from scripts.bench.worker.null import GROUP, answer_by_script
from workers.broker.store import Store
from workers.errors import BadConfiguration


def test_the_null_worker_answers_each_entry_once_and_acknowledges_it(embedded_url):
    rows = list(drifting(20))
    with (
        python("-m", "scripts.bench.worker.null", embedded_url, "null-alone", "300"),
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


def test_the_null_worker_with_one_script_call_does_the_same(embedded_url):
    with Store(embedded_url, "null-script") as store, redis.Redis.from_url(embedded_url) as client:
        push_again(store, drifting(300))
        client.xgroup_create(store.keys.input, GROUP, "0")
        counts = [answer_by_script(client, store.keys, b"x" * 9) for _ in range(3)]
        assert counts == [256, 44, 0]
        out = store.call("XRANGE", store.keys.out, "-", "+")
        source = store.call("XRANGE", store.keys.input, "-", "+")
        assert out == [[entry[0], [b"p", b"x" * 9]] for entry in source]
        assert store.call("XPENDING", store.keys.input, GROUP)[0] == 0


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


def test_kept_lines_outlive_a_run_and_a_cut_one_is_dropped(tmp_path):
    path, one, two = tmp_path / "kept.jsonl", *({"stream": "a", "draw": i} for i in range(2))
    first = KeptLines(path)
    first.add(one, 0.5)
    first.add(two, 0.25)
    assert path.read_text() == (
        '{"stream":"a","draw":0,"measured":0.5}\n{"stream":"a","draw":1,"measured":0.25}\n'
    )
    path.write_bytes(path.read_bytes()[:-5])
    second = KeptLines(path)
    assert (second.get(one), second.get(two)) == (0.5, None)
    second.add(two, 0.75)
    assert KeptLines(path).get(two) == 0.75


@pytest.mark.parametrize("line", ["{}", "[1]", "no json", '{"stream": "a", "draw": 0}'])
def test_a_file_of_something_else_is_refused_and_stays(tmp_path, line):
    path = tmp_path / "kept.jsonl"
    path.write_text(f"{line}\n")
    with pytest.raises(BadConfiguration, match="line 1: no cell of this benchmark"):
        KeptLines(path)
    assert path.read_text() == f"{line}\n"
    with pytest.raises(BadConfiguration, match=f"--results {tmp_path}: "):
        KeptLines(tmp_path)


def test_a_run_of_cells_resumes_and_names_what_cannot_run(tmp_path, capsys):
    cells = cells_of(Cell, None, stream=("elec2", "swap"), draw=range(3), method=("none", "ARF"))
    assert [(cell.stream, cell.draw, cell.method) for cell in cells[:3]] == [
        ("elec2", 0, "none"), ("elec2", 0, "ARF"), ("elec2", 1, "none"),
    ]  # fmt: skip
    ran = []

    def measure(cell):
        ran.append(cell)
        if cell.stream == "elec2":
            raise BadConfiguration("no file")
        return [{"loss": float(cell.draw)}]

    results = tmp_path / "kept.jsonl"
    measured_cells(cells[5:8], measure, results)
    assert "1 of 3: stream elec2, method ARF, draw 2: not run: no file" in capsys.readouterr().err
    found = measured_cells(cells, measure, results)
    assert [*found.loss] == [0.0, 0.0, 1.0, 1.0, 2.0, 2.0]
    assert [*found.method] == ["none", "ARF"] * 3
    # What could not be run is tried again.
    assert ran == [*cells[5:8], *cells[:6], *cells[8:]]


def test_ours_are_measured_again_after_a_change_of_ours_and_peers_are_not(monkeypatch):
    from scripts.bench import kept as module

    methods = ("headline", "reset", "default monitors, level .01", "river ARF", "rolling LR")
    cells = [Cell(stream="swap", method=method) for method in methods]
    before = [cell.key for cell in cells]
    monkeypatch.setattr(module, "code_digest", lambda: "another")
    same = [cell.key == key for cell, key in zip(cells, before, strict=True)]
    assert same == [False, False, False, True, True]
    assert program("rolling SVC, tuned").startswith("scikit-learn ")
    assert program("capymoa ARF").startswith("capymoa")
