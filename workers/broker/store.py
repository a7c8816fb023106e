"""The scripts that write a feed: nothing else writes its state."""

from collections.abc import Iterator, Sequence
from typing import Any

from workers.broker.batch_size import Entry
from workers.broker.commit_script import arguments_of, input_lost, keys_of, lost, refused
from workers.broker.connection import Connection
from workers.broker.feed_reader import FeedReader, pairs_of
from workers.broker.pipeline import Sent
from workers.broker.retained_outputs import RetainedOutputs
from workers.broker.script import Script
from workers.errors import Fenced, WrongKeyType
from workers.feed.commit import Commit
from workers.feed.keys import ALARM, FIELD, REGISTRY
from workers.feed.output_retention import Retention
from workers.feed.publication import Publication
from workers.feed.state import Agreement, FeedState, Pointer, initial_fields
from workers.log import Logger
from workers.message.event import KEPT, EventCode, encode_event
from workers.stop import Stop

log = Logger("online_svm.worker")

# If the worker dies before a commit points at its snapshot, the snapshot expires.
_UNREFERENCED_SECONDS = 3600

_REPLACED_SECONDS = 10
"""A scorer reads a published state in milliseconds."""

_COMMIT = Script.load("streams", "input", "commit")
_FENCE = Script.load("streams", "input", "fence")
_CHECK_INPUT = Script.load("streams", "input", "check_input", name="check-input")
_ADOPT = Script.load("adopt_environment", name="adopt")
_PUBLISH = Script.load("publish")
_PUT = Script.load("put_snapshot", name="put")

_UNCOUNTED = (
    "this input was not counted so far, or by another server: entries that were taken from it "
    "unread before are not missed"
)


class Store(FeedReader):
    """A feed that is also written.

    Parameters
    ----------
    url, feed, stop, patience, block_ms, connections
        As for `FeedReader`.
    retention : Retention
    wait_replicas : int
        Replicas that must have a take-over, and each commit, before it counts as done.

    Attributes
    ----------
    reads_input : bool
        Whether the feed answers what is in `in`; what a combination answers is in other feeds.
    retained : RetainedOutputs
        What commits keep of the output streams.
    """

    reads_input = True

    def __init__(
        self,
        url: str,
        feed: str,
        stop: Stop | None = None,
        patience: float | None = 0.0,
        retention: Retention | None = None,
        block_ms: int | None = None,
        connections: tuple[Connection, Connection] | None = None,
        wait_replicas: int = 0,
    ) -> None:
        super().__init__(url, feed, stop, patience, block_ms, connections=connections)
        self._wait_replicas = wait_replicas
        self.retained = RetainedOutputs(retention or Retention())
        self._writer, self._epoch = "", 0

    def append(self, stream: str, entries: Sequence[Entry]) -> None:
        """Append entries under their IDs; all are sent before the first reply is read."""
        self._connection.call_all([("XADD", stream, entry[0], *entry[1]) for entry in entries])

    def register(self) -> None:
        """Add the feed to the list of feeds, which `status` shows. A feed works without it."""
        try:
            self.call("SADD", REGISTRY, self.keys.feed)
        except WrongKeyType as error:
            log.warning(
                "this feed is not listed: the list of feeds is not a set; delete that key",
                key=REGISTRY,
                error=str(error),
            )

    def fence(self, writer: str, new: Agreement | None) -> FeedState:
        """Become the feed's only writer: commits of earlier writers are refused from now on.

        Parameters
        ----------
        writer : str
            Name of this worker, shown to people.
        new : Agreement or None
            If the feed does not exist, create it with this. None if it must exist.

        Raises
        ------
        StateLost
            If the feed must exist and does not.
        InputLost
            If its input was deleted, renamed or made anew since its last commit.
        """
        fields = [] if new is None else initial_fields(new)
        keys = [self.keys.state, self.keys.input, self.keys.anew]
        args = [writer, int(self.reads_input), *fields]
        reply = self._connection.evaluate(_FENCE, keys, args, self._wait_replicas)
        if reply[0] == b"LOST":
            raise lost(self.keys)
        self._check_accepted(reply)
        state = FeedState.parse(pairs_of(reply[2:]), self.keys.state)
        self._writer, self._epoch = writer, state.epoch
        self.retained.begin(state)
        self._warn_if_uncounted(reply)
        return state

    def check_input(self, epoch: int) -> None:
        """See whether the input is still the stream that the feed answers.

        Raises
        ------
        InputLost
            If it was deleted, renamed or made anew since the last commit.
        """
        keys = [self.keys.state, self.keys.input]
        reply = self._connection.evaluate(_CHECK_INPUT, keys, [epoch])
        self._check_accepted(reply)
        self._warn_if_uncounted(reply)

    def _check_accepted(self, reply: Sequence[Any]) -> None:
        """Raise where the input is refused."""
        if reply[0] != b"OK":
            raise input_lost(reply, self.keys, self.expected_types())

    def _warn_if_uncounted(self, reply: Sequence[Any]) -> None:
        """Warn where the input is counted from here on only."""
        if reply[1]:
            log.warning(_UNCOUNTED, key=self.keys.input)
            self.note("input_uncounted", _UNCOUNTED)

    def adopt_environment(self, epoch: int, environment: str) -> None:
        """Record that this environment computes the feed from now on.

        Raises
        ------
        Fenced
            If a newer worker owns the feed.
        """
        if not self._connection.evaluate(_ADOPT, [self.keys.state], [epoch, environment]):
            raise Fenced(f"feed {self.keys.feed!r}: a newer worker has taken over")

    def note(self, code: EventCode, detail: str, writer: str = "") -> None:
        """Add an operational event to `events`, best effort.

        Without the name of a writer, only once this one has the feed. Its reply is not awaited:
        whatever becomes of it, no answer is late. Only the first event of a writer makes the
        stream, so that a feed that was deleted stays so.
        """
        if not (self._epoch or writer):
            return
        payload = encode_event(code, self._writer or writer, self._epoch, detail)
        new = () if code == "began" else ("NOMKSTREAM",)
        self._connection.send(
            "XADD", self.keys.events, *new, "MAXLEN", "~", KEPT, "*", FIELD, payload
        )

    def note_raised(self, alarms: Sequence[bytes]) -> None:
        """Add to `raised` that these entries of `alarms` are committed now, as `note` does.

        Redis gives the IDs, so these tell the time of the commit; those of `alarms` are of input.
        """
        for entry_id in alarms:
            self._connection.send(
                "XADD", self.keys.raised, "MAXLEN", "~", KEPT, "*", ALARM, entry_id
            )

    def put_snapshot(self, pointer: Pointer, data: bytes) -> list[Sent]:
        """Begin to write a snapshot in parts; a commit that is sent afterwards may point at it.

        Until a commit points at it, it expires after an hour.
        """
        text, keys = pointer.encode(), pointer.keys(self.keys)
        return [
            self._connection.send_script(
                _PUT, [self.keys.state, key], [text, _UNREFERENCED_SECONDS, part], is_large=True
            )
            for key, part in zip(keys, _parts(data, len(keys)), strict=True)
        ]

    def finish_snapshot(self, sent: Sequence[Sent]) -> None:
        """Wait until a snapshot is written.

        Raises
        ------
        Unavailable, Stopped, AccessDenied, WrongKeyType, WorkerError
            If it cannot be written; see `Connection.call`.
        """
        for part in sent:
            self._connection.receive_script(_PUT, part)

    def publish(
        self, new: Publication, data: bytes, epoch: int, before: Publication | None
    ) -> Sent:
        """Begin to publish a state for scorers, after the commit at which it stands; wait for none.

        Whatever becomes of it, no answer is late. The reply is 1 once it is the newest state, and
        the one before then goes after ten seconds. Otherwise its own parts go after an hour.
        """
        keys = new.keys(self.keys)
        for key, part in zip(keys, _parts(data, len(keys)), strict=True):
            self._connection.send("SET", key, part, "EX", _UNREFERENCED_SECONDS, is_large=True)
        going = [] if before is None else before.keys(self.keys)
        scripted = [self.keys.state, self.keys.published, *keys]
        scripted += [key for key in going if key not in keys]
        # With its text: nobody waits for the reply that Redis does not know the script.
        return self._connection.send(
            "EVAL", _PUBLISH.text, len(scripted), *scripted, epoch, new.cursor, new.parts,
            _REPLACED_SECONDS, *new.fields(),
        )  # fmt: skip

    def commit(self, commit: Commit) -> None:
        """Write a batch, all or nothing. A batch that was committed before is no error.

        Raises
        ------
        Fenced
            If a newer worker owns the feed.
        PositionMoved, BatchChanged, InvalidStoredSnapshot
            If nothing was written, and the session can continue after reading its position.
        StateLost, InputLost, OutputAhead, WrongKeyType
            If nothing was written, and the feed cannot be continued.
        """
        self.confirm(commit, self.send(commit))

    def send(self, commit: Commit) -> Sent:
        """Send a commit; `confirm` waits for it, before another is sent."""
        arguments = arguments_of(commit, self.retained.send(commit), self.reads_input)
        return self._connection.send_script(
            _COMMIT, keys_of(commit, self.keys), arguments, self._wait_replicas
        )

    def has_reply(self, sent: Sent) -> bool:
        """Return whether `confirm` need not wait: the reply was read, or there will be none."""
        return self._connection.has_reply(sent)

    def confirm(self, commit: Commit, sent: Sent) -> None:
        """Wait until a commit is done; send it again if its reply was lost.

        Raises
        ------
        Fenced, PositionMoved, BatchChanged, InvalidStoredSnapshot, InputLost
            As `commit`.
        StateLost, OutputAhead, WrongKeyType
            As `commit`.
        """
        reply = self._connection.receive_script(_COMMIT, sent)
        if reply[0] != b"OK":
            refused(commit, reply, self.keys, self.expected_types())
        self.retained.confirm(commit)


def _parts(data: bytes, count: int) -> Iterator[bytes | memoryview]:
    """Yield `count` parts of about equal size, without copying the bytes."""
    if count == 1:
        yield data
        return
    size = -(-len(data) // count)
    for begin in range(0, count * size, size):
        yield memoryview(data)[begin : begin + size]
