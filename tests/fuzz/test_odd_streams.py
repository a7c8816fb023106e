"""Streams that are well-formed and strange: always a defined answer."""

import json
import tracemalloc

import numpy as np
import pytest
from pure_replay import replayed

from online_svm.config import PredictorConfig
from online_svm.errors import InvalidSnapshot
from online_svm.storage.state import unpack


def answers(config, examples, batch=256):
    entries = [["x", json.dumps(x), *label] for x, label in examples]
    return [json.loads(payload) for payload in replayed(config, entries, size=batch)[0]]


def labelled(x, y):
    return x, [] if y is None else ["y", y]


def rows(count, seed=0):
    return np.random.default_rng(seed).normal(size=(count, 3)).round(3).tolist()


CLASSES = {"classes": ("a", "b")}
ALTERNATING = [labelled(x, "ab"[i % 2]) for i, x in enumerate(rows(1200))]
STREAMS = {
    "one class": ({}, [labelled(x, "a") for x in rows(3000)]),
    "one of two declared classes": (CLASSES, [labelled(x, "a") for x in rows(1500)]),
    "a second class after 1,000": (
        {}, [labelled(x, "a" if i < 1000 else "ab"[i % 2]) for i, x in enumerate(rows(1500))],
    ),
    "constant features": (CLASSES, [labelled([1, 2, 3], "ab"[i % 2]) for i in range(600)]),
    "one constant feature": (
        CLASSES, [labelled([*x[:2], 7.0], "ab"[x[0] > 0]) for x in rows(600)],
    ),
    "the same row 1,000 times": (CLASSES, [labelled([0.5, -1, 2], "a")] * 1000),
    "the same row with both labels": (
        CLASSES, ALTERNATING[:300] + [labelled([0, 0, 0], "ab"[i % 2]) for i in range(1000)],
    ),
    "labels outside the set": (
        CLASSES, [labelled(x, ("a", "b", "c", "", "A")[i % 5]) for i, x in enumerate(rows(1000))],
    ),
    "labels missing": (
        CLASSES, [labelled(x, ("a", "b", None, None)[i % 4]) for i, x in enumerate(rows(1000))],
    ),
    "no label at all": (CLASSES, [labelled(x, None) for x in rows(1000)]),
    "the largest and smallest numbers": (
        CLASSES,
        [
            labelled([[1e100, -1e100, 2.3e-308, 0.0][i % 4], x[1], 1e-300], "ab"[i % 2])
            for i, x in enumerate(rows(400))
        ],
    ),
    "forty classes": ({}, [labelled(x, f"c{i % 40}") for i, x in enumerate(rows(400))]),
}  # fmt: skip


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("machine", [
    {"kernel": "rbf"}, {"kernel": "linear"},
], ids=str)  # fmt: skip
def test_an_odd_stream_gets_defined_answers(name, machine):
    options, examples = STREAMS[name]
    config = PredictorConfig(window=200, refit_every=100, **machine, **options)
    found = answers(config, examples)
    assert len(found) == len(examples)
    for message in found:
        if message["status"] == "rejected":
            assert message["code"] == "label"
            continue
        assert message["status"] in ("ok", "warming")
        assert 0 <= message["lower"] <= message["upper"] <= 1
        if message["status"] == "ok":
            assert sum(message["probabilities"]) == pytest.approx(1)
            assert all(0 <= low <= high <= 1 for low, high in message["intervals"])
            assert all(0 <= p <= 1 for values in message["maps"].values() for p in values)


def forged(shape, stop, dtype="F64"):
    """Return a container with one array whose header promises more than there is."""
    places = {"dtype": dtype, "shape": shape, "data_offsets": [0, stop]}
    text = json.dumps({"__metadata__": {"header": '00000000{"format": 2}'}, "w": places}).encode()
    return len(text).to_bytes(8, "little") + text


@pytest.mark.parametrize("data", [
    (1 << 62).to_bytes(8, "little") + b"{}",  # a header that is longer than any file
    forged([10**12], 8 * 10**12), forged([10**6, 10**6], 8 * 10**12), forged([2**64], 8),
    forged([0, 1 << 62, 1 << 62], 0), forged([1], 8, "O"),
])  # fmt: skip
def test_a_forged_array_header_takes_no_memory(data):
    tracemalloc.start()
    try:
        with pytest.raises(InvalidSnapshot):
            unpack(data)
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()
