"""Which shard owns a feed, and what `--shard i/n` takes."""

from collections import Counter

import pytest
from scipy.stats import chisquare

from workers.errors import BadConfiguration
from workers.feed.selection import MAX_SHARDS, Shard, owner

FEEDS = [f"sensors-{number}" for number in range(4000)]


@pytest.mark.parametrize("shards", [2, 3, 7, 16])
def test_feeds_are_spread_as_evenly_as_by_chance(shards):
    counts = Counter(owner(feed, shards) for feed in FEEDS)
    assert chisquare([counts[shard] for shard in range(shards)]).pvalue > 0.001


@pytest.mark.parametrize(("before", "after"), [(1, 2), (3, 4), (4, 16)])
def test_feeds_move_to_new_shards_only_and_no_more_of_them_than_must(before, after):
    moved = [feed for feed in FEEDS if owner(feed, before) != owner(feed, after)]
    assert all(owner(feed, after) >= before for feed in moved)
    # A new shard takes over one in `after` feeds: within 4 standard deviations of a binomial.
    share = (after - before) / after
    deviation = (len(FEEDS) * share * (1 - share)) ** 0.5
    assert abs(len(moved) - len(FEEDS) * share) < 4 * deviation


def test_the_owners_are_those_of_the_first_release():
    # Other owners would move every feed of a fleet in the middle of a rolling upgrade.
    assert [owner(feed, 5) for feed in FEEDS[:12]] == [1, 4, 2, 3, 3, 0, 4, 3, 4, 4, 1, 4]


@pytest.mark.parametrize(
    ("host", "index"),
    [
        ("online-svm-worker-0", 0),
        ("online-svm-worker-3", 3),
        ("w-007", 7),
        ("worker-2.online-svm-worker.fraud.svc.cluster.local", 2),
    ],
)
def test_the_ordinal_is_the_number_that_ends_the_host_name(host, index):
    assert Shard.parse("auto/8", host) == Shard(index, 8)


NO_SHARDS = ["", "1", "1/", "/4", "1/0", "-1/4", "1/4/2", "a/4", "1 /4", "٣/4", "auto", "auto/"]
NO_SHARDS += ["Auto/4", "1/4\n", "1/1e3", "9" * 400]


@pytest.mark.parametrize("text", NO_SHARDS)
def test_what_is_no_shard_is_refused_and_told_in_one_line(text):
    with pytest.raises(BadConfiguration, match=r"^--shard .*") as raised:
        Shard.parse(text, "worker-0")
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 250


@pytest.mark.parametrize("text", ["4/4", "9/4"])
def test_a_shard_that_is_not_below_n_is_refused_with_the_range(text):
    with pytest.raises(BadConfiguration, match="i must be from 0 to 3"):
        Shard.parse(text)


def test_a_pod_beyond_n_stands_by_while_a_statefulset_shrinks():
    beyond = Shard.parse("auto/4", "worker-4")
    assert not any(beyond.owns(feed) for feed in FEEDS)


def test_a_host_without_an_ordinal_is_named():
    with pytest.raises(BadConfiguration, match=r"name 'laptop' ends in no number"):
        Shard.parse("auto/4", "laptop")


def test_the_number_of_shards_is_bounded():
    assert Shard.parse(f"0/{MAX_SHARDS}").count == MAX_SHARDS
    with pytest.raises(BadConfiguration, match=f"n must be from 1 to {MAX_SHARDS}"):
        Shard.parse(f"0/{MAX_SHARDS + 1}")
