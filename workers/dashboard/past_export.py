"""Read a past run from an exported CSV file, which has answers and labels but no alarms."""

import csv
import math
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from workers.dashboard.past_run import NothingKept, Thinned
from workers.dashboard.reports import FIGURES, Report
from workers.dashboard.shown_feed import MAX_ANSWERS, Excerpt, ShownAnswer
from workers.errors import BadConfiguration
from workers.feed.position import parse_id
from workers.reading.true_labels import Truth

NEEDED = ("entry", "status", "label", "probability", "lower", "upper", "is_right")

_EVERY = 25  # scored answers between two points of a curve, before thinning

_TEXTS = ("status", "id", "label", "guarantee", "reason")
_NUMBERS = ("seq", "n", "probability", "lower", "upper")


def read_export(path: Path, since: float | None = None, until: float | None = None) -> Excerpt:
    """Return the excerpt of a span from a file of `online-svm export`; see `past_run.read_past`.

    The cumulative figures of the headline start at the first answer of the span. BadConfiguration:
    the file cannot be read, or is no such export.
    """
    sums, thinned = _Sums(), Thinned()
    answers: deque[ShownAnswer] = deque(maxlen=MAX_ANSWERS)
    for entry_id, row in _rows(path):
        time = float(parse_id(entry_id)[0])
        if (since is not None and time < since) or (until is not None and time > until):
            continue
        answer = _answer(entry_id, row)
        answers.append(answer)
        if sums.add(answer) and sums.scored % _EVERY == 0:
            thinned.add([sums.report(time)])
    if not answers:
        raise NothingKept(f"{path}: holds no answer of this time")
    reports = thinned.kept
    if sums.scored and (not reports or reports[-1].scored < sums.scored):
        reports.append(sums.report(float(parse_id(answers[-1].entry_id)[0])))
    return Excerpt(path.stem[:64], "n", reports, list(answers), has_alarms=False)


def _rows(path: Path) -> Iterator[tuple[bytes, Mapping[str, str]]]:
    """Yield the rows with their entry IDs; BadConfiguration names an invalid line."""
    try:
        with path.open(encoding="utf-8", newline="") as source:
            reader = csv.DictReader(source, strict=True)
            missing = [name for name in NEEDED if name not in (reader.fieldnames or ())]
            if missing:
                raise BadConfiguration(
                    f"{path}: has no column {missing[0]!r}; write the file with online-svm export"
                )
            for row in reader:
                time, _, count = (row["entry"] or "").partition("-")
                if not (time.isdecimal() and count.isdecimal() and len(time + count) < 40):
                    raise BadConfiguration(
                        f"{path}, line {reader.line_num}: {(row['entry'] or '')[:40]!r} is no "
                        "entry ID; write the file with online-svm export"
                    )
                yield f"{time}-{count}".encode(), row
    except OSError as error:
        raise BadConfiguration(f"{path}: cannot be read: {error.strerror or error}") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise BadConfiguration(
            f"{path}: is no CSV file in UTF-8: {error}; write it with online-svm export"
        ) from None


def _answer(entry_id: bytes, row: Mapping[str, str]) -> ShownAnswer:
    texts = {name: row.get(name) or None for name in _TEXTS}
    numbers = {name: _float(row.get(name)) for name in _NUMBERS}
    label = row.get("true_label") or None
    is_right = {"1": True, "0": False}.get(row["is_right"] or "")
    return ShownAnswer(entry_id, texts | numbers, Truth(True, label, is_right))


def _float(text: str | None) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:
        return None


class _Sums:
    """Sums of accuracy, probability and interval over the scored answers."""

    def __init__(self) -> None:
        self.scored = 0
        self._n = 0
        self._sums = np.zeros(4)

    def add(self, answer: ShownAnswer) -> bool:
        """Add an answer; return whether it was scored."""
        message: dict[str, Any] = answer.message
        announced = [message[name] for name in ("lower", "probability", "upper")]
        if message["status"] != "ok" or answer.truth.is_right is None or None in announced:
            return False
        self.scored += 1
        self._n = max(self._n, int(message["n"] or 0) + 1)
        self._sums += (float(answer.truth.is_right), *announced)
        return True

    def report(self, time: float) -> Report:
        """Return the means so far as a report."""
        means = (self._sums / self.scored).tolist()
        own = dict(zip(FIGURES, means, strict=False))
        message = {"n": self._n, "scored": self.scored, "headline": {"predicted": own}}
        return Report(
            time, self._n, self.scored, {"headline": (*means, math.nan, math.nan)}, message
        )
