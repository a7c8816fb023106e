"""Results that are kept are found again, and only where nothing that decides them has changed."""

import subprocess
import sys

import numpy as np
import pytest

from workers.config.settings import WorkerSettings
from workers.errors import BadConfiguration
from workers.offline.backtest import kept_results
from workers.offline.backtest.configurations import configurations
from workers.offline.backtest.history import RecordedEntries
from workers.offline.backtest.kept_results import KeptResults, key
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
    assert [path.name for path in tmp_path.iterdir()] == ["1.json"]


@pytest.mark.parametrize("text", ["{", "[]", '{"name":"a"}', "\x00"], ids=range(4))
def test_a_file_that_is_no_result_is_named(tmp_path, text):
    (tmp_path / "1.json").write_text(text)
    with pytest.raises(BadConfiguration, match=r"1\.json: no result .* delete the file"):
        KeptResults(tmp_path).get("1")


def test_of_a_large_file_no_more_is_read_than_a_result_takes(tmp_path, monkeypatch):
    kept = KeptResults(tmp_path)
    kept.add("1", ONE, result())
    monkeypatch.setattr(kept_results, "MAX_FILE_BYTES", 100)
    with pytest.raises(BadConfiguration, match="no result of this version"):
        kept.get("1")


@pytest.mark.parametrize("place", ["file", "none/below"])
def test_a_directory_that_cannot_be_written_is_told(tmp_path, place):
    (tmp_path / "file").write_text("")
    with pytest.raises(BadConfiguration, match=r"--out .*give a directory that can be written"):
        KeptResults(tmp_path / place)


def test_the_key_changes_with_settings_history_and_code_alone(tmp_path, monkeypatch):
    history, other = RecordedEntries(tmp_path, 3, "aa"), RecordedEntries(tmp_path / "b", 3, "bb")
    (renamed,) = configurations(WorkerSettings(), {"renamed": {}})
    (limited,) = configurations(WorkerSettings(), {"one": {"dedupe_window": 5}})
    before = key(ONE, history)
    assert before == key(renamed, RecordedEntries(tmp_path / "c", 3, "aa"))
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
from workers.offline.backtest.history import RecordedEntries
(one,) = configurations(WorkerSettings(), {"one": {}})
print(key(one, RecordedEntries(Path(), 3, "aa")))
"""


def test_the_key_is_the_same_in_another_process(tmp_path):
    done = subprocess.run([sys.executable, "-c", KEY], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == key(ONE, RecordedEntries(tmp_path, 3, "aa"))
