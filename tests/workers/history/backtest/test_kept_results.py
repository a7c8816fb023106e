"""Results that are kept are found again, and only where nothing that decides them has changed."""

import subprocess
import sys

import numpy as np
import pytest

from workers.config.settings import WorkerSettings
from workers.errors import BadConfiguration
from workers.history.backtest import kept_results
from workers.history.backtest.configurations import configurations
from workers.history.backtest.kept_results import FILE, KeptResults, key
from workers.history.backtest.prequential import HEADLINE, Answered, Published
from workers.history.backtest.recording import Recording
from workers.history.backtest.result import result_of

ONE, TWO = configurations(WorkerSettings(), {"one": {}, "two": {"C": 2}})


def result(n=20):
    values = np.tile([0.25, 0.75], (n, 1))
    codes = np.arange(n) % 2
    return result_of(Answered(("a", "b"), codes, np.arange(n), {HEADLINE: Published(values)}))


def test_what_was_kept_is_there_for_the_next_run(tmp_path):
    KeptResults(tmp_path / "out").add("k", ONE, result())
    assert KeptResults(tmp_path / "out").get("k") == result()
    assert KeptResults(tmp_path / "out").get("other") is None


def test_two_runs_over_one_directory_lose_nothing_of_each_other(tmp_path):
    first, second = KeptResults(tmp_path), KeptResults(tmp_path)
    first.add("1", ONE, result(20))
    second.add("2", TWO, result(30))
    found = KeptResults(tmp_path)
    assert (found.get("1"), found.get("2")) == (result(20), result(30))


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
def test_a_line_that_is_no_result_is_told_with_its_number(tmp_path, text):
    KeptResults(tmp_path).add("1", ONE, result())
    with (tmp_path / FILE).open("a") as file:
        file.write(text + "\n")
    with pytest.raises(BadConfiguration, match=r"jsonl, line 2: no result .* delete the line"):
        KeptResults(tmp_path)


def test_a_file_that_is_too_large_is_not_read(tmp_path, monkeypatch):
    KeptResults(tmp_path).add("1", ONE, result())
    monkeypatch.setattr(kept_results, "LARGEST", 100)
    with pytest.raises(BadConfiguration, match="more than 100 bytes"):
        KeptResults(tmp_path)


@pytest.mark.parametrize("place", ["file", "none/below"])
def test_a_directory_that_cannot_be_written_is_told(tmp_path, place):
    (tmp_path / "file").write_text("")
    with pytest.raises(BadConfiguration, match=r"--out .*give a directory that can be written"):
        KeptResults(tmp_path / place)


def test_the_key_changes_with_the_settings_and_the_history_alone(tmp_path):
    history, other = Recording(tmp_path, 3, "aa"), Recording(tmp_path / "b", 3, "bb")
    (renamed,) = configurations(WorkerSettings(), {"renamed": {}})
    (limited,) = configurations(WorkerSettings(), {"one": {"dedupe_window": 5}})
    assert key(ONE, history) == key(renamed, Recording(tmp_path / "c", 3, "aa"))
    keys = {key(ONE, history), key(TWO, history), key(limited, history), key(ONE, other)}
    assert len(keys) == 4


def test_the_key_is_the_same_in_another_process(tmp_path):
    script = (
        "from pathlib import Path\n"
        "from workers.config.settings import WorkerSettings\n"
        "from workers.history.backtest.configurations import configurations\n"
        "from workers.history.backtest.kept_results import key\n"
        "from workers.history.backtest.recording import Recording\n"
        "(one,) = configurations(WorkerSettings(), {'one': {}})\n"
        "print(key(one, Recording(Path(), 3, 'aa')))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == key(ONE, Recording(tmp_path, 3, "aa"))


def test_the_key_changes_with_the_code(tmp_path, monkeypatch):
    history = Recording(tmp_path, 3, "aa")
    before = key(ONE, history)
    monkeypatch.setattr(kept_results, "code_digest", lambda: "of another build")
    assert key(ONE, history) != before
