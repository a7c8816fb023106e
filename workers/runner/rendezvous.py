"""Rendezvous hashing: which of n shards owns a feed.

Each shard has a weight for each feed, a hash of both names. The shard with the largest weight owns
the feed. A shard that is added takes over exactly the feeds for which its weight is the largest,
on average one in n, and no other feed moves; one that is taken away leaves its feeds to others,
and no other feed moves (Thaler and Ravishankar, 1998, IEEE/ACM Transactions on Networking 6(1)).
"""

from hashlib import blake2b


def weight(feed: str, shard: int) -> int:
    """Return the weight of a shard for a feed: 64 bits, the same in each process and version.

    Examples
    --------
    >>> weight("fraud", 0) == weight("fraud", 0) != weight("fraud", 1)
    True
    """
    text = f"{shard}/{feed}".encode()
    return int.from_bytes(blake2b(text, digest_size=8, person=b"osvm-shard").digest(), "big")


def owner(feed: str, shards: int) -> int:
    """Return the shard that owns a feed, 0 to `shards - 1`.

    Parameters
    ----------
    feed : str
    shards : int
        At least 1.

    Examples
    --------
    With one shard more a feed stays where it is, or moves to the new shard.

    >>> [owner(feed, 3) for feed in ("fraud", "returns", "sensors-1")]
    [1, 1, 2]
    >>> [owner(feed, 4) for feed in ("fraud", "returns", "sensors-1")]
    [1, 1, 3]
    """
    # A tie goes to the lower shard: 1 in 2 ** 64, but it must have an answer.
    return max(range(shards), key=lambda shard: (weight(feed, shard), -shard))
