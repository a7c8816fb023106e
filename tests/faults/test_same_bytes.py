"""Neither the IDs of the entries nor the process that answers them is part of an answer."""

import os

import pytest
from world import World

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


@pytest.mark.servers("embedded")
def test_answers_are_in_the_order_of_the_ids_whatever_the_clock_did(world):
    world.push(COUNT)
    world.answer()
    odd, numbers = world.beside("odd"), [*ids(COUNT)]
    for number, fields in zip(numbers, odd.entries, strict=False):
        odd.store.call("XADD", odd.store.keys.input, number, *fields)
    odd.answer(COUNT, batch=7, snapshot_every=25)
    odd.answer(COUNT)  # a replay ends at the same digest, or this one raises
    assert [entry_id.decode() for entry_id, _ in odd.payloads()[0]] == numbers
    even, others = ([[p for _, p in kind] for kind in each.payloads()] for each in (world, odd))
    assert even == others


@pytest.mark.chaos
def test_neither_hash_seeds_nor_thread_counts_change_a_byte(embedded_url, feed, expected):
    for seed, threads in (("1", "1"), ("2", "2"), ("random", "2")):
        variables = {"PYTHONHASHSEED": seed, "OPENBLAS_NUM_THREADS": threads}
        variables |= {"NUMBA_NUM_THREADS": threads, "OMP_NUM_THREADS": threads}
        with World(embedded_url, f"{feed}-{seed}") as world:
            world.push()
            worker = world.worker("--quiet", "--accept-environment", env=os.environ | variables)
            worker.wait_for(world.store, world.pushed, 90.0)
            worker.stopped()
            assert world.outcome() == expected
