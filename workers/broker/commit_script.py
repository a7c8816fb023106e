"""Keys and arguments of commit.lua, what a commit trims, and the error for each refusal."""

from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import NamedTuple

from workers.broker.pipeline import Argument
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
    way_back,
)
from workers.feed.keys import FeedKeys
from workers.feed.position import next_id
from workers.feed.retention import Added, KeptBytes, Retention, StreamBytes, counted
from workers.feed.state import Commit, FeedState, SnapshotMove
from workers.feed.state_fields import encode_marks

WRONG_TYPE, OUTPUT_AHEAD = b"TYPE", b"OUTPUT"
STREAM_REFUSALS = (WRONG_TYPE, OUTPUT_AHEAD)
"""Codes of streams.lua if an entry cannot be added to a stream."""

_TRIMS_PER_BOUND = 128
"""A stream is trimmed by entries whenever it has grown by 1/128 of its bound; trimming at each
commit would cost one more command."""


class Trimming(NamedTuple):
    """What a commit trims of `out`, `met`, `alarms` and `dlq`, and the counts that it stores."""

    entries: Sequence[int]  # approximate number to keep; 0 keeps all
    upto: Sequence[bytes]  # last ID to trim; empty trims nothing
    counts: Mapping[str, bytes]  # further fields of the state: the bytes that each stream holds


class RetainedOutputs:
    """Counts the bytes that confirmed commits wrote; decides what the next commit trims."""

    def __init__(self, retention: Retention) -> None:
        self.retention = retention
        self.kept = self._before = self._stored = self._sent = KeptBytes()
        self._untrimmed: list[float] = [inf] * len(retention.entries)  # entries since the last trim

    def begin(self, state: FeedState) -> None:
        """Continue from the stored counts of a feed."""
        self.kept = self._stored = state.kept

    def send(self, commit: Commit) -> Trimming:
        """Return what the commit trims and stores; `confirm` it before sending another."""
        self._before, self._sent = self.kept, self._after(commit)
        return Trimming(
            self._entries_due(commit),
            self._sent.trimmed_since(self.kept),
            self._sent.changes(self._stored),
        )

    def confirm(self, commit: Commit) -> None:
        """Record that the last sent commit was confirmed."""
        was_trimmed = self.kept is not self._before
        self.kept = self._after(commit) if was_trimmed else self._sent
        self._stored = self._sent

    def note_trimmed(self, place: int, left: StreamBytes) -> None:
        """Record that the stream at an index of `NAMES` was trimmed; the next commit stores it."""
        self.kept = self.kept.with_stream(place, left)

    def _entries_due(self, commit: Commit) -> list[int]:
        """Return how many entries of each stream to keep; 0 for a stream not trimmed now."""
        added = (len(commit.ids), len(commit.met), len(commit.alarms), len(commit.dlq))
        held = (self.retention.is_held,) * 3 + (False,)
        due = [0] * len(added)
        for place, (bound, count) in enumerate(zip(self.retention.entries, added, strict=True)):
            self._untrimmed[place] += count
            if (
                bound
                and count
                and not held[place]
                and self._untrimmed[place] >= bound // _TRIMS_PER_BOUND
            ):
                due[place], self._untrimmed[place] = bound, 0
        return due

    def _after(self, commit: Commit) -> KeptBytes:
        return self.kept.after(added_by(commit), self.retention.bytes, self.retention.is_held)


def added_by(commit: Commit) -> list[Added | None]:
    """Return the bytes that a commit adds to `out`, `met`, `alarms` and `dlq`."""
    met, alarms = (
        _added([len(payload) for _, payload in each], each[-1][0]) if each else None
        for each in (commit.met, commit.alarms)
    )
    dlq = None
    if commit.dlq:
        sizes = [len(each.code) + len(each.about) + len(each.head) for each in commit.dlq]
        dlq = _added(sizes, commit.dlq[-1].id)
    out = _added([len(payload) for payload in commit.out], commit.ids[-1]) if commit.ids else None
    return [out, met, alarms, dlq]


def _added(sizes: Sequence[int], last: bytes) -> Added:
    return Added(counted(sum(sizes), len(sizes)), last)


def keys_of(commit: Commit, keys: FeedKeys) -> list[str]:
    """Return the keys of a commit, as commit.lua lists them."""
    named = [keys.state, keys.input, *keys.outputs, keys.answered_ids]
    if commit.move is None:
        return named
    return [*named, *commit.move.newest.keys(keys), *commit.move.dropped]


def arguments_of(commit: Commit, trimming: Trimming, keys: FeedKeys) -> list[Argument]:
    """Return the arguments of a commit."""
    after, move = commit.after, commit.move
    args: list[Argument] = [commit.epoch, commit.before.cursor]
    args += [after.seq, after.n, after.digest.hex()]
    args += trimming.entries
    args += [(next_id(last) or last) if last else b"" for last in trimming.upto]
    args += [b"", 0] if move is None else [move.trim, len(move.newest.keys(keys))]
    fields = {**commit.fields, **trimming.counts, **({} if move is None else _pointers(move))}
    args += [len(fields), len(commit.ids)]
    args += [len(commit.met), len(commit.alarms), len(commit.dlq), len(commit.answered_ids)]
    for field in fields.items():
        args += field
    answers: list[Argument] = [b""] * (2 * len(commit.ids))
    answers[::2], answers[1::2] = commit.ids, commit.out
    args += answers
    for pair in (*commit.met, *commit.alarms):
        args += pair
    for dead_letter in commit.dlq:
        args += (dead_letter.id, *dead_letter.fields)
    for change in commit.answered_ids.items():
        args += change
    return args


def _pointers(move: SnapshotMove) -> dict[str, bytes]:
    """Return the fields of the state that point to the snapshots after a move."""
    previous = b"" if move.previous is None else move.previous.encode()
    return {
        "snapshot": move.newest.encode(),
        "previous": previous,
        "marks": encode_marks(move.marks),
    }


def check_refusal(
    commit: Commit,
    reply: Sequence[bytes],
    keys: FeedKeys,
    types: Mapping[str, str],
    can_replay: Callable[[], bool],
) -> None:
    """Raise the error for a refusal; return if the same batch was already committed.

    `types` maps each key to its expected type. `can_replay` returns whether a worker can start from
    a kept snapshot: whether the input after it, up to the cursor, is there. The session can
    continue after PositionMoved, BatchChanged and InvalidStoredSnapshot, but not after the others.
    """
    code, detail = reply[0], [part.decode() for part in reply[1:]]
    if code == b"ALREADY":
        if (int(detail[0]), detail[1]) == (commit.after.seq, commit.after.digest.hex()):
            return
        raise StateLost(
            f"the feed stands at {commit.after.cursor.decode()} with other answers than this "
            "worker's: run online-svm verify to find the first difference"
        )
    if code == b"FENCED" and int(detail[0] or 0) > commit.epoch:
        raise Fenced(
            f"feed {keys.feed!r}: a newer worker (epoch {detail[0]}) has taken over from "
            f"this one (epoch {commit.epoch}); nothing was written"
        )
    if code in (b"FENCED", b"CURSOR"):  # FENCED by an older epoch: Redis lost its last writes
        raise PositionMoved(f"the feed stands elsewhere than at {commit.before.cursor!r}")
    if code == b"INPUT_RECREATED":  # the next take-over checks whether entries were lost
        raise PositionMoved("the input is another stream, or was counted by another server")
    if code == b"GAP":
        raise BatchChanged("the entries after the cursor are not the ones that were read")
    if code == b"DELETED":
        cursor, gone = detail
        forget = f"HSET {keys.state} gone '{gone}'"
        raise InputLost(
            f"input lost: entries of {keys.input} after {cursor} were deleted or trimmed before "
            f"they were read. {_way_on(keys, forget, can_replay)}"
        )
    if code == b"SNAPSHOT":
        raise InvalidStoredSnapshot("the snapshot expired before the commit")
    if code == b"LOST":
        raise lost(keys)
    if code == WRONG_TYPE:
        raise _wrong_type(detail, types)
    if code != OUTPUT_AHEAD:
        raise WorkerError(f"the commit script replied {code!r}: it is of another version")
    raise OutputAhead(
        f"{detail[0]} already holds an entry at or after {detail[1]}, which is still to be "
        "written: something else wrote to it, or its state is behind: "
        f"online-svm verify {keys.feed} --repair"
    )


def lost(keys: FeedKeys) -> StateLost:
    """Return the error for a missing state."""
    return StateLost(f"{keys.state} is gone: {may_be_in_file(keys)}")


def may_be_in_file(keys: FeedKeys) -> str:
    """Return why a state may be gone, and what to try before `reset`."""
    return (
        "Redis was flushed, the key was deleted, or Redis skipped it when it read its append-only "
        "file (its log then says NOPERM). In the last case the file still has it: stop Redis, "
        "start redis-server without the users' file on a copy of the data, and look for the key "
        "there (deploy/redis/README.md, 'A restart'). Otherwise "
        f"{way_back(keys.feed)}"
    )


def input_lost(
    reply: Sequence[bytes], keys: FeedKeys, types: Mapping[str, str], can_replay: Callable[[], bool]
) -> StateLost:
    """Return the error for a refusal of input.lua; further arguments as for `check_refusal`."""
    code, detail = reply[0], [part.decode() for part in reply[1:]]
    if code == WRONG_TYPE:
        return _wrong_type(detail, types)
    recount = f"HDEL {keys.state} added"
    if code == b"GONE":
        extend = f"XGROUP CREATE {keys.input} osvm 0 MKSTREAM, then XSETID {keys.input} {detail[0]}"
        return InputLost(
            f"input lost: {keys.input} ends before {detail[0]}, up to where it was answered: it "
            "was deleted, renamed or made anew, or it expired. "
            f"{_way_on(keys, f'{extend}, then {recount}', can_replay)}"
        )
    return InputLost(
        f"input lost: {keys.input} was deleted or renamed, and made anew, after {detail[0]} was "
        "answered: what it held then and was not answered is gone. "
        f"{_way_on(keys, recount, can_replay)}"
    )


def _way_on(keys: FeedKeys, commands: str, can_replay: Callable[[], bool]) -> str:
    """Return what to do after input was lost; `commands` let a feed go on that needs no replay."""
    if can_replay():
        return (
            f"Put the stream back; or go on without what was not answered: {commands}; or begin "
            f"anew: online-svm reset {keys.feed}"
        )
    return (
        "Put the stream back. Without it a worker cannot start, because entries that were answered "
        f"after the newest snapshot are gone, too: {way_back(keys.feed)}"
    )


def _wrong_type(detail: Sequence[str], types: Mapping[str, str]) -> WrongKeyType:
    return WrongKeyType(
        f"{detail[0]} holds a {detail[1]}, not a {types[detail[0]]}: "
        "move that key away, or use another feed name"
    )
