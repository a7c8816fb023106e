"""Histories of faults over the matrix of modes: all learners, splits and maps, repeated ids, a
blocking consumer, two workers and late labels, under faults of all that takes part.

CHAOS_INSIDE and CHAOS_PROCESSES say how many of each kind run, spread over the modes.
"""

from dataclasses import replace

import histories
import pytest
from history_modes import MACHINES, MODES, mode_of
from history_parts import difference, uninterrupted

POLICIES = ("report", "refit", "reset")


@pytest.fixture(scope="module")
def stage(tmp_path_factory):
    with histories.stage(tmp_path_factory.mktemp("stage")) as made:
        yield made


def check(stage, told, every):
    for kind, seed in every:
        record = stage.run(kind, seed)
        told(histories.told(record))
        assert not record["error"], record["error"]
        assert record["found"] == record["digest"]
        yield record


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_few_histories_inside_a_process_change_no_byte(stage, told):
    assert len([*check(stage, told, histories.wanted(8, 0))]) == 8


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_few_histories_of_named_rows_of_every_kind_change_no_byte(stage, told):
    assert len([*check(stage, told, histories.wanted(4, 2, ("kinds",)))]) == 6


@pytest.mark.chaos
@pytest.mark.timeout(7200)  # a thousand take 90 minutes
@pytest.mark.parametrize("kind", histories.COUNTS)
def test_no_history_over_the_mixed_matrix_changes_a_byte(stage, times, told, kind):
    every = [(kind, seed) for seed in range(times[kind.upper()])]
    assert len([*check(stage, told, every)]) == len(every)


@pytest.mark.chaos
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("policy", POLICIES)
def test_two_workers_that_replace_each_other_leave_the_same_alarms(stage, times, told, policy):
    """Labels are late and turned round; what an alarm begins is under way when a worker dies."""
    count = max(1, times["PROCESSES"] // 5)
    every = histories.wanted(0, count, ("drift", policy, "late", "two"))
    assert all(record["alarms"] for record in check(stage, told, every))


def test_every_mode_comes_once_in_as_many_seeds():
    assert len({str(mode_of(seed)) for seed in range(MODES)}) == MODES
    assert {mode_of(seed).machine for seed in range(20)} == set(MACHINES)


@pytest.mark.chaos
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("labels", [(), ("late",)])
def test_histories_of_drift_raise_alarms(embedded_url, policy, labels):
    """Else those that compare them compare nothing."""
    for _, seed in histories.wanted(4, 0, ("drift", policy, *labels)):
        mode = mode_of(seed)
        count = mode.length * histories.COUNTS["inside"]
        assert uninterrupted(mode, seed, count, embedded_url).alarms, seed


@pytest.mark.chaos
def test_one_payload_that_differs_or_is_missing_is_found(embedded_url):
    expected = uninterrupted(mode_of(0), 0, 60, embedded_url)
    for stream in ("out", "met", "dlq"):
        entries = list(getattr(expected, stream))
        for changed in (entries[:-1], [*entries[:-1], (b"1-0", b"{}")]):
            found = replace(expected, **{stream: tuple(changed)})
            assert difference(found, expected).startswith(f"{stream}: ")
    position = expected.position
    moved = replace(expected, position=replace(position, n=position.n + 1))
    assert "n=" in difference(moved, expected)
    assert not difference(expected, expected)
