"""A batch with bad entries in it: the good ones are read by column, with the same result."""

import json
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from online_svm.config import PredictorConfig
from online_svm.stream.schema import FeatureSchema
from workers.config.settings import Limits
from workers.message import entry_decode
from workers.message.decode import decode

LIMITS = Limits(max_entry_bytes=1024)
good = st.tuples(st.floats(-1e3, 1e3, allow_subnormal=False), st.integers(-9, 9)).map(
    lambda v: [b"x", json.dumps(v).encode(), b"y", b"p"]
)
others = st.one_of(
    good.map(lambda fields: [*fields, b"id", b"an id"]),
    good.map(lambda fields: fields[2:] + fields[:2]),
    st.just([b"xb", struct.pack("<2d", 1.0, 2.0), b"y", b"q"]),
    st.sampled_from([
        [b"x", b"[NaN,1]", b"y", b"p"],
        [b"x", b"[1]", b"y", b"p"],
        [b"x", b"[1,2],[3,4]", b"y", b"p"],
        [b"x", b"[1,2]],\n[[3,4]", b"y", b"p"],
        [b"x", b"[1e101,2]", b"y", b"p"],
        [b"x", b"[1,2]", b"y", b"unknown"],
        [b"x", b"[1,2]", b"y", b"\xff"],
        [b"x", b"[1,2]" + b" " * 1024, b"y", b"p"],
        [b"x", b"[1,2]", b"x", b"[1,2]"],
        [b"x", b'{"a":1,"b":2}', b"y", b"p"],
        [],
    ]),
)  # fmt: skip
batches = st.lists(st.one_of(good, good, good, good, others), min_size=1, max_size=80)


def alone(batch, schema):
    """Read each entry by itself: what defines the result."""
    found = []
    for fields in batch:
        try:
            row, label, _ = entry_decode.decode_entry(fields, schema, LIMITS)
            found.append((row.tobytes(), label, entry_decode.readable_id(fields, LIMITS)))
        except entry_decode.InvalidExample as error:
            found.append((error.code, error.reason, entry_decode.readable_id(fields, LIMITS)))
    return found


@pytest.mark.parametrize("features", [None, 2])
@settings(max_examples=150)
@given(batches)
def test_a_mixed_batch_is_decoded_as_its_entries_are_alone(features, batch):
    config = PredictorConfig(features=features, classes=("p", "q"))
    decoded = decode([(b"1-0", fields) for fields in batch], FeatureSchema(config), LIMITS)
    found = {
        i: (decoded.X[row].tobytes(), decoded.labels[row], decoded.ids[i])
        for row, i in enumerate(decoded.accepted)
    } | {i: (e.code, e.reason, decoded.ids[i]) for i, e in decoded.rejected.items()}
    assert [found[i] for i in range(len(batch))] == alone(batch, FeatureSchema(config))
    assert decoded.accepted == sorted(decoded.accepted)
    assert list(decoded.rejected) == sorted(decoded.rejected)


def test_one_bad_entry_leaves_nearly_all_others_to_the_columns(monkeypatch):
    batch = [(b"1-0", [b"x", b"[%d,1]" % i, b"y", b"p"]) for i in range(256)]
    batch[100] = (b"1-0", [b"x", b"[NaN,1]", b"y", b"p"])
    singly = []
    real = entry_decode.decode_entry
    monkeypatch.setattr(entry_decode, "decode_entry", lambda *a: singly.append(a) or real(*a))
    decoded = decode(batch, FeatureSchema(PredictorConfig(features=2)), LIMITS)
    assert list(decoded.rejected) == [100]
    assert np.array_equal(decoded.X[:, 0], [i for i in range(256) if i != 100])
    assert len(singly) == 1
