"""Neither the IDs of the entries nor the process that answers them is part of an answer."""

import os

import pytest
from fault_workers import command
from processes import Process
from world import drain, finished, payloads, push, rows, session

from workers.broker.store import Store

COUNT = 120


def ids(count):
    """Return rising IDs of a clock that jumps: same milliseconds, an hour, a century ahead."""
    time, number = 1_700_000_000_000, 0
    for i in range(count):
        if i in (30, 60):
            time, number = time + 3_600_000, 0
        elif i == 90:
            time, number = 2**63, 2**62
        yield f"{time}-{number}"
        number += 1


def test_answers_are_in_the_order_of_the_ids_whatever_the_clock_did(embedded_url, feed):
    answers = []
    for name, numbers in (("even", [f"{i + 1}-0" for i in range(COUNT)]), ("odd", [*ids(COUNT)])):
        with Store(embedded_url, f"{feed}-{name}", block_ms=20) as store:
            for number, fields in zip(numbers, rows(COUNT), strict=True):
                store.call("XADD", store.keys.input, number, *fields)
            drain(session(store, batch=7, snapshot_every=25), COUNT)
            drain(session(store), COUNT)  # a replay ends at the same digest, or this one raises
            out, met = payloads(store)
            assert [entry_id.decode() for entry_id, _ in out] == numbers
            answers.append([payload for _, payload in out + met])
    assert answers[0] == answers[1]


@pytest.mark.chaos
def test_neither_hash_seeds_nor_thread_counts_change_a_byte(embedded_url, feed, expected):
    found = []
    for seed, threads in (("1", "1"), ("2", "2"), ("random", "2")):
        variables = {"PYTHONHASHSEED": seed, "OPENBLAS_NUM_THREADS": threads}
        variables |= {"NUMBA_NUM_THREADS": threads, "OMP_NUM_THREADS": threads}
        with Store(embedded_url, f"{feed}-{seed}", block_ms=20) as store:
            push(store, rows())
            process = Process(command(store.keys.feed, store.url), env=os.environ | variables)
            try:
                found.append(finished(store, len(rows()), seconds=90.0))
                process.terminate()
                assert process.wait(20) == 0
            finally:
                process.kill()
                process.wait()
    assert found == [expected] * 3
