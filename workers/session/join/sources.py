"""The feeds that are combined: what must hold for them, and their answers with the labels."""

from collections.abc import Sequence
from typing import Any

from online_svm.config import PredictorConfig
from online_svm.errors import InvalidExample
from online_svm.stream.labels import sorted_labels
from online_svm.stream.schema import MAX_LABEL, FeatureSchema
from workers.broker.batch_size import BatchSize
from workers.broker.feed_reader import PAGE_BYTES, FeedReader
from workers.config.settings import Limits
from workers.errors import BadConfiguration, InputLost, StateLost
from workers.feed.position import LAST_ID
from workers.feed.stored_settings import stored_settings
from workers.reading.answers import answer as parsed_answer
from workers.reading.answers import payload
from workers.reading.registry import NoSuchFeed
from workers.session.join.marks import SourceMark
from workers.session.join.rows import Answer

EVIDENTIAL = "evidential-"
"""Maps with this prefix publish Bel and Pl."""

Bounds = tuple[float, float]


class Source:
    """One feed, read only.

    Parameters
    ----------
    reader : FeedReader
    batch : int
        Answers to request at once, at most.

    Attributes
    ----------
    feed : str
    key : str
        Stream of its answers.
    classes : tuple of two str
    evidence : str
        What its masses are taken from: the name of an evidential map, or "venn".

    Raises
    ------
    NoSuchFeed
        If no worker has begun the feed.
    BadConfiguration
        If it does not declare two classes, takes late labels, is itself a combination, or leaves
        out of its answers what its masses are taken from.
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
        """Raise StateLost if the feed is behind what was already combined of it."""
        state = self._reader.state()
        if state is None or state.position.seq < mark.seq:
            raise StateLost(
                f"feed {self.feed!r} was reset or lost answers: {mark.seq} of it were combined; "
                "answer its input again, or reset the combination"
            )

    def read(self, after: bytes, place: int, count: int) -> list[Answer]:
        """Return the next answers after an entry ID, with their labels.

        Parameters
        ----------
        after : bytes
        place : int
            `seq` that the first of them must have.
        count : int
            At most so many.

        Raises
        ------
        InputLost
            If answers were trimmed before they were combined, or the input that holds their labels.
        """
        if after == LAST_ID:
            return []
        keys = self._reader.keys
        size = self._size
        entries = self._reader.page(keys.out, after, b"+", size)[:count]
        if not entries:
            return []
        size.first_of(entries)
        labels = self._labels(after, entries)
        answers = []
        for entry in entries:
            message = parsed_answer(entry)
            if message["seq"] != place:
                what = f"answers {place} to {message['seq'] - 1}"
                raise _lost(self.feed, what, "larger --retain-out and --retain-bytes")
            answers.append(self._answer(entry, after, message, labels))
            after, place = entry[0], place + 1
        return answers

    def _labels(self, after: bytes, entries: Sequence[Any]) -> dict[bytes, str | None]:
        """Return the label of each entry; it stands in the input, under the same entry ID."""
        pages = self._reader.pages(self._reader.keys.input, after, entries[-1][0])
        labels = {entry_id: self._label(fields) for page in pages for entry_id, fields in page}
        missing = [entry for entry in entries if entry[0] not in labels]
        if missing:
            raise _lost(self.feed, f"the input at {missing[0][0].decode()}", "--keep-input")
        return labels

    def _label(self, fields: Sequence[bytes]) -> str | None:
        """Return the label as its feed reads it; None where there is none, or none it takes."""
        names = fields[::2]
        if b"y" not in names:
            return None
        raw = fields[2 * names.index(b"y") + 1]
        if len(raw) > 4 * MAX_LABEL:
            return None  # more bytes than its characters can have
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
    ) -> Answer:
        rejected = message["status"] not in ("ok", "warming")
        return Answer(
            entry=entry[0],
            after=after,
            seq=message["seq"],
            # A repeat was answered, and joined, under its id already.
            id=None if message["status"] == "duplicate" else message.get("id"),
            rejected=rejected,
            bounds=bounds(message, self.evidence) if message["status"] == "ok" else None,
            label=None if rejected else labels[entry[0]],
            payload=payload(entry),
        )


def bounds(message: dict[str, Any], evidence: str) -> Bounds:
    """Return Bel and Pl of the last class in an answer.

    Where the feed has no evidential map, the hull of its Venn predictor stands for them.

    Examples
    --------
    >>> bounds({"venn": [[0.25, 0.5], [0.5, 0.75]]}, "venn")
    (0.5, 0.75)
    >>> interval = {"evidential-logistic": [[0.125, 0.25], [0.75, 0.875]]}
    >>> bounds({"map_intervals": interval}, "evidential-logistic")
    (0.75, 0.875)
    """
    of_classes = message["venn"] if evidence == "venn" else message["map_intervals"][evidence]
    belief, plausibility = of_classes[-1]
    return belief, plausibility


def _configuration(reader: FeedReader) -> tuple[PredictorConfig, Limits]:
    feed, state = reader.keys.feed, reader.state()
    if state is None:
        raise NoSuchFeed(f"no feed {feed!r}: begin it with online-svm worker {feed}")
    stored = stored_settings(feed, state.agreement)
    if stored is None:
        raise BadConfiguration(f"feed {feed!r} is itself a combination: name the feeds it is of")
    return stored


def _two_classes(feed: str, config: PredictorConfig) -> tuple[str, str]:
    if config.takes_late_labels:
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


def _lost(feed: str, what: str, remedy: str) -> InputLost:
    return InputLost(
        f"feed {feed!r}: {what} went before they were combined; run its worker with {remedy} and "
        "combine while it runs"
    )
