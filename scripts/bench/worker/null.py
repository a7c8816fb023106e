"""The null workers: they move messages and compute nothing.

One answers with a command an entry, in a transaction; the other with one script call a batch, as
our worker commits. `python -m scripts.bench.worker.null URL FEED BYTES` is the first of the two: it
reads the feed's input and answers each entry with a payload of so many bytes, until it is
terminated.
"""

import sys
from typing import Any

import redis

from workers.feed.keys import FeedKeys

GROUP = "null"
BATCH = 256


def answer_next(
    client: redis.Redis, keys: FeedKeys, payload: bytes, block: int | None = None
) -> int:
    """Read entries, answer all with the same payload, acknowledge them; return how many."""
    # Any: redis-py declares every shape that any reply of any protocol may have.
    reply: Any = client.xreadgroup(GROUP, "one", {keys.input: ">"}, count=BATCH, block=block)
    if not reply:
        return 0
    ids = [entry_id for entry_id, _ in reply[0][1]]
    with client.pipeline(transaction=True) as pipeline:
        for entry_id in ids:
            pipeline.xadd(keys.out, {"p": payload}, id=entry_id)
        pipeline.xack(keys.input, GROUP, *ids)
        pipeline.execute()
    return len(ids)


_ANSWER = """
for i = 2, #ARGV do redis.call('XADD', KEYS[2], ARGV[i], 'p', ARGV[1]) end
return redis.call('XACK', KEYS[1], 'null', unpack(ARGV, 2))
"""


def answer_by_script(client: redis.Redis, keys: FeedKeys, payload: bytes) -> int:
    """Do `answer_next` with one script call for all answers of a batch."""
    reply: Any = client.xreadgroup(GROUP, "one", {keys.input: ">"}, count=BATCH)
    if not reply:
        return 0
    ids = [entry_id for entry_id, _ in reply[0][1]]
    client.register_script(_ANSWER)(keys=[keys.input, keys.out], args=[payload, *ids])
    return len(ids)


if __name__ == "__main__":
    own = FeedKeys(sys.argv[2])
    with redis.Redis.from_url(sys.argv[1], protocol=2) as connected:
        connected.xgroup_create(own.input, GROUP, "0", mkstream=True)
        while True:
            answer_next(connected, own, b"x" * int(sys.argv[3]), block=1000)
