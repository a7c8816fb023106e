"""Isotonic values next to a score, from pooled buckets, against one pass over all examples."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from online_svm.venn.pooled_scores import insert, isotonic_pair, pooled, remove, with_room


def one_pass(scores: list[float], hits: list[int], score: float, label: int) -> float:
    """Return the isotonic value at `score` once an example with `label` joins.

    The pass by which answers were once computed: pool-adjacent-violators from the left over all
    examples, on a stack of blocks (positives, examples), of which `at` is the one of the example.
    """
    order = np.argsort(scores)
    stack: list[tuple[int, int]] = []
    i, at, size = 0, -1, len(scores)
    while i < size or at < 0:
        joins = at < 0 and (i == size or score <= scores[order[i]])
        value = score if joins else scores[order[i]]
        hit, total = (label, 1) if joins else (0, 0)
        while i < size and scores[order[i]] == value:
            hit += hits[order[i]]
            total += 1
            i += 1
        while stack and stack[-1][0] * total >= hit * stack[-1][1]:
            joins = joins or at == len(stack) - 1
            hit, total = hit + stack[-1][0], total + stack[-1][1]
            stack.pop()
        stack.append((hit, total))
        if joins:
            at = len(stack) - 1
    return stack[at][0] / stack[at][1]


def check_walk(seed: int, first: int, steps: int, decimals: int, slope: float, keep: int) -> None:
    """Insert, remove and ask at random; hold every value to the pass over all examples."""
    rng = np.random.default_rng(seed)

    def draw(n: int) -> tuple[np.ndarray, np.ndarray]:
        scores = rng.normal(size=n).round(decimals)
        return scores, (rng.random(n) < 1 / (1 + np.exp(-slope * scores))).astype(np.int64)

    scores, hits = draw(first)
    lists = pooled(scores[:, None], hits[:, None] == 1)
    held = list(zip(scores.tolist(), hits.tolist(), strict=True))
    pair, work = np.empty(2), np.empty((4, first + steps + 1), dtype=np.int64)
    for score, hit in zip(*draw(steps), strict=True):
        asked = float(score) if rng.random() < 0.5 else float(rng.normal())
        isotonic_pair(lists, 0, asked, work, pair)
        values, labels = [s for s, _ in held], [y for _, y in held]
        assert pair.tolist() == [one_pass(values, labels, asked, label) for label in (0, 1)]
        lists = with_room(lists, 1)
        insert(lists, 0, float(score), int(hit))
        held.append((float(score), int(hit)))
        while len(held) > keep:
            remove(lists, 0, *held.pop(int(rng.integers(len(held)))))
        assert lists.sizes[0] == len(held)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    first=st.integers(0, 150),
    decimals=st.integers(0, 3),
    slope=st.sampled_from([0.0, 1.0, 5.0, -2.0, 50.0]),
    keep=st.integers(0, 200),
)
def test_values_are_those_of_one_pass_under_inserts_removals_and_ties(
    seed: int, first: int, decimals: int, slope: float, keep: int
) -> None:
    check_walk(seed, first, 60, decimals, slope, keep)


@pytest.mark.parametrize("decimals", [1, 12])
def test_values_are_those_of_one_pass_while_buckets_split_fill_and_empty(decimals: int) -> None:
    check_walk(1, 0, 700, decimals, 2.0, 450)
    check_walk(2, 1200, 60, decimals, 2.0, 100)  # nearly all leave at once


def test_buckets_follow_scores_that_drift_out_of_those_there_were() -> None:
    lists = pooled(np.arange(100.0)[:, None], np.arange(100)[:, None] % 3 == 0)
    pair, work = np.empty(2), np.empty((4, 102), dtype=np.int64)
    for i in range(100, 1500):
        lists = with_room(lists, 1)
        insert(lists, 0, float(i), int(i % 3 == 0))
        remove(lists, 0, float(i - 100), int((i - 100) % 3 == 0))
        if i % 50 == 0:
            held = list(range(i - 99, i + 1))
            labels = [int(j % 3 == 0) for j in held]
            isotonic_pair(lists, 0, i - 30.5, work, pair)
            assert pair.tolist() == [one_pass(held, labels, i - 30.5, j) for j in (0, 1)]
    assert lists.sizes[0] == 100
    assert lists.in_use[0] <= 10  # those that emptied were given up


def test_minus_zero_ties_with_zero() -> None:
    lists = with_room(pooled(np.array([[0.0]]), np.array([[True]])), 1)
    insert(lists, 0, -0.0, 0)
    assert lists.totals[0, 0, 0] == 2
