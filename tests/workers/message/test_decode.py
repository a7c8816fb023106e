"""A batch is decoded as its entries are alone, though its columns are read together."""

import json
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from online_svm.config import PredictorConfig
from online_svm.errors import InvalidExample
from online_svm.stream.schema import FeatureSchema
from workers.config.settings import Limits
from workers.message import column_decode, entry_decode
from workers.message.decode import decode

LIMITS = Limits(max_entry_bytes=1024)
TUBES = PredictorConfig(learner="psvm", classes=("a", "b"), features=2)
LABELS = PredictorConfig(classes=("a", "b"), features=2)


def entry(*pairs, number=1):
    """Return a stream entry as the protocol carries it: an ID and a flat list."""
    return (b"%d-0" % number, [part for pair in pairs for part in pair])


def schema_of(**settings_):
    return FeatureSchema(PredictorConfig(**settings_))


def alone(batch, schema, limits=LIMITS):
    """Return what is known of each entry, read by itself: what defines the result."""
    found = []
    for _, fields in batch:
        sent = entry_decode.readable_id(fields)
        try:
            read = entry_decode.decode_entry(fields, schema, limits)
        except InvalidExample as error:
            found.append((error.code, error.reason, sent))
        else:
            schema = read.schema
            target = (read.label, read.probability, read.slices)
            found.append((read.row.tobytes(), *target, sent))
    return found, (schema.names, schema.dimension)


def together(batch, schema, limits=LIMITS):
    """Return the same of a batch that is read at once."""
    decoded = decode(batch, schema, limits)
    assert decoded.accepted == sorted(decoded.accepted)
    assert list(decoded.rejected) == sorted(decoded.rejected)
    columns = zip(
        decoded.accepted, decoded.X, decoded.labels, decoded.probabilities, decoded.slices,
        strict=True,
    )  # fmt: skip
    found = {i: (row.tobytes(), *rest, decoded.ids[i]) for i, row, *rest in columns}
    found |= {i: (e.code, e.reason, decoded.ids[i]) for i, e in decoded.rejected.items()}
    assert len(found) == len(decoded.accepted) + len(decoded.rejected)
    known = (decoded.schema.names, decoded.schema.dimension)
    return [found[i] for i in range(len(batch))], known


# Small batches of one kind, and of oddities

numbers = st.one_of(
    st.floats(-1e6, 1e6, allow_subnormal=False),
    st.integers(-(10**25), 10**25),
    st.sampled_from([0.0, -0.0, 1e100, 1e101, 1e-310, 2.3e-308, 5]),
)
ODDITIES = rb"""
[NaN,1] | [1e999,1] | [1] | [1 | 2],[3,4] | [1,2],[3,4] | [[1,2]] | [null,1] | [true,1] | ["1",1]
[1,2]]],[[[3,4] | [1],[2] | ] | {"a":1,"b":2} | {"b":1,"a":2} | {"a":1,"b":2,"a":3}
{"a | ":1,"b":2}
{"a":1} | {"a" : 1, "b" : 2} | {"a":true,"b":1} | {"a":[1],"b":2} | {} | []
"""
oddities = st.sampled_from(
    [text.strip() for line in ODDITIES.strip().splitlines() for text in line.split(b"|")]
    + [
        b"",
        b"\xff",
        b"[1,\n2]",
        b" [1,2]\n",
        b"[1,2]],\n[[3,4]",
        b'{"a":1,"b":2}],\n[{"a":3,"b":4}',
    ]
)
arrays = st.lists(numbers, min_size=2, max_size=2).map(json.dumps).map(str.encode)
objects = st.tuples(numbers, numbers).map(
    lambda v: json.dumps({"a": v[0], "b": v[1]}, separators=(",", ":")).encode()
)
raw = st.lists(st.floats(width=64), min_size=2, max_size=2).map(lambda v: struct.pack("<2d", *v))


def batches_of(values, field=b"x"):
    fields = st.tuples(
        st.just([(field, None)]),
        values,
        st.sampled_from([[(b"y", b"p")], [(b"y", b"q")], [(b"y", b"p")], [(b"y", b"r")], []]),
        st.sampled_from([[], [(b"id", 'é"'.encode())], [], [(b"id", b"\xff")], [(b"y", b"p")]]),
    )
    ordinary = st.tuples(st.just([(field, None)]), values, st.just([(b"y", b"p")]), st.just([]))
    return st.one_of(st.lists(ordinary, max_size=6), st.lists(fields, max_size=6))


def build(rows):
    return [
        entry((field, x), *y, *rest, number=i) for i, ([(field, _)], x, y, rest) in enumerate(rows)
    ]


@pytest.mark.parametrize("features", [2, ("a", "b"), None])
@settings(max_examples=150, deadline=None)
@given(
    rows=st.one_of(
        batches_of(arrays),
        batches_of(objects),
        batches_of(oddities),
        batches_of(st.one_of(arrays, objects, oddities)),
        batches_of(raw, b"xb"),
    )
)
def test_a_batch_is_decoded_as_its_entries_are_alone(features, rows):
    batch = build(rows)
    schema = schema_of(features=features, classes=("p", "q"))
    assert together(batch, schema) == alone(batch, schema)


@pytest.mark.parametrize(
    "values",
    [
        [b"[1", b"2],[3,4]"],
        [b"[1,2],[3", b"4]"],
        [b"[1,2],\n[3", b"4]"],
        [b"[1,2]],\n[[3,4]", b"", b"[5,6]"],
        [b"[1]],\n[[2]", b"[3", b"4]"],
        [b"[1,2]],\n[[3", b"4]"],
        [b"1,2", b"3,4"],
        [b"[1,2]],\n[[3,4]],\n[[5,6]", b"[7", b"8]"],
    ],
)
def test_values_that_only_make_sense_joined_are_rejected_one_by_one(values):
    batch = [entry((b"x", value)) for value in values]
    decoded = decode(batch, schema_of(features=2), Limits())
    expected = [i for i, value in enumerate(values) if value in (b"[5,6]",)]
    assert decoded.accepted == expected


def test_mappings_and_flat_lists_are_decoded_alike():
    flat = [entry((b"x", b"[1,2]"), (b"y", b"a")), entry((b"x", b"[3,4]"), (b"y", b"b"))]
    mapped = [(i, dict(zip(f[::2], f[1::2], strict=True))) for i, f in flat]
    one, other = (decode(batch, schema_of(features=2), Limits()) for batch in (flat, mapped))
    assert one.X.tolist() == other.X.tolist()
    assert one.labels == other.labels == ["a", "b"]


def test_an_empty_batch_decodes_to_nothing():
    decoded = decode([], schema_of(features=3), Limits())
    assert decoded.X.shape == (0, 3)
    assert decoded.ids == []


# Larger batches, in which most entries are ordinary

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


@pytest.mark.parametrize("features", [None, 2])
@settings(max_examples=150)
@given(batches)
def test_a_mixed_batch_is_decoded_as_its_entries_are_alone(features, batch):
    schema = schema_of(features=features, classes=("p", "q"))
    entries = [(b"1-0", fields) for fields in batch]
    assert together(entries, schema) == alone(entries, schema)


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


# Batches with probabilities

TARGETS = [
    [], [(b"y", b"a")], [(b"y", b"b")], [(b"y", b"?")], [(b"p", b"0.25")], [(b"p", b"1")],
    [(b"p", b"1.5")], [(b"p", b"nan")], [(b"p", b"")], [(b"y", b"a"), (b"p", b"0.5")],
    [(b"p", b"0.5"), (b"p", b"0.5")],
]  # fmt: skip
targets = st.one_of(
    st.sampled_from(TARGETS),
    st.floats(0, 1).map(lambda p: [(b"p", repr(p).encode())]),
)
only_p = st.floats(0, 1).map(lambda p: [(b"p", repr(p).encode())])
identities = st.sampled_from([[], [(b"id", b"i")], [(b"id", b"\xff")]])
pairs_of_features = st.sampled_from([b"[1,2]", b"[3,4]", b"[5]"])
row = st.tuples(pairs_of_features, targets, identities)
uniform = st.tuples(st.sampled_from([b"[1,2]", b"[3,4]"]), only_p, st.just([(b"id", b"i")]))


@pytest.mark.parametrize("config", [TUBES, LABELS], ids=["psvm", "svc"])
@settings(max_examples=200, deadline=None)
@given(batch=st.one_of(st.lists(row, max_size=6), st.lists(uniform, min_size=1, max_size=6)))
def test_a_batch_with_probabilities_is_decoded_as_its_entries_are_alone(config, batch):
    entries = [entry((b"x", x), *t, *i, number=n) for n, (x, t, i) in enumerate(batch)]
    assert together(entries, FeatureSchema(config)) == alone(entries, FeatureSchema(config))


def test_a_batch_of_probabilities_alone_is_read_by_columns():
    batch = [[b"x", b"[1,2]", b"p", b"0.25"], [b"x", b"[3,4]", b"p", b"1"]]
    X, labels, probabilities, *_ = column_decode.decode_columns(
        batch, FeatureSchema(TUBES), Limits()
    )
    assert (X.tolist(), labels) == ([[1.0, 2.0], [3.0, 4.0]], [None, None])
    assert probabilities == [0.25, 1.0]


def test_entries_without_a_probability_are_read_by_columns_as_ever():
    batch = [[b"x", b"[1,2]", b"y", b"a"]]
    read = column_decode.decode_columns(batch, FeatureSchema(TUBES), Limits())
    assert read is not None
    assert read[1:] == (["a"], [None], [None], [None], [None])


# Slices

SLICED = PredictorConfig(features=2, classes=("a", "b"), slices=("country", "age"))
sent_slices = st.sampled_from(
    [
        b'{"country":"DE"}', b'{"age":"old","country":"FR"}', b'{"country":null}', b"{}",
        b'{"country":"\\u0000\\u001b\\"\\n"}', b'{"country":"DE","country":"FR"}', b'{"land":"DE"}',
        b'{"country":1}', b'{"country":["DE"]}', b'["DE"]', b"null", b"", b'{"country":"DE"',
        b"\xff",
        b'{"country":"\\ud800"}', b'{"country":"' + b"x" * 65 + b'"}', b"[" * 5000,
    ]
)  # fmt: skip
sliced_row = st.tuples(
    st.sampled_from([b"[1,2]", b"[3,4]", b"[1]"]),
    st.sampled_from([[], [(b"y", b"a")]]),
    st.sampled_from([[], [(b"id", b"i")]]),
    st.one_of(st.just([]), st.tuples(st.just(b"s"), sent_slices).map(lambda pair: [pair])),
)


@settings(max_examples=300, deadline=None)
@given(batch=st.lists(sliced_row, max_size=6))
def test_a_batch_with_slices_is_decoded_as_its_entries_are_alone(batch):
    limits = Limits(max_entry_bytes=10_000)
    entries = [entry((b"x", x), *y, *i, *s, number=n) for n, (x, y, i, s) in enumerate(batch)]
    schema = FeatureSchema(SLICED)
    assert together(entries, schema, limits) == alone(entries, schema, limits)


def test_a_batch_with_slices_is_read_by_columns():
    batch = [
        [b"x", b"[1,2]", b"y", b"a", b"id", b"1", b"s", b'{"age":"old"}'],
        [b"x", b"[3,4]", b"y", b"b", b"id", b"2", b"s", b'{"country":"DE","age":null}'],
    ]
    read = column_decode.decode_columns(batch, FeatureSchema(SLICED), Limits())
    assert read is not None
    assert read[3] == [(None, "old"), ("DE", None)]
