"""A batch is decoded as its entries are alone, though its columns are read together."""

import json
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from online_svm.config import PredictorConfig
from online_svm.errors import InvalidExample
from online_svm.stream.cells import widened
from online_svm.stream.schema import FeatureSchema
from workers.config.settings import Limits
from workers.message import column_decode, entry_decode
from workers.message.decode import decode

LIMITS = Limits(max_entry_bytes=10_000)


def schema_of(**changes):
    return FeatureSchema(PredictorConfig(**{"classes": ("a", "b")} | changes))


SCHEMAS = {
    "two features": schema_of(features=2),
    "two names": schema_of(features=("a", "b")),
    "unknown features": schema_of(),
    "probabilities": schema_of(features=2, learner="psvm"),
    "slices": schema_of(features=2, slices=("country", "age")),
    "kinds that are found": schema_of(features="infer"),
    "declared kinds": schema_of(features={"a": "number", "b": "category"}),
    "known names": schema_of().knowing({"a": 1, "b": "x", "c": 2, "d": None}),
    "full of names": schema_of().knowing({"a": 1, "b": "x", "c": 2}, max_names=2),
}


def alone(batch, schema):
    """Return what is known of each entry, read by itself: what defines the result."""
    found = []
    for fields in batch:
        sent = entry_decode.readable_id(fields)
        try:
            read = entry_decode.decode_entry(fields, schema, LIMITS)
        except InvalidExample as error:
            found.append((error.code, error.reason, sent))
        else:
            schema = read.schema
            found.append((read.row, read.label, read.probability, read.slices, sent))
    width = schema.dimension or 0  # names that come later are gaps in the rows before
    return [
        (widened(row, width).tobytes(), *rest) if isinstance(row, np.ndarray) else (row, *rest)
        for row, *rest in found
    ], (schema.names, schema.dimension)


def together(batch, schema):
    """Return the same of a batch that is read at once."""
    decoded = decode([(b"%d-0" % i, fields) for i, fields in enumerate(batch)], schema, LIMITS)
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


numbers = st.one_of(
    st.floats(-1e6, 1e6, allow_subnormal=False),
    st.integers(-(10**25), 10**25),
    st.sampled_from([0.0, -0.0, 1e100, 1e101, 1e-310, 2.3e-308, 5]),
)
pairs = st.lists(numbers, min_size=2, max_size=2)
FEATURES = {
    "arrays": pairs.map(lambda v: (b"x", json.dumps(v).encode())),
    "objects": pairs.map(
        lambda v: (b"x", json.dumps({"a": v[0], "b": v[1]}, separators=(",", ":")).encode())
    ),
    "raw": st.lists(st.floats(width=64), min_size=2, max_size=2).map(
        lambda v: (b"xb", struct.pack("<2d", *v))
    ),
}
cells = st.one_of(
    numbers,
    st.booleans(),
    st.none(),
    st.sampled_from(["red", "", "007", "1e400", "NA", "2024-01-05", 'a"b', "[1,2],\n{", "\u202e"]),
    st.text(max_size=3),
)
FEATURES["kinds"] = st.dictionaries(st.sampled_from(["a", "b", "c", 'd"d', "", "e\0"]), cells).map(
    lambda x: (b"x", json.dumps(x, separators=(",", ":")).encode())
)
ODD = {
    "arrays": [
        b"[NaN,1]", b"[1e999,1]", b"[1]", b"[1", b"2],[3,4]", b"[1,2],[3,4]", b"[[1,2]]",
        b"[null,1]", b"[true,1]", b'["1",1]', b"[1,2]]],[[[3,4]", b"[1],[2]", b"]", b"[]", b"",
        b"\xff", b"[1,\n2]", b" [1,2]\n", b"[1,2]],\n[[3,4]", b"[1,2]" + b" " * 10_000,
    ],
    "objects": [
        b'{"b":1,"a":2}', b'{"a":1,"b":2,"a":3}', b'{"a', b'":1,"b":2}', b'{"a":1}', b"{}",
        b'{"a" : 1, "b" : 2}', b'{"a":true,"b":1}', b'{"a":null,"b":1}', b'{"a":[1],"b":2}',
        b'{"a":1,"b":2}],\n[{"a":3,"b":4}', b'{"a":1,"c":2}', b'{"a":1,"b":"2"}',
    ],
    "raw": [bytes(8), bytes(15), bytes(24), b""],
    "kinds": [b'{"a":"x","b":NaN}', b'{"a":"x","a":"y"}', b'{"a":"\\ud800"}', b'{"a":"x"'],
}  # fmt: skip
odd = {
    kind: st.sampled_from(texts).map(lambda text, name=name: (name, text))
    for (kind, texts), name in zip(ODD.items(), (b"x", b"x", b"xb", b"x"), strict=True)
}
probabilities = st.floats(0, 1).map(lambda p: [(b"p", repr(p).encode())])
targets = st.one_of(
    st.sampled_from([b"a", b"b", b"unknown", b"\xff"]).map(lambda label: [(b"y", label)]),
    st.sampled_from([
        [], [(b"p", b"1")], [(b"p", b"1.5")], [(b"p", b"nan")], [(b"p", b"")],
        [(b"y", b"a"), (b"p", b"0.5")], [(b"p", b"0.5"), (b"p", b"0.5")], [(b"y", b"a")] * 2,
    ]),
    probabilities,
)  # fmt: skip
identities = st.sampled_from([[], [(b"id", 'é"'.encode())], [(b"id", b"\xff")]])
SENT_SLICES = [
    b'{"country":"DE"}', b'{"age":"old","country":"FR"}', b'{"country":null}', b"{}",
    b'{"country":"\\u0000\\u001b\\"\\n"}', b'{"country":"DE","country":"FR"}', b'{"land":"DE"}',
    b'{"country":1}', b'{"country":["DE"]}', b'["DE"]', b"null", b"", b'{"country":"DE"',
    b"\xff", b'{"country":"\\ud800"}', b'{"country":"' + b"x" * 65 + b'"}', b"[" * 5000,
]  # fmt: skip
slices = st.one_of(st.just([]), st.sampled_from(SENT_SLICES).map(lambda sent: [(b"s", sent)]))


def flat(fields):
    return [part for pair in fields for part in pair]


@st.composite
def batches(draw):
    """Entries that are mostly alike, as far as their kind goes, among a few of any other."""
    kind = draw(st.sampled_from([*FEATURES]))
    features = FEATURES[kind] if draw(st.booleans()) else st.one_of(FEATURES[kind], odd[kind])
    ordinary = st.tuples(
        features,
        draw(st.sampled_from([st.just([(b"y", b"a")]), probabilities, st.just([])])),
        st.just(draw(identities)),
        st.just([(b"s", SENT_SLICES[0])] * draw(st.integers(0, 1))),
    )
    other = st.tuples(st.one_of(*FEATURES.values(), *odd.values()), targets, identities, slices)
    entry = st.one_of(*[ordinary] * 8, *[other] * draw(st.sampled_from([0, 1, 8])))
    rows = draw(st.lists(entry, max_size=draw(st.sampled_from([2, 6, 40]))))
    return [flat([x, *target, *id, *sliced]) for x, target, id, sliced in rows]


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
@settings(max_examples=40)
@given(batch=batches())
def test_a_batch_is_decoded_as_its_entries_are_alone(schema, batch):
    assert together(batch, schema) == alone(batch, schema)


def test_a_feed_that_passed_names_over_takes_no_arrays():
    rows = [[b"x", b"[1,2,3]"], [b"xb", struct.pack("<3d", 1, 2, 3)], [b"x", b'{"a":1,"z":2}']]
    entries = [(b"%d-0" % i, fields) for i, fields in enumerate(rows)]
    decoded = decode(entries, SCHEMAS["full of names"], LIMITS)
    assert [one.code for one in decoded.rejected.values()] == ["dimension"] * 2
    assert decoded.accepted == [2]


GOOD = {"arrays": b"[1,2]", "objects": b'{"a":1,"b":2}', "raw": struct.pack("<2d", 1, 2),
        "kinds": b'{"a":"x","b":true}'}  # fmt: skip
JOINED = [
    [b"[1", b"2],[3,4]"], [b"[1,2],[3", b"4]"], [b"[1,2],\n[3", b"4]"], [b"1,2", b"3,4"],
    [b"[1,2]],\n[[3,4]", b"", b"[5,6]"], [b"[1]],\n[[2]", b"[3", b"4]"],
    [b"[1,2]],\n[[3", b"4]"], [b"[1,2]],\n[[3,4]],\n[[5,6]", b"[7", b"8]"],
]  # fmt: skip
"""Values of a batch that would make sense if they stood in one text."""


X, Y = [b"x", b"[1,2]"], [b"y", b"a"]
ODD_FIELDS = [
    [], X, Y, X + Y + Y, X + X + Y, [*X, b"xb", bytes(16), *Y], Y + X, [*X, b"y", b"\xff"],
    X + Y + [b"id", b"\xff"], X + Y + [b"id", b"i"] * 2, X + [b"p", b"0.5"] * 2,
    X + Y + [b"z", b""],
]  # fmt: skip
CASES = [("arrays", [fields]) for fields in ODD_FIELDS]
CASES += [("arrays", [[b"x", text, *Y] for text in texts]) for texts in JOINED]
CASES += [
    (kind, [[b"xb" if kind == "raw" else b"x", text, *Y]])
    for kind, texts in ODD.items()
    for text in texts
]


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_odd_entries_are_decoded_alone_and_among_others_as_by_themselves(schema):
    for kind, odd in CASES:
        good = [[b"xb" if kind == "raw" else b"x", GOOD[kind], *Y]]
        for batch in (odd, 20 * odd, 20 * good + odd):
            assert together(batch, schema) == alone(batch, schema), odd


def test_mappings_and_flat_lists_are_decoded_alike():
    batch = [[b"x", b"[1,2]", b"y", b"a"], [b"x", b"[3,4]", b"y", b"b"]]
    mapped = [dict(zip(fields[::2], fields[1::2], strict=True)) for fields in batch]
    assert together(mapped, SCHEMAS["two features"]) == alone(batch, SCHEMAS["two features"])


def test_an_empty_batch_decodes_to_nothing():
    decoded = decode([], SCHEMAS["two features"], LIMITS)
    assert (decoded.X.shape, decoded.ids) == ((0, 2), [])


def test_one_bad_entry_leaves_nearly_all_others_to_the_columns(monkeypatch):
    batch = [(b"1-0", [b"x", b"[%d,1]" % i, b"y", b"a"]) for i in range(256)]
    batch[100] = (b"1-0", [b"x", b"[NaN,1]", b"y", b"a"])
    singly = []
    real = entry_decode.decode_entry
    monkeypatch.setattr(entry_decode, "decode_entry", lambda *a: singly.append(a) or real(*a))
    decoded = decode(batch, SCHEMAS["two features"], LIMITS)
    assert list(decoded.rejected) == [100]
    assert np.array_equal(decoded.X[:, 0], [i for i in range(256) if i != 100])
    assert len(singly) == 1


@pytest.mark.parametrize(("kind", "more", "read"), [
    ("probabilities", [(b"p", b"0.25"), (b"p", b"1")], [[None] * 2, [0.25, 1.0], [None] * 2]),
    ("probabilities", [(b"y", b"a"), (b"y", b"b")], [["a", "b"], [None] * 2, [None] * 2]),
    ("slices", [(b"s", b'{"age":"old"}'), (b"s", b'{"country":"DE","age":null}')],
     [[None] * 2, [None] * 2, [(None, "old"), ("DE", None)]]),
])  # fmt: skip
def test_probabilities_labels_and_slices_are_read_by_columns(kind, more, read):
    batch = [[b"x", b"[1,2]", *sent] for sent in more]
    X, *found = column_decode.decode_columns(batch, SCHEMAS[kind], LIMITS)
    assert (X.tolist(), found[:3]) == ([[1.0, 2.0]] * 2, read)
