"""Costs of the recorded answers of a feed under several cost matrices."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import ValidationError

from online_svm.config.groups import DecisionConfig
from online_svm.metrics.cost_matrix import CostMatrix, RealisedCost
from online_svm.stream.validity_report import CostReport
from workers.broker.streams import no_answer
from workers.config.text_values import explain
from workers.errors import BadConfiguration
from workers.reading.true_labels import labelled_answers

if TYPE_CHECKING:
    from workers.broker.feed_reader import FeedReader

_BATCH = 1000

Answered = tuple[list[float], int]
"""Probabilities, and the index of the true label."""


def decision_costs(
    store: "FeedReader", sections: Mapping[str, Mapping[str, Any]]
) -> dict[str, CostReport]:
    """Return the costs of the kept, labelled answers of a feed under each matrix.

    Nothing is answered again: the decisions follow from the stored probabilities and intervals. A
    section is a matrix: costs by true label, then by action.

    Raises BadConfiguration if a matrix cannot be used, its labels are not the classes of the
    answers, or no answer of the feed has a known label; StateLost if an entry of `out` is no
    answer.
    """
    checked = {name: _checked(name, rows) for name, rows in sections.items()}
    found: dict[str, RealisedCost] = {}
    for classes, rows in _batches(store):
        if not found:
            found = {name: RealisedCost(_matrix(name, c, classes)) for name, c in checked.items()}
        point, columns = (np.array(part) for part in zip(*rows, strict=True))
        for realised in found.values():
            realised.update(point, columns)
    if not found:
        raise BadConfiguration(
            f"feed {store.keys.feed!r} has no answer with a known label: its input must still be "
            "kept (worker --keep-input)"
        )
    return {name: realised.report() for name, realised in found.items()}


def _checked(name: str, rows: Mapping[str, Any]) -> Mapping[str, Mapping[str, float]]:
    try:
        costs = DecisionConfig(costs=dict(rows)).costs
    except ValidationError as error:
        raise BadConfiguration(f"{name}: {explain(error)}") from None
    assert costs is not None
    return costs


def _matrix(
    name: str, costs: Mapping[str, Mapping[str, float]], classes: Sequence[str]
) -> CostMatrix:
    if set(costs) != set(classes):
        raise BadConfiguration(
            f"{name}: its true labels are {sorted(costs)}, those of the feed {list(classes)}"
        )
    return CostMatrix(costs, tuple(classes))


def _batches(store: "FeedReader") -> "Iterator[tuple[list[str], list[Answered]]]":
    """Yield the labelled answers of a feed in batches, each with the classes of the feed."""
    answers = labelled_answers(store)
    classes: list[str] = []
    while page := list(islice(answers, _BATCH)):
        rows: list[Answered] = []
        for entry, message, label in page:
            try:
                classes = classes or _classes(store, message["classes"])
                rows.append((message["probabilities"], classes.index(label)))
            except (AttributeError, LookupError, TypeError, ValueError):
                raise no_answer(entry) from None
        yield classes, rows


def _classes(store: "FeedReader", classes: list[str | None]) -> list[str]:
    known = [label for label in classes if label is not None]
    if len(known) < len(classes):
        raise BadConfiguration(
            f"feed {store.keys.feed!r} discovers its classes, and costs need declared ones"
        )
    return known
