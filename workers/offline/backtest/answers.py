"""Write the answers of a configuration as a table in the form of `online-svm export`."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TextIO

from online_svm.predictor.online_predictor import OnlinePredictor
from workers.errors import BadConfiguration
from workers.feed.codes import parse
from workers.offline.answer_table import write_table
from workers.offline.backtest.history import Entry
from workers.offline.backtest.prequential import Configuration
from workers.reading.true_labels import ANSWERED, is_right
from workers.session.replay import Replay

COLUMNS = (
    "entry", "status", "id", "seq", "n", "label", "probability", "lower", "upper", "guarantee",
    "reason", "true_label", "is_right",
)  # fmt: skip


def write_answers(
    configuration: Configuration, batches: Iterable[Sequence[Entry]], target: TextIO
) -> int:
    """Answer a history as a worker would, and write a row an answer; return the number of rows.

    An entry without an ID gets its number, from 1, in place of the time. Raises BadConfiguration
    for delayed labels, because a row is written with its label.
    """
    check_labels([configuration])
    return write_table(target, COLUMNS, _rows(configuration, batches))


def check_labels(chosen: Iterable[Configuration]) -> None:
    """Raise BadConfiguration for a configuration with delayed labels."""
    for configuration in chosen:
        if configuration.predictor.horizon:
            raise BadConfiguration(
                f"configuration {configuration.name}: labels come late (horizon), so a table of "
                "answers has none; leave out --answers"
            )


def _rows(
    configuration: Configuration, batches: Iterable[Sequence[Entry]]
) -> Iterator[dict[str, Any]]:
    replay = Replay(OnlinePredictor(configuration.predictor), configuration.limits)
    for batch in batches:
        seq = replay.position.seq
        named = [(at or b"%d-0" % (seq + i), fields) for i, (at, fields) in enumerate(batch, 1)]
        outcome = replay.answer(named)
        for (at, fields), data in zip(named, outcome.out, strict=True):
            message = parse(data)
            yield message | {"entry": at.decode()} | _truth(replay.predictor, fields, message)


def _truth(
    predictor: OnlinePredictor, fields: Sequence[bytes], message: dict[str, Any]
) -> dict[str, Any]:
    """Return the learned label of an entry, and whether the answer predicted it."""
    sent = dict(zip(fields[::2], fields[1::2], strict=False)).get(b"y")
    if sent is None or message["status"] not in ANSWERED:
        return {}
    label = predictor.schema.label(sent.decode())
    return {"true_label": label, "is_right": is_right(message, label)}
