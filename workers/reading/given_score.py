"""The score that another model gave, compared with the answers that a feed made of it."""

import math
from collections.abc import Mapping
from typing import Any

from online_svm.config import SCORE
from workers.reading.answers import number
from workers.reading.benefit import MIN_SCORED, as_object
from workers.text import share

_Z = 3.29  # two-sided .1 %, as for the verdict


def score_text(report: Mapping[str, Any]) -> str | None:
    """Return how far the given score is off, and what calibrating it changed, in one line.

    `report` is a validity report. None without the setting `scores`, for a margin, or before there
    are enough labels.

    Examples
    --------
    >>> score = {"predicted": {"accuracy": 0.81, "probability": 0.92}, "log_loss": 0.58}
    >>> ours = {"predicted": {"accuracy": 0.87, "probability": 0.868}, "log_loss": 0.31}
    >>> score_text({"scored": 2000, "headline": ours, "maps": {"score": score}})
    'as it came .810 right where .920 was announced, off by .090 to .130; log loss .580, ours .310'
    """
    given = as_object(as_object(report.get("maps")).get(SCORE))
    predicted, scored = as_object(given.get("predicted")), number(report.get("scored"))
    right, announced = number(predicted.get("accuracy")), number(predicted.get("probability"))
    losses = [number(each.get("log_loss")) for each in (given, as_object(report.get("headline")))]
    if not scored >= MIN_SCORED or math.isnan(right + announced + sum(losses)):
        return None
    off = abs(right - announced)
    reach = _Z * math.sqrt(max(0.0, announced * (1.0 - announced)) / scored)
    states = (
        f"off by {share(off - reach)} to {share(off + reach)}" if off > reach else "not shown off"
    )
    return (
        f"as it came {share(right)} right where {share(announced)} was announced, {states}; "
        f"log loss {share(losses[0])}, ours {share(losses[1])}"
    )
