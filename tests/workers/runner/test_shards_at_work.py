"""Processes that answer one shard each: every feed once, and the bytes of a lone worker."""

import signal
import threading
import time
from contextlib import ExitStack

import pytest
from fleet_feeds import FLAGS, begun, fleet_feeds
from many_feeds import running
from world import Worker, wait_until

from workers.broker.store import Store
from workers.feed.selection import Selection, Shard

COUNT = 120
LEASE = 5.0
REPLAY = 5.0
"""Seconds that the replays of a process take, on a machine that does much else."""

STEADY = 3.0
"""Seconds between two replacements."""

WAITS = "waiting for the lease"
"""What a process logs of each feed that another one answers."""


def test_shards_answer_each_feed_once_between_them(redis_url, feed):
    with fleet_feeds(redis_url, feed, 6, COUNT) as feeds, ExitStack() as opened:
        feeds.push(80)
        for index in range(2):
            selection = Selection([f"{feed}-?"], Shard(index, 2).owns)
            opened.enter_context(running([], redis_url, selection=selection))
        wait_until(feeds.is_answered)
        assert [begun(store) for store in feeds.stores] == [[1]] * 6
        opened.close()
        feeds.check(redis_url)


@pytest.mark.parametrize("shard", ["2", "4/4", "auto/0", "1/2/3"])
def test_a_wrong_shard_ends_the_command_in_one_line(run, shard):
    code, _, complaint = run("worker", "a-*", "--shard", shard)
    assert code == 2
    assert complaint.startswith("online-svm: --shard ")
    assert shard in complaint
    assert complaint.count("\n") == 1


class Shards(ExitStack):
    """Processes of `online-svm worker`, one a shard; those that still run in the end are killed."""

    def __init__(self, url, pattern, feeds):
        super().__init__()
        self._names = [store.keys.feed for store in feeds.stores]
        self._command = ["worker", pattern, "--redis", url, "--quiet", *FLAGS, "--lease", LEASE]
        self._workers = {}

    def begin(self, index, count):
        worker = Worker(*self._command, "--shard", f"{index}/{count}")
        self._workers[index] = self.enter_context(worker)
        return worker

    def stand_by(self, index, count):
        """Begin the process of a shard whose feeds others answer; return when it waits for them."""
        worker, shard = self.begin(index, count), Shard(index, count)
        number = sum(map(shard.owns, self._names))
        wait_until(lambda: worker.said.count(WAITS) >= number, 60, "it stands by")

    def replace(self, index, count, number=signal.SIGTERM):
        """Begin another process of a shard, which stands by; then end the old one."""
        old = self._workers.pop(index)
        self.stand_by(index, count)
        old.send_signal(number)
        assert old.wait() == (0 if number == signal.SIGTERM else -number)
        time.sleep(STEADY)

    def end(self, index):
        self._workers.pop(index).stopped()


class Gaps:
    """Looks at feeds again and again: the longest time in which one answered nothing.

    Attributes
    ----------
    longest : float
    """

    def __init__(self, feeds):
        self._names = [(store.url, store.keys.feed) for store in feeds.stores]
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self.longest = 0.0

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        self._thread.join()

    def _watch(self):
        with ExitStack() as opened:
            stores = [opened.enter_context(Store(*name)) for name in self._names]
            seqs, moved = [-1] * len(stores), [time.monotonic()] * len(stores)
            while not self._ended.wait(0.02):
                for number, store in enumerate(stores):
                    seq, now = store.state().position.seq, time.monotonic()
                    self.longest = max(self.longest, now - moved[number])
                    if seq != seqs[number]:
                        seqs[number], moved[number] = seq, now


@pytest.mark.scale
@pytest.mark.timeout(300)
def test_a_rolling_upgrade_leaves_no_feed_longer_than_its_lease_and_replay(own_redis, feed):
    with (
        fleet_feeds(own_redis.url, feed, 8, 6000) as feeds,
        Shards(own_redis.url, f"{feed}-*", feeds) as workers,
    ):
        for index in range(3):
            workers.begin(index, 3)
        feeds.push(40)
        wait_until(feeds.is_answered, 60, "the first entries are answered")
        with feeds.under_load(0.1):
            before = [len(begun(store)) for store in feeds.stores]
            with Gaps(feeds) as gaps:
                for index in range(3):
                    workers.replace(index, 3)
            print(f"replaced one by one: no feed waited longer than {gaps.longest:.1f} s")
            assert gaps.longest < LEASE
            assert [len(begun(store)) for store in feeds.stores] == [n + 1 for n in before]
            # The same by force: there is something to replay.
            with Gaps(feeds) as killed:
                for index in range(3):
                    workers.replace(index, 3, signal.SIGKILL)
            print(f"killed one by one: no feed waited longer than {killed.longest:.1f} s")
            assert killed.longest < LEASE + REPLAY
        wait_until(feeds.is_answered, 60, "all entries are answered")
        for index in range(3):
            workers.end(index)
        feeds.check(own_redis.url)
