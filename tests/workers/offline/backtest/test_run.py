"""Configurations in processes of their own give what they give in this one."""

import numpy as np
import pytest

from workers.config.settings import WorkerSettings
from workers.offline.backtest import run as running
from workers.offline.backtest.configurations import configurations
from workers.offline.backtest.history import read, record
from workers.offline.backtest.kept_results import KeptResults
from workers.offline.backtest.prequential import answer
from workers.offline.backtest.result import result_of
from workers.offline.backtest.run import run
from workers.push.ingest import encoded
from workers.push.rows import Row

SECTIONS = {"base": {"window": 100, "refit_every": 50}, "wide": {"gamma": 0.1}, "same": {}}


@pytest.fixture
def history(tmp_path):
    rng = np.random.default_rng(0)
    rows = (Row((rng.normal(size=2) + i % 2).tolist(), "ab"[i % 2]) for i in range(300))
    return record(((b"", encoded(row)) for row in rows), tmp_path / "history")


@pytest.fixture
def chosen():
    return configurations(WorkerSettings(), SECTIONS)


def without_cost(result):
    return result.model_copy(update={"microseconds": 0.0})


def test_the_results_are_those_of_this_process_in_the_order_asked_for(history, chosen):
    told = []
    found = run(chosen, history, progress=told.append)
    assert [one.configuration for one in found] == chosen
    for one in found:
        alone = result_of(answer(one.configuration, read(history.path)))
        assert without_cost(one.result) == without_cost(alone)
        assert one.result.microseconds > 0.0
        assert not one.was_kept
    assert told[-1][:2] == [300, 300]


def test_what_is_kept_is_not_computed_again(history, chosen, tmp_path, monkeypatch):
    first = run(chosen[:1], history, KeptResults(tmp_path / "out"))
    computed = []
    compute = running._compute

    def noted(configurations, waiting, *rest):
        computed.append([configurations[place].name for place in waiting])
        return compute(configurations, waiting, *rest)

    monkeypatch.setattr(running, "_compute", noted)
    found = run(chosen, history, KeptResults(tmp_path / "out"))
    assert computed == [["wide"]]  # "same" has the settings of the base
    assert [one.was_kept for one in found] == [True, False, True]
    assert found[0].result == found[2].result == first[0].result
    assert run(chosen, history, KeptResults(tmp_path / "out"))[1].result == found[1].result
    assert computed == [["wide"]]


def test_a_process_that_is_killed_ends_the_run_with_what_to_do(history, chosen, monkeypatch):
    monkeypatch.setattr(running, "_measure", _die)
    with pytest.raises(running.ProcessDied, match="--processes 1"):
        run(chosen, history)


def _die(*_):
    import os

    os._exit(1)
