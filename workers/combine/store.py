"""The feed that a combination writes: one fenced writer, one script a commit."""

import json
from collections.abc import Sequence

from workers.broker.commit_replies import refused
from workers.broker.pipeline import Argument
from workers.broker.script import Script
from workers.broker.store import Store
from workers.combine.join import Mark
from workers.errors import StateLost
from workers.feed.commit import Commit
from workers.feed.state_fields import MAX_COUNT, entry_id

_COMMIT = Script.load("streams", "combine")


class TargetStore(Store):
    """Keys of the written feed; see `Store`."""

    reads_input = False

    def commit_joined(self, commit: Commit, joined: bytes, combiner: bytes) -> None:
        """Write a batch with where its sources stand, all or nothing; again is fine.

        Parameters
        ----------
        commit : Commit
            With at least one answer; `met` and `move` are not used.
        joined : bytes
            See `encode_joined`.
        combiner : bytes
            Snapshot of the combiner after the batch.

        Raises
        ------
        Fenced
            If a newer writer owns the feed.
        PositionMoved
            If nothing was written and one can go on after reading again.
        StateLost, OutputAhead, WrongKeyType
            If nothing was written and the feed cannot be continued.
        """
        keys = [self.keys.state, self.keys.out, self.keys.dlq]
        reply = self._connection.evaluate(
            _COMMIT, keys, self._joined_args(commit, joined, combiner)
        )
        if reply[0] != b"OK":
            refused(commit, reply, self.keys, self.expected_types())

    def joined(self) -> tuple[bytes | None, bytes | None]:
        """Return what the last commit stored: where the sources stand, and the combiner."""
        joined, combiner = self.call("HMGET", self.keys.state, "joined", "combiner")
        return joined, combiner

    def _joined_args(self, commit: Commit, joined: bytes, combiner: bytes) -> list[Argument]:
        after, keep = commit.after, self.retention
        args: list[Argument] = [commit.epoch, commit.before.cursor, after.seq, after.n]
        args += [after.digest.hex(), joined, combiner, keep.out, keep.dlq]
        args += [len(commit.ids), len(commit.dlq)]
        for pair in zip(commit.ids, commit.out, strict=True):
            args += pair
        for letter in commit.dlq:
            args += (letter.id, letter.code, letter.reason, letter.size, letter.head)
        return args


def encode_joined(marks: Sequence[Mark], letters: int) -> bytes:
    """Return the marks of the sources and the count of dead letters as they are stored.

    Examples
    --------
    >>> encode_joined([Mark(b"5-0", 3, (4,))], 2)
    b'{"letters":2,"marks":[["5-0",3,[4]]]}'
    """
    stored = [(mark.cursor.decode(), mark.seq, mark.taken) for mark in marks]
    return json.dumps({"letters": letters, "marks": stored}, separators=(",", ":")).encode()


def decode_joined(text: bytes) -> tuple[list[Mark], int]:
    """Return what `encode_joined` was given.

    Raises
    ------
    StateLost
        If it is damaged.

    Examples
    --------
    >>> decode_joined(encode_joined([Mark(b"5-0", 3, (4,))], 2))
    ([Mark(cursor=b'5-0', seq=3, taken=(4,))], 2)
    """
    try:
        stored = json.loads(text)
        marks = [
            Mark(entry_id(cursor.encode()), _place(seq), tuple(_place(other) for other in taken))
            for cursor, seq, taken in stored["marks"]
        ]
        return marks, _place(stored["letters"])
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise StateLost(
            f"where the combination stands in its sources is damaged ({str(error)[:100]!r}): "
            "restore it from a backup, or reset the feed"
        ) from error


def _place(value: object) -> int:
    """Return a number of entries; anything else, such as 1.5 or true, was not written here."""
    if type(value) is not int or not 0 <= value <= MAX_COUNT:
        raise ValueError(f"not a number from 0 to {MAX_COUNT}")
    return value
