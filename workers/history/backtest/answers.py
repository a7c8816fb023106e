"""Answers of a configuration, as a table like that of `online-svm export`: `report` reads it."""

import csv
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TextIO

from online_svm.predictor.online_predictor import OnlinePredictor
from workers.errors import BadConfiguration
from workers.history.backtest.configurations import Configuration
from workers.history.backtest.recording import Entry
from workers.history.spreadsheet import cell
from workers.message.compact.decode import parse
from workers.reading.true_labels import ANSWERED
from workers.session.replay import Replay

COLUMNS = (
    "entry", "status", "id", "seq", "n", "label", "probability", "lower", "upper", "guarantee",
    "reason", "true_label", "is_right",
)  # fmt: skip


def write_answers(
    configuration: Configuration, batches: Iterable[Sequence[Entry]], target: TextIO
) -> int:
    """Answer a history as a worker would, and write a row an answer; return how many.

    Parameters
    ----------
    configuration : Configuration
    batches : iterable of sequence of (bytes, fields)
        An entry without an ID gets its number, from 1 on, in the place of a time.
    target : text file

    Raises
    ------
    BadConfiguration
        If labels come late: a row has its label when it is written.

    Examples
    --------
    >>> import io
    >>> from workers.config.settings import WorkerSettings
    >>> from workers.history.backtest.configurations import configurations
    >>> (base,) = configurations(WorkerSettings(), {"base": {}})
    >>> entries = [(b"", [b"x", b"[%d]" % (i % 2), b"y", b"ab"[i % 2 :][:1]]) for i in range(30)]
    >>> table = io.StringIO()
    >>> write_answers(base, [entries], table)
    30
    >>> table.getvalue().splitlines()[20].split(",")[:5]
    ['20-0', 'ok', '', '19', '19']
    """
    check_labels([configuration])
    writer = csv.writer(target, lineterminator="\n")
    writer.writerow(COLUMNS)
    count = 0
    for row in _rows(configuration, batches):
        writer.writerow([cell(row.get(name)) for name in COLUMNS])
        count += 1
    return count


def check_labels(chosen: Iterable[Configuration]) -> None:
    """Raise BadConfiguration for a configuration whose labels come late."""
    for one in chosen:
        if one.predictor.horizon:
            raise BadConfiguration(
                f"configuration {one.name}: labels come late (horizon), so a table of answers has "
                "none; leave out --answers"
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
    """Return the label that was learned of an entry, as the configuration spells it."""
    sent = dict(zip(fields[::2], fields[1::2], strict=False)).get(b"y")
    if sent is None or message["status"] not in ANSWERED:
        return {}
    label, said = predictor.schema.label(sent.decode()), message.get("label")
    return {"true_label": label, "is_right": None if said is None else said == label}
