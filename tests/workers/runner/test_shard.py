"""`--shard i/n`: what is taken, what is refused, and where the ordinal comes from."""

import pytest

from workers.errors import BadConfiguration
from workers.runner.shard import MOST, Shard

FEEDS = [f"sensors-{number}" for number in range(300)]


@pytest.mark.parametrize("count", [1, 2, 5])
def test_each_feed_has_one_owner(count):
    shards = [Shard.parse(f"{index}/{count}") for index in range(count)]
    assert all(sum(shard.owns(feed) for shard in shards) == 1 for feed in FEEDS)


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
    assert Shard.parse(f"0/{MOST}").count == MOST
    with pytest.raises(BadConfiguration, match=f"n must be from 1 to {MOST}"):
        Shard.parse(f"0/{MOST + 1}")
