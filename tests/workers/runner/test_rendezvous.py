"""Which shard owns a feed: spread evenly, the same everywhere, and moved no more than must be."""

import subprocess
import sys
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from processes import LIMIT
from scipy.stats import chisquare

from workers.runner.shard import owner, weight

FEEDS = [f"sensors-{number}" for number in range(4000)]


@pytest.mark.parametrize("shards", [2, 3, 7, 16])
def test_feeds_are_spread_as_evenly_as_by_chance(shards):
    counts = Counter(owner(feed, shards) for feed in FEEDS)
    assert chisquare([counts[shard] for shard in range(shards)]).pvalue > 0.001


def test_one_shard_owns_everything():
    assert {owner(feed, 1) for feed in FEEDS[:50]} == {0}


@pytest.mark.parametrize(("before", "after"), [(1, 2), (3, 4), (4, 16)])
def test_feeds_move_to_new_shards_only_and_no_more_of_them_than_must(before, after):
    moved = [feed for feed in FEEDS if owner(feed, before) != owner(feed, after)]
    assert all(owner(feed, after) >= before for feed in moved)
    # A new shard takes over one in `after` feeds: within 4 standard deviations of a binomial.
    share = (after - before) / after
    deviation = (len(FEEDS) * share * (1 - share)) ** 0.5
    assert abs(len(moved) - len(FEEDS) * share) < 4 * deviation


@pytest.mark.parametrize(("before", "after"), [(2, 1), (4, 3), (16, 4)])
def test_only_the_feeds_of_removed_shards_move(before, after):
    stayed = [feed for feed in FEEDS if owner(feed, before) < after]
    assert all(owner(feed, before) == owner(feed, after) for feed in stayed)


@given(st.text(min_size=1, max_size=64), st.integers(1, 40))
def test_the_owner_has_the_largest_weight(feed, shards):
    weights = [weight(feed, shard) for shard in range(shards)]
    assert weights.index(max(weights)) == owner(feed, shards)


@pytest.mark.parametrize("seed", ["0", "4711"])
def test_every_process_finds_the_same_owner(seed):
    code = (
        "from workers.runner.shard import owner\n"
        "print([owner(f'sensors-{number}', 7) for number in range(200)])"
    )
    told = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
        capture_output=True, text=True, timeout=LIMIT, check=True,
    )  # fmt: skip
    assert told.stdout.strip() == str([owner(feed, 7) for feed in FEEDS[:200]])


def test_the_owners_are_those_of_the_first_release():
    # Other owners would move every feed of a fleet in the middle of a rolling upgrade.
    assert [owner(feed, 5) for feed in FEEDS[:12]] == [1, 4, 2, 3, 3, 0, 4, 3, 4, 4, 1, 4]
