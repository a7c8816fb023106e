"""Two feeds that answered the same examples, example by example."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from online_svm.metrics.scores import MIN_SCORED_PROBABILITY
from online_svm.metrics.sequential.comparison import MeanSince, ScoreComparison, strongest_mean
from online_svm.types import Floats
from workers.errors import BadConfiguration
from workers.reading.answers import no_answer
from workers.reading.true_labels import labelled_answers

if TYPE_CHECKING:
    from workers.broker.store import Store
    from workers.broker.streams import Entry

MOST_ANSWERS = 2_000_000
"""Answers of a feed that are compared, the oldest ones; the losses of one are held in memory."""

_LARGEST_LOG_LOSS = -math.log(MIN_SCORED_PROBABILITY)

Losses = tuple[float, float, float]
"""Brier score, log loss, and the greatest Brier score that was possible."""


@dataclass(frozen=True, slots=True)
class LossComparison:
    """One loss of two feeds."""

    first: float  # mean loss of each
    second: float
    difference: float  # first less second, with the confidence sequence of its expectation
    lower: float
    upper: float
    log_wealth_first: float  # of bets that the first, or the second, is better
    log_wealth_second: float
    better: str | None  # which was found better, at any time
    # Since the start that tells most; its interval holds together with those of all other starts
    since: MeanSince


@dataclass(frozen=True, slots=True)
class FeedComparison:
    """The result of a comparison of two feeds."""

    compared: int  # labelled examples that both answered
    only_first: int  # labelled and answered by one alone
    only_second: int
    level: float  # one minus the confidence of each interval, and level of each test
    losses: dict[str, LossComparison]


def compare(first: "Store", second: "Store", level: float = 0.05) -> FeedComparison:
    """Compare two feeds on the examples that both answered and whose label is known.

    An example is known by the producer's id, or by the ID of its entry where it has none (a fork
    has the entries of its feed). Examples are taken in the order of the second feed.

    Raises BadConfiguration if they have no labelled example in common; StateLost if an entry of an
    output stream is no answer.
    """
    held = dict(_losses(first))
    both: list[tuple[Losses, Losses]] = []
    only_second, seen = 0, set[str]()
    for key, of_second in _losses(second):
        if key in held and key not in seen:
            seen.add(key)
            both.append((held[key], of_second))
        else:
            only_second += key not in held
    if not both:
        raise BadConfiguration(
            f"feeds {first.keys.feed!r} and {second.keys.feed!r} have no labelled example in "
            "common: both must answer the same ids (push --id), or one be a fork of the other; and "
            "their input must still be kept (worker --keep-input)"
        )
    values = np.array(both)
    losses = {
        "brier": _compared(values[:, :, 0], float(values[:, :, 2].max()), level),
        "log_loss": _compared(values[:, :, 1], _LARGEST_LOG_LOSS, level),
    }
    return FeedComparison(len(both), len(held) - len(both), only_second, level, losses)


def _compared(values: Floats, largest: float, level: float) -> LossComparison:
    test = ScoreComparison(largest, level)
    test.update(np.ascontiguousarray(values[:, 0]), np.ascontiguousarray(values[:, 1]))
    is_first, is_second = test.rejected.tolist()
    found = "first" if is_first and not is_second else "second" if is_second else None
    between, wealth = test.difference, test.log_wealth
    return LossComparison(
        first=float(values[:, 0].mean()),
        second=float(values[:, 1].mean()),
        difference=between.estimate,
        lower=between.lower,
        upper=between.upper,
        log_wealth_first=float(wealth[0]),
        log_wealth_second=float(wealth[1]),
        better=None if is_first and is_second else found,
        since=strongest_mean(values[:, 0] - values[:, 1], largest, level),
    )


def _losses(store: "Store") -> Iterator[tuple[str, Losses]]:
    for entry, message, label in islice(labelled_answers(store), MOST_ANSWERS):
        sent = message.get("id")
        key = f"id {sent}" if sent is not None else f"entry {entry[0].decode()}"
        yield key, _of_answer(entry, message, label)


def _of_answer(entry: "Entry", message: dict[str, Any], label: str) -> Losses:
    """Return the losses; a label that is not among the classes counts as the unseen one."""
    try:
        classes, said = message["classes"], [float(p) for p in message["probabilities"]]
        true = classes.index(label if label in classes else None)
        p = said[true]
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        raise no_answer(entry) from None
    whole = sum((q - (k == true)) ** 2 for k, q in enumerate(said))
    log_loss = -math.log(max(p, MIN_SCORED_PROBABILITY))
    return (whole / 2.0, log_loss, 1.0) if len(said) == 2 else (whole, log_loss, 2.0)
