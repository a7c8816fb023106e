"""Histories of faults over the matrix of modes: all learners, splits and maps, repeated ids, a
blocking consumer, a combination and two workers, under faults of all that takes part.

`make histories` runs 1,100 of them; here some of each kind run, spread over the modes.
"""

import json
from dataclasses import replace

import histories
import pytest
from history_modes import FEEDS, MODES, mode_of
from history_parts import alarms_in, difference, uninterrupted

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def stage(tmp_path_factory):
    with histories.stage(tmp_path_factory.mktemp("stage")) as made:
        yield made


@pytest.mark.parametrize("kind", histories.COUNTS)
def test_no_history_over_the_mixed_matrix_changes_a_byte(stage, times, told, kind):
    for seed in range(times[kind.upper()]):
        record = stage.run(kind, seed)
        told(histories.told(record))
        assert not record["error"], record["error"]
        assert record["found"] == record["digest"]


def test_every_mode_comes_once_in_as_many_seeds():
    assert len({str(mode_of(seed)) for seed in range(MODES)}) == MODES
    machines = {mode_of(seed).machine for seed in range(20)}
    assert len(machines) == len(histories.MACHINES)


@pytest.mark.parametrize("policy", ["report", "refit", "reset"])
@pytest.mark.parametrize("labels", [(), ("late",)])
def test_histories_of_drift_raise_alarms(embedded_url, policy, labels):
    """Else those that compare them compare nothing."""
    every = histories.wanted(4, 0, ("drift", policy, *labels))
    count = mode_of(every[0][1]).length * histories.COUNTS["inside"]
    alarms = [
        alarms_in(uninterrupted(mode_of(seed), seed, count, embedded_url)) for _, seed in every
    ]
    assert min(alarms) > 0, alarms


@pytest.mark.parametrize("stream", ["out", "met", "dlq"])
def test_one_payload_that_differs_or_is_missing_is_found(embedded_url, stream):
    expected = uninterrupted(mode_of(0), 0, 60, embedded_url)
    left = expected[FEEDS[0]]
    entries = list(getattr(left, stream))
    for changed in (entries[:-1], [*entries[:-1], (b"1-0", b"{}")]):
        found = expected | {FEEDS[0]: replace(left, **{stream: tuple(changed)})}
        assert difference(found, expected).startswith(f"{stream} of first")
    moved = replace(left, position=replace(left.position, n=left.position.n + 1))
    assert "n=" in difference(expected | {FEEDS[0]: moved}, expected)
    assert not difference(dict(expected), expected)


class Scripted:
    """A stage whose histories differ the first time, for one seed."""

    def __init__(self):
        self.runs = []

    def run(self, kind, seed):
        is_bad = seed == 1 and (kind, seed) not in self.runs
        self.runs.append((kind, seed))
        return {
            "kind": kind, "seed": seed, "mode": "m", "digest": "ab", "faults": {"crash": 2},
            "error": "differs" if is_bad else "", "seconds": 0.1,
        }  # fmt: skip


def test_finished_histories_are_not_run_again_and_those_that_differed_are(tmp_path):
    made = Scripted()
    every = histories.wanted(3, 1)
    histories.run_slot(histories.left(every, tmp_path), tmp_path, made)
    assert sorted(made.runs) == sorted(every)
    assert histories.left(every, tmp_path) == [("inside", 1)]
    assert "1 that differ: [1]" in "\n".join(histories.summary(histories.records(every, tmp_path)))
    with (tmp_path / histories.FINISHED).open("a") as file:
        file.write('{"kind":"inside","se')  # it was killed while it wrote
    histories.run_slot(histories.left(every, tmp_path), tmp_path, made)
    assert histories.left(every, tmp_path) == []
    lines = (tmp_path / histories.FINISHED).read_text().splitlines()
    assert all(json.loads(line)["code"] for line in lines if line.endswith("}"))
