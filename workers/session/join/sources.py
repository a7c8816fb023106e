"""The source feeds of a combination: requirements, and their answers as joined input."""

from collections.abc import Sequence
from typing import Any

from online_svm.config import PredictorConfig
from online_svm.errors import InvalidExample
from online_svm.stream.labels import sorted_labels
from online_svm.stream.schema import MAX_LABEL, FeatureSchema
from workers.broker.feed_reader import PAGE_BYTES, FeedReader
from workers.broker.large_replies import BatchSize
from workers.broker.shared_reader import StreamRead
from workers.broker.streams import Entry
from workers.config.settings import Limits
from workers.errors import BadConfiguration, InputLost, StateLost
from workers.feed.position import LAST_ID
from workers.feed.stored_settings import stored_settings
from workers.reading.answers import answer as parsed_answer
from workers.reading.answers import payload
from workers.reading.registry import NoSuchFeed
from workers.session.join.rows import Join, JoinedRow, SourceAnswer, SourceMark

EVIDENTIAL = "evidential-"  # maps with this prefix publish Bel and Pl

Bounds = tuple[float, float]


class Source:
    """A source feed, read-only.

    Raises NoSuchFeed if the feed has no state; BadConfiguration if it does not declare two classes,
    takes delayed labels, is itself a combination, or its answers lack the evidence.

    Attributes
    ----------
    key : str
        Stream of its answers.
    evidence : str
        Where its masses come from: the name of an evidential map, or "venn".
    """

    def __init__(self, reader: FeedReader, batch: int = 256) -> None:
        self._size = BatchSize(batch, PAGE_BYTES)
        self.feed, self.key, self._reader = reader.keys.feed, reader.keys.out, reader
        config, limits = _configuration(reader)
        self.classes = _two_classes(self.feed, config)
        self.evidence = next((name for name in config.maps if name.startswith(EVIDENTIAL)), "venn")
        if self.evidence != "venn" and limits.payload == "compact":
            raise BadConfiguration(
                f"feed {self.feed!r} has the map {self.evidence}, whose belief its compact answers "
                'leave out: combine feeds with payload = "full", or without such a map'
            )
        self._schema = FeatureSchema(config)

    def check(self, mark: SourceMark) -> None:
        """Raise StateLost if the feed lacks answers that are already combined."""
        state = self._reader.state()
        if state is None or state.position.seq < mark.seq:
            raise StateLost(
                f"feed {self.feed!r} was reset or lost answers: {mark.seq} of it were combined; "
                "answer its input again, or reset the combination"
            )

    def read(self, after: bytes, seq: int, count: int) -> list[SourceAnswer]:
        """Return up to `count` answers after an entry ID, from `seq` on, with their labels.

        Raises InputLost if answers, or the input with their labels, were trimmed before they were
        combined.
        """
        if after == LAST_ID:
            return []
        entries = self._reader.page(self.key, after, b"+", self._size)[:count]
        if not entries:
            return []
        self._size.first_of(entries)
        labels = self._labels(after, entries)
        answers = []
        for entry in entries:
            message = parsed_answer(entry)
            if message["seq"] != seq:
                lost = f"answers {seq} to {message['seq'] - 1}"
                raise _input_lost(self.feed, lost, "larger --retain-out and --retain-bytes")
            answers.append(self._answer(entry, after, message, labels))
            after, seq = entry[0], seq + 1
        return answers

    def _labels(self, after: bytes, entries: Sequence[Any]) -> dict[bytes, str | None]:
        """Return the label of each entry, from the input entry with the same ID."""
        found = self._reader.each(self._reader.keys.input, after, entries[-1][0])
        labels = {entry_id: self._label(fields) for entry_id, fields in found}
        missing = [entry for entry in entries if entry[0] not in labels]
        if missing:
            raise _input_lost(self.feed, f"the input at {missing[0][0].decode()}", "--keep-input")
        return labels

    def _label(self, fields: Sequence[bytes]) -> str | None:
        """Return the label as the feed parses it; None if it is missing or invalid."""
        names = fields[::2]
        if b"y" not in names:
            return None
        raw = fields[2 * names.index(b"y") + 1]
        if len(raw) > 4 * MAX_LABEL:
            return None  # no label of so many bytes is valid
        try:
            return self._schema.label(raw.decode())
        except (InvalidExample, UnicodeDecodeError):
            return None  # the feed rejected this entry

    def _answer(
        self,
        entry: Sequence[Any],
        after: bytes,
        message: dict[str, Any],
        labels: dict[bytes, str | None],
    ) -> SourceAnswer:
        rejected = message["status"] not in ("ok", "warming")
        return SourceAnswer(
            entry=entry[0],
            after=after,
            seq=message["seq"],
            # The first entry with this id was answered, and is joined.
            id=None if message["status"] == "duplicate" else message.get("id"),
            rejected=rejected,
            bounds=bounds(message, self.evidence) if message["status"] == "ok" else None,
            label=None if rejected else labels[entry[0]],
            payload=payload(entry),
        )


def bounds(message: dict[str, Any], evidence: str) -> Bounds:
    """Return Bel and Pl of the last class in an answer.

    Without an evidential map they are the hull of the feed's Venn predictor.

    Examples
    --------
    >>> bounds({"venn": [[0.25, 0.5], [0.5, 0.75]]}, "venn")
    (0.5, 0.75)
    >>> interval = {"evidential-logistic": [[0.125, 0.25], [0.75, 0.875]]}
    >>> bounds({"map_intervals": interval}, "evidential-logistic")
    (0.75, 0.875)
    """
    intervals = message["venn"] if evidence == "venn" else message["map_intervals"][evidence]
    belief, plausibility = intervals[-1]
    return belief, plausibility


def _configuration(reader: FeedReader) -> tuple[PredictorConfig, Limits]:
    feed, state = reader.keys.feed, reader.state()
    if state is None:
        raise NoSuchFeed(f"no feed {feed!r}: begin it with online-svm worker {feed}")
    stored = stored_settings(feed, state.pinned)
    if stored is None:
        raise BadConfiguration(f"feed {feed!r} is itself a combination: name the feeds it is of")
    return stored


def _two_classes(feed: str, config: PredictorConfig) -> tuple[str, str]:
    if config.takes_delayed_labels:
        raise BadConfiguration(
            f"feed {feed!r} has a horizon of {config.horizon}: a combination learns labels that "
            "come with their examples; combine feeds with horizon 0"
        )
    if config.classes is None:
        raise BadConfiguration(
            f"feed {feed!r} discovers its classes: only feeds begun with two declared ones "
            "(--classes a,b) can be combined"
        )
    if len(config.classes) != 2:
        raise BadConfiguration(
            f"feed {feed!r} has {len(config.classes)} classes: masses are combined for two"
        )
    first, second = sorted_labels(config.classes)
    return first, second


def _input_lost(feed: str, lost: str, remedy: str) -> InputLost:
    return InputLost(
        f"feed {feed!r}: {lost} went before they were combined; run its worker with {remedy} and "
        "combine while it runs"
    )


class JoinInput:
    """Reads new answers of the sources, up to `batch` of each at once, and joins them."""

    def __init__(
        self, sources: Sequence[Source], marks: list[SourceMark], window: int, batch: int
    ) -> None:
        self._join, self._batch = Join(marks, window), batch
        self._sources = [_SourceInput(source) for source in sources]
        self._may_have_rows = False

    @property
    def waiting(self) -> int:
        """Answers of the first source that wait for the others."""
        return self._join.waiting

    @property
    def is_spent(self) -> bool:
        """Whether `next_now` returns nothing before a source has more answers."""
        return not (self._may_have_rows or any(map(self._is_readable, range(len(self._sources)))))

    def next_now(self, limit: int) -> list[JoinedRow]:
        """Read each source once; return up to `limit` complete rows."""
        for i in range(len(self._sources)):
            if self._is_readable(i):
                self._read(i)
        rows = list(self._join.rows(limit))
        self._may_have_rows = len(rows) == limit
        return rows

    def marks(self) -> list[SourceMark]:
        """Return from where to read again if the rows that were not returned are lost."""
        return self._join.marks()

    def reads(self, feed: str) -> list[StreamRead]:
        """Return the streams of the sources that are read to their ends, and needed further."""
        join = self._join
        return [
            StreamRead(feed, one.source.key, join.cursor(i), one)
            for i, one in enumerate(self._sources)
            if not one.may_be_more and join.has_room(i, self._batch)
        ]

    def restart_read(self) -> None:
        """Read each source again: a blocked read of it may have been lost."""
        for one in self._sources:
            one.may_be_more = True

    def _is_readable(self, i: int) -> bool:
        return self._sources[i].may_be_more and self._join.has_room(i, self._batch)

    def _read(self, i: int) -> None:
        join, one = self._join, self._sources[i]
        answers = one.source.read(join.cursor(i), join.next_seq(i), self._batch)
        join.add(i, answers)
        one.may_be_more = bool(answers)
        self._may_have_rows |= bool(answers)


class _SourceInput:
    """A source, and whether it may have unread answers."""

    count = 1  # a blocked read only shows that there are entries

    def __init__(self, source: Source) -> None:
        self.source, self.may_be_more = source, True

    def put(self, _entries: Sequence[Entry], may_be_more: bool) -> None:  # noqa: ARG002
        """Record that there are answers; `Source.read` reads them again, with their labels."""
        self.may_be_more = True
