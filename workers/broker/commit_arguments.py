"""Keys and arguments of a commit; commit.lua lists them."""

from workers.broker.pipeline import Argument
from workers.feed.commit import Commit, Retention, SnapshotMove
from workers.feed.keys import FeedKeys
from workers.feed.state import encode_marks


def keys_of(commit: Commit, keys: FeedKeys) -> list[str]:
    """Return the keys of a commit."""
    named = [keys.state, keys.input, *keys.outputs]
    if commit.move is None:
        return named
    return [*named, *commit.move.newest.keys(keys), *commit.move.dropped]


def arguments_of(commit: Commit, keep: Retention, reads_input: bool) -> list[Argument]:
    """Return the arguments of a commit.

    Parameters
    ----------
    commit : Commit
    keep : Retention
    reads_input : bool
        Whether the feed answers what is in `in`.
    """
    after, move = commit.after, commit.move
    args: list[Argument] = [commit.epoch, commit.before.cursor]
    args += [after.seq, after.n, after.digest.hex()]
    args += [keep.out, keep.met, keep.alarms, keep.dlq]
    args += [int(reads_input)]
    args += [b"", 0] if move is None else [move.trim, move.newest.parts]
    fields = {**commit.fields, **({} if move is None else _pointers(move))}
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
