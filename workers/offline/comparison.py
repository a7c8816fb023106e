"""Compare the losses of two feeds that answered the same examples."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from online_svm.metrics.scores import MIN_SCORED_PROBABILITY, brier_factor
from online_svm.metrics.sequential.comparison import MeanSince, ScoreComparison, strongest_mean
from online_svm.types import Floats
from workers.broker.streams import no_answer
from workers.errors import BadConfiguration
from workers.reading.true_labels import labelled_answers

if TYPE_CHECKING:
    from workers.broker.feed_reader import FeedReader
    from workers.broker.streams import Entry

MAX_ANSWERS = 2_000_000
"""Answers of a feed that are compared, from the oldest: the losses of one feed are in memory."""

LEVEL = 0.05
"""Chance of each test to be wrong, ever."""

_LARGEST_LOG_LOSS = -math.log(MIN_SCORED_PROBABILITY)
_LARGEST_BRIER_SUM = 2.0  # over all classes

Losses = tuple[float, float, int]  # squared errors summed over classes, log loss, known classes


@dataclass(frozen=True, slots=True)
class LossComparison:
    """One loss of two feeds."""

    first: float  # mean loss of the first feed
    second: float  # mean loss of the second feed
    difference: float  # first less second
    lower: float  # of the confidence sequence of the expected difference
    upper: float
    log_wealth_first: float  # of the bets that the first feed is better
    log_wealth_second: float  # of the bets that the second feed is better
    better: str | None  # "first" or "second" if only its test was rejected at any time
    since: MeanSince  # since the start with the most evidence; valid for all starts together


@dataclass(frozen=True, slots=True)
class FeedComparison:
    """The result of a comparison of two feeds."""

    compared: int  # labelled examples that both answered
    only_first: int  # labelled examples that only the first answered
    only_second: int  # labelled examples that only the second answered
    level: float  # of each test; the confidence of each interval is 1 - level
    losses: dict[str, LossComparison]


def compare(first: "FeedReader", second: "FeedReader") -> FeedComparison:
    """Compare two feeds on the labelled examples that both answered.

    Examples are matched by the producer's id, or by entry ID if they have none, as in a fork. They
    are compared in the order of the second feed.

    Raises BadConfiguration if they have no labelled example in common; StateLost if an entry of an
    output stream is no answer.
    """
    first_losses = dict(_losses(first))
    both: list[tuple[Losses, Losses]] = []
    only_second, seen = 0, set[str]()
    for key, losses_of_second in _losses(second):
        if key in first_losses and key not in seen:
            seen.add(key)
            both.append((first_losses[key], losses_of_second))
        else:
            only_second += key not in first_losses
    if not both:
        raise BadConfiguration(
            f"feeds {first.keys.feed!r} and {second.keys.feed!r} have no labelled example in "
            "common: both must answer the same ids (push --id), or one be a fork of the other; and "
            "their input must still be kept (worker --keep-input)"
        )
    values = np.array(both)
    factor = brier_factor(int(values[:, :, 2].max()))
    losses = {
        "brier": _compared(factor * values[:, :, 0], factor * _LARGEST_BRIER_SUM),
        "log_loss": _compared(values[:, :, 1], _LARGEST_LOG_LOSS),
    }
    only_first = len(first_losses) - len(both)
    return FeedComparison(len(both), only_first, only_second, LEVEL, losses)


def _compared(values: Floats, largest: float) -> LossComparison:
    test = ScoreComparison(largest, LEVEL)
    test.update(np.ascontiguousarray(values[:, 0]), np.ascontiguousarray(values[:, 1]))
    difference, wealth = test.difference, test.log_wealth
    return LossComparison(
        first=float(values[:, 0].mean()),
        second=float(values[:, 1].mean()),
        difference=difference.estimate,
        lower=difference.lower,
        upper=difference.upper,
        log_wealth_first=float(wealth[0]),
        log_wealth_second=float(wealth[1]),
        better={(True, False): "first", (False, True): "second"}.get(tuple(test.rejected.tolist())),
        since=strongest_mean(values[:, 0] - values[:, 1], largest, LEVEL),
    )


def _losses(store: "FeedReader") -> Iterator[tuple[str, Losses]]:
    for entry, message, label in islice(labelled_answers(store), MAX_ANSWERS):
        producer_id = message.get("id")
        key = f"id {producer_id}" if producer_id is not None else f"entry {entry[0].decode()}"
        yield key, _answer_losses(entry, message, label)


def _answer_losses(entry: "Entry", message: dict[str, Any], label: str) -> Losses:
    """Return the losses; a label that is not among the classes counts as the unseen class."""
    try:
        classes, probabilities = message["classes"], [float(p) for p in message["probabilities"]]
        true = classes.index(label if label in classes else None)
        p = probabilities[true]
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        raise no_answer(entry) from None
    errors = sum((q - (k == true)) ** 2 for k, q in enumerate(probabilities))
    log_loss = -math.log(max(p, MIN_SCORED_PROBABILITY))
    return errors, log_loss, sum(label is not None for label in classes)
