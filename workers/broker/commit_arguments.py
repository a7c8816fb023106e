"""Keys and arguments of a commit; commit.lua lists them."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from workers.broker.pipeline import Argument
from workers.feed.commit import Commit, SnapshotMove
from workers.feed.kept_bytes import Added, counted
from workers.feed.keys import FeedKeys
from workers.feed.marks import encode_marks
from workers.feed.position import next_id


def keys_of(commit: Commit, keys: FeedKeys) -> list[str]:
    """Return the keys of a commit."""
    named = [keys.state, keys.input, *keys.outputs]
    if commit.move is None:
        return named
    return [*named, *commit.move.newest.keys(keys), *commit.move.dropped]


class Trimming(NamedTuple):
    """What a commit trims of `out`, `met`, `alarms` and `dlq`, and the counts that it stores.

    Attributes
    ----------
    entries : sequence of 4 int
        To keep, about; 0 keeps all.
    upto : sequence of 4 bytes
        IDs up to which entries go; empty where none do.
    counts : mapping of str to bytes
        Further fields of the state: how many bytes these streams hold.
    """

    entries: Sequence[int]
    upto: Sequence[bytes]
    counts: Mapping[str, bytes]


def added_by(commit: Commit) -> list[Added | None]:
    """Return what a commit adds to `out`, `met`, `alarms` and `dlq`, as the kept bytes count it."""
    met, alarms = (
        _added([len(payload) for _, payload in each], each[-1][0]) if each else None
        for each in (commit.met, commit.alarms)
    )
    dlq = None
    if commit.dlq:
        sizes = [len(each.code) + len(each.reason) + len(each.head) for each in commit.dlq]
        dlq = _added(sizes, commit.dlq[-1].id)
    out = _added([len(payload) for payload in commit.out], commit.ids[-1]) if commit.ids else None
    return [out, met, alarms, dlq]


def _added(sizes: Sequence[int], last: bytes) -> Added:
    return Added(counted(sum(sizes), len(sizes)), last)


def arguments_of(commit: Commit, trimming: Trimming, reads_input: bool) -> list[Argument]:
    """Return the arguments of a commit.

    Parameters
    ----------
    commit : Commit
    trimming : Trimming
    reads_input : bool
        Whether the feed answers what is in `in`.
    """
    after, move = commit.after, commit.move
    args: list[Argument] = [commit.epoch, commit.before.cursor]
    args += [after.seq, after.n, after.digest.hex()]
    args += trimming.entries
    args += [(next_id(last) or last) if last else b"" for last in trimming.upto]
    args += [int(reads_input)]
    args += [b"", 0] if move is None else [move.trim, move.newest.parts]
    fields = {**commit.fields, **trimming.counts, **({} if move is None else _pointers(move))}
    args += [len(fields), len(commit.ids)]
    args += [len(commit.met), len(commit.alarms), len(commit.dlq)]
    for field in fields.items():
        args += field
    answers: list[Argument] = [b""] * (2 * len(commit.ids))
    answers[::2], answers[1::2] = commit.ids, commit.out
    args += answers
    for pair in (*commit.met, *commit.alarms):
        args += pair
    for dead_letter in commit.dlq:
        args += (dead_letter.id, dead_letter.code, dead_letter.reason)
        args += (dead_letter.size, dead_letter.head)
    return args


def _pointers(move: SnapshotMove) -> dict[str, bytes]:
    """Return the fields of the state that name the snapshots after a move."""
    previous = b"" if move.previous is None else move.previous.encode()
    return {
        "snapshot": move.newest.encode(),
        "previous": previous,
        "marks": encode_marks(move.marks),
    }
