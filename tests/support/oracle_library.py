"""The predictor without a service: `step_many` and `label`, and a digest of what they return."""

import json
from hashlib import sha256
from typing import Any

import numpy as np
from oracle_feeds import Entry, four_classes, late, plain, two_classes

from online_svm import OnlinePredictor, PredictorConfig

Call = tuple[str, Any]


def library_inputs() -> dict[str, tuple[dict[str, Any], list[Entry]]]:
    """Return settings and entries by name."""
    quick = {"window": 200, "refit_every": 50, "metrics_every": 40}
    two = {"classes": ("no", "yes")}
    return {
        "two": (two | quick, plain(two_classes(40, 300))),
        "four": ({"classes": ("a", "b", "c", "d")} | quick, plain(four_classes(41, 260))),
        "late": (two | quick | {"horizon": 40}, late(two_classes(42, 260), 40, 42)),
    }


def library_digest(settings: dict[str, Any], entries: list[Entry]) -> str:
    """Return the digest of the answers to entries, given to the predictor in blocks of up to 32."""
    predictor = OnlinePredictor(PredictorConfig(**settings))
    total = sha256()
    block: list[Entry] = []
    for entry in entries:
        if "for" in entry:
            _answer(predictor, block, total)
            block = []
            total.update(_labelled(predictor, entry).encode())
        else:
            block.append(entry)
            if len(block) == 32:
                _answer(predictor, block, total)
                block = []
    _answer(predictor, block, total)
    return total.hexdigest()[:32]


def _answer(predictor: OnlinePredictor, block: list[Entry], total: Any) -> None:
    if not block:
        return
    X = np.array([json.loads(entry["x"]) for entry in block])
    labels = [entry.get("y") for entry in block]
    ids = [entry["id"] for entry in block] if "id" in block[0] else None
    schema = predictor.schema.of_example(X[0])
    for item in predictor.step_many(X, labels, schema=schema, ids=ids):
        if hasattr(item, "row"):
            for i in range(len(item)):
                total.update(_text(item.row(i)).encode())


def _labelled(predictor: OnlinePredictor, entry: Entry) -> str:
    try:
        return predictor.label(entry["for"], entry["y"])
    except ValueError as error:
        return type(error).__name__


def _text(answer: Any) -> str:
    names = ("n", "label", "probability", "lower", "upper", "probabilities", "intervals")
    names += ("venn", "maps", "scores", "guarantee", "method")
    return json.dumps([getattr(answer, name) for name in names])
