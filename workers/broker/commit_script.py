"""Keys and arguments of a commit, and the errors that its refusals mean; commit.lua lists them."""

from collections.abc import Mapping, Sequence

from workers.broker.pipeline import Argument
from workers.broker.retained_outputs import Trimming
from workers.errors import (
    BatchChanged,
    Fenced,
    InputLost,
    InvalidStoredSnapshot,
    OutputAhead,
    PositionMoved,
    StateLost,
    WorkerError,
    WrongKeyType,
)
from workers.feed.commit import Commit, SnapshotMove
from workers.feed.keys import FeedKeys
from workers.feed.position import Position, next_id
from workers.feed.state_fields import encode_marks


def keys_of(commit: Commit, keys: FeedKeys) -> list[str]:
    """Return the keys of a commit."""
    named = [keys.state, keys.input, *keys.outputs]
    if commit.move is None:
        return named
    return [*named, *commit.move.newest.keys(keys), *commit.move.dropped]


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


def refused(
    commit: Commit, reply: Sequence[bytes], keys: FeedKeys, types: Mapping[str, str]
) -> None:
    """Raise the error that a refusal means; return if the batch was committed before.

    Parameters
    ----------
    commit : Commit
    reply : sequence of bytes
        The code, then its details.
    keys : FeedKeys
    types : mapping of str to str
        The type that each key should have.

    Raises
    ------
    Fenced
        If a newer worker owns the feed.
    PositionMoved, BatchChanged, InvalidStoredSnapshot
        If the session can continue after reading its position again.
    StateLost, InputLost, OutputAhead, WrongKeyType
        If the feed cannot be continued.
    """
    code, detail = reply[0], [part.decode() for part in reply[1:]]
    if code == b"ALREADY":
        _check_same(commit.after, *detail)
        return
    if code == b"FENCED" and int(detail[0] or 0) > commit.epoch:
        raise Fenced(
            f"feed {keys.feed!r}: a newer worker (epoch {detail[0]}) has taken over from "
            f"this one (epoch {commit.epoch}); nothing was written"
        )
    if code in (b"FENCED", b"CURSOR"):  # an older epoch: Redis lost its last writes
        raise PositionMoved(f"the feed stands elsewhere than at {commit.before.cursor!r}")
    if code == b"ANEW":  # the take-over tells whether that is a loss
        raise PositionMoved("the input is another stream, or was counted by another server")
    if code == b"GAP":
        raise BatchChanged("the entries after the cursor are not the ones that were read")
    if code == b"DELETED":
        raise InputLost(_unread(keys, *detail))
    if code == b"SNAPSHOT":
        raise InvalidStoredSnapshot("the snapshot expired before the commit")
    if code == b"LOST":
        raise lost(keys)
    if code == b"TYPE":
        raise _wrong_type(detail, types)
    if code != b"OUTPUT":
        raise WorkerError(f"the commit script replied {code!r}: it is of another version")
    raise OutputAhead(
        f"{detail[0]} already holds an entry at or after {detail[1]}, which is still to be "
        "written: something else wrote to it, or its state is behind: "
        f"online-svm verify {keys.feed} --repair"
    )


def lost(keys: FeedKeys) -> StateLost:
    """Return the error for a feed whose state is gone."""
    return StateLost(f"{keys.state} is gone: {may_be_in_file(keys)}")


def may_be_in_file(keys: FeedKeys) -> str:
    """Return why a state may be gone, and what to try first: `reset` would complete the loss."""
    return (
        "Redis was flushed, the key was deleted, or Redis skipped it when it read its append-only "
        "file (its log then says NOPERM). In the last case the file still has it: stop Redis, "
        "start redis-server without the users' file on a copy of the data, and look for the key "
        "there (deploy/redis/README.md, 'A restart'). Otherwise restore it from a backup; or give "
        f"it up and begin anew with: online-svm reset {keys.feed}"
    )


def input_lost(reply: Sequence[bytes], keys: FeedKeys, types: Mapping[str, str]) -> StateLost:
    """Return the error that an input means which is not the stream that the feed answered.

    Parameters
    ----------
    reply : sequence of bytes
        Code, and its details; input.lua lists them.
    keys : FeedKeys
    types : mapping of str to str
        The type that each key should have.
    """
    code, detail = reply[0], [part.decode() for part in reply[1:]]
    if code == b"TYPE":
        return _wrong_type(detail, types)
    recount = f"HDEL {keys.state} added"
    if code == b"GONE":
        return InputLost(
            f"input lost: {keys.input} ends before {detail[0]}, up to where it was answered: it "
            "was deleted, renamed or made anew. Put the stream back; or go on without what was "
            f"not answered: XGROUP CREATE {keys.input} osvm 0 MKSTREAM, then XSETID {keys.input} "
            f"{detail[0]}, then {recount}; or: online-svm reset {keys.feed}"
        )
    return InputLost(
        f"input lost: {keys.input} was deleted or renamed, and made anew, after {detail[0]} was "
        "answered: what it held then and was not answered is gone. Put the stream back; or go on "
        f"with what it holds now: {recount}; or: online-svm reset {keys.feed}"
    )


def _wrong_type(detail: Sequence[str], types: Mapping[str, str]) -> WrongKeyType:
    return WrongKeyType(
        f"{detail[0]} holds a {detail[1]}, not a {types[detail[0]]}: "
        "move that key away, or use another feed name"
    )


def _check_same(after: Position, seq: str, digest: str) -> None:
    if (int(seq), digest) != (after.seq, after.digest.hex()):
        raise StateLost(
            f"the feed stands at {after.cursor.decode()} with other answers than this worker's: "
            "run online-svm verify to find the first difference"
        )


def _unread(keys: FeedKeys, cursor: str, gone: str) -> str:
    return (
        f"input lost: entries of {keys.input} after {cursor} were deleted or trimmed before they "
        "were read. Put the stream back from a backup; or go on without them: "
        f"HSET {keys.state} gone '{gone}'; or: online-svm reset {keys.feed}"
    )
