"""Results that are kept are found again, and only where nothing that decides them has changed."""

import subprocess
import sys

import numpy as np
import pytest

from workers.config.settings import WorkerSettings
from workers.errors import BadConfiguration
from workers.offline.backtest import kept_results
from workers.offline.backtest.configurations import configurations
from workers.offline.backtest.history import Recording
from workers.offline.backtest.kept_results import RESULTS_FILE, KeptResults, key
from workers.offline.backtest.prequential import HEADLINE, HistoryOutcome, Published
from workers.offline.backtest.result import result_of

ONE, TWO = configurations(WorkerSettings(), {"one": {}, "two": {"C": 2}})


def result(n=20):
    values = np.tile([0.25, 0.75], (n, 1))
    codes = np.arange(n) % 2
    return result_of(HistoryOutcome(("a", "b"), codes, np.arange(n), {HEADLINE: Published(values)}))


def test_two_runs_over_one_directory_lose_nothing_of_each_other(tmp_path):
    first, second = KeptResults(tmp_path / "out"), KeptResults(tmp_path / "out")
    first.add("1", ONE, result(20))
    second.add("2", TWO, result(30))
    found = KeptResults(tmp_path / "out")
    assert [found.get(key) for key in "123"] == [result(20), result(30), None]


def test_a_writing_that_is_cut_off_leaves_what_was_kept(tmp_path, monkeypatch):
    kept = KeptResults(tmp_path)
    kept.add("1", ONE, result())

    def fail(_descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(kept_results.os, "fsync", fail)
    with pytest.raises(BadConfiguration, match="No space left"):
        kept.add("2", TWO, result())
    found = KeptResults(tmp_path)
    assert found.get("1") == result()
    assert found.get("2") is None


@pytest.mark.parametrize("text", ["{", "[]", '{"key":"a"}', "\x00"])
def test_a_line_that_is_no_result_is_told_with_its_number(tmp_path, monkeypatch, text):
    KeptResults(tmp_path).add("1", ONE, result())
    with (tmp_path / RESULTS_FILE).open("a") as file:
        file.write(text + "\n")
    with pytest.raises(BadConfiguration, match=r"jsonl, line 2: no result .* delete the line"):
        KeptResults(tmp_path)
    monkeypatch.setattr(kept_results, "MAX_FILE_BYTES", 100)
    with pytest.raises(BadConfiguration, match="more than 100 bytes"):
        KeptResults(tmp_path)


@pytest.mark.parametrize("place", ["file", "none/below"])
def test_a_directory_that_cannot_be_written_is_told(tmp_path, place):
    (tmp_path / "file").write_text("")
    with pytest.raises(BadConfiguration, match=r"--out .*give a directory that can be written"):
        KeptResults(tmp_path / place)


def test_the_key_changes_with_settings_history_and_code_alone(tmp_path, monkeypatch):
    history, other = Recording(tmp_path, 3, "aa"), Recording(tmp_path / "b", 3, "bb")
    (renamed,) = configurations(WorkerSettings(), {"renamed": {}})
    (limited,) = configurations(WorkerSettings(), {"one": {"dedupe_window": 5}})
    before = key(ONE, history)
    assert before == key(renamed, Recording(tmp_path / "c", 3, "aa"))
    keys = {before, key(TWO, history), key(limited, history), key(ONE, other)}
    monkeypatch.setattr(kept_results, "code_digest", lambda: "of another build")
    assert len({*keys, key(ONE, history)}) == 5


def test_another_build_of_the_kernels_is_other_code(tmp_path, monkeypatch):
    monkeypatch.setattr(kept_results.online_svm, "__file__", str(tmp_path / "__init__.py"))
    kernels, digest_now = tmp_path / "_v1.abi3.so", kept_results.code_digest.__wrapped__
    kernels.write_bytes(b"of one compiler")
    before = digest_now()
    (tmp_path / "notes.txt").write_text("of people")
    assert digest_now() == before
    kernels.write_bytes(b"of another one")
    assert digest_now() != before


KEY = """
from pathlib import Path
from workers.config.settings import WorkerSettings
from workers.offline.backtest.configurations import configurations
from workers.offline.backtest.kept_results import key
from workers.offline.backtest.history import Recording
(one,) = configurations(WorkerSettings(), {"one": {}})
print(key(one, Recording(Path(), 3, "aa")))
"""


def test_the_key_is_the_same_in_another_process(tmp_path):
    done = subprocess.run([sys.executable, "-c", KEY], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == key(ONE, Recording(tmp_path, 3, "aa"))
