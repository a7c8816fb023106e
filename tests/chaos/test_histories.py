"""Histories of faults over the matrix of modes: all learners, splits and maps, repeated ids, a
blocking consumer, a combination, two workers and late labels, under faults of all that takes part.

`make histories` runs 1,100 of them; here some of each kind run, spread over the modes.
"""

import json
from dataclasses import replace

import histories
import pytest
from history_modes import FEEDS, MACHINES, MODES, mode_of
from history_parts import alarms_in, difference, uninterrupted

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
@pytest.mark.timeout(1800)
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
        assert alarms_in(uninterrupted(mode, seed, count, embedded_url)) > 0, seed


@pytest.mark.chaos
def test_one_payload_that_differs_or_is_missing_is_found(embedded_url):
    expected = uninterrupted(mode_of(0), 0, 60, embedded_url)
    left = expected[FEEDS[0]]
    for stream in ("out", "met", "dlq"):
        entries = list(getattr(left, stream))
        for changed in (entries[:-1], [*entries[:-1], (b"1-0", b"{}")]):
            found = expected | {FEEDS[0]: replace(left, **{stream: tuple(changed)})}
            assert difference(found, expected).startswith(f"{stream} of first")
    moved = replace(left, position=replace(left.position, n=left.position.n + 1))
    assert "n=" in difference(expected | {FEEDS[0]: moved}, expected)
    assert not difference(dict(expected), expected)


def test_finished_histories_are_not_run_again_and_those_that_differed_are(tmp_path):
    runs, every = [], histories.wanted(3, 1)

    def run(todo):
        for kind, seed in todo:
            is_bad = seed == 1 and (kind, seed) not in runs
            runs.append((kind, seed))
            yield {
                "kind": kind, "seed": seed, "mode": "m", "digest": "ab", "faults": {"crash": 2},
                "error": "differs" if is_bad else "", "seconds": 0.1,
            }  # fmt: skip

    histories.run_all(histories.left(every, tmp_path), tmp_path, run)
    assert sorted(runs) == sorted(every)
    assert histories.left(every, tmp_path) == [("inside", 1)]
    found = histories.finished(tmp_path)
    assert "1 that differ: [1]" in "\n".join(histories.summary(found.values()))
    with (tmp_path / histories.FINISHED).open("a") as file:
        file.write('{"kind":"inside","se')  # it was killed while it wrote
    histories.run_all(histories.left(every, tmp_path), tmp_path, run)
    assert histories.left(every, tmp_path) == []
    lines = (tmp_path / histories.FINISHED).read_text().splitlines()
    assert all(json.loads(line)["code"] for line in lines if line.endswith("}"))
