import json
import math
import struct

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from online_svm.config import PredictorConfig
from online_svm.errors import REJECTION_CODES, InvalidExample
from online_svm.stream.prediction import LabelReport, MethodReport, PredictionBlock, ValidityReport
from online_svm.stream.schema import FeatureSchema
from workers.config.settings import Limits
from workers.message.decode import decode
from workers.message.encode import encode_block, encode_rejected, encode_report
from workers.message.schema import MetricsMessage, PredictionMessage, RejectedMessage


def entry(*pairs, number=1):
    """Return a stream entry as the protocol carries it: an ID and a flat list."""
    return (b"%d-0" % number, [part for pair in pairs for part in pair])


def schema_of(**settings_):
    return FeatureSchema(PredictorConfig(**settings_))


def code_of(*pairs, limits=None, **settings_):
    decoded = decode([entry(*pairs)], schema_of(**settings_), limits or Limits())
    assert not decoded.accepted
    assert decoded.X.shape[0] == 0
    return decoded.rejected[0].code


# What is rejected, and why


@pytest.mark.parametrize(
    ("x", "code"),
    [
        (b"[NaN, 1]", "not_finite"),
        (b"[Infinity, 1]", "not_finite"),
        (b"[-Infinity, 1]", "not_finite"),
        (b"[1e999, 1]", "not_finite"),
        (b"[-1e999, 1]", "not_finite"),
        (b"[" + b"9" * 5000 + b", 1]", "not_finite"),
        (b"[1e-310, 1]", "out_of_range"),
        (b"[5e-324, 1]", "out_of_range"),
        (b"[1.1e100, 1]", "out_of_range"),
        (b"[-1.7976931348623157e308, 1]", "out_of_range"),
        (b"[1]", "dimension"),
        (b"[1, 2, 3]", "dimension"),
        (b"[]", "dimension"),
        (b"[true, 1]", "unparsable"),
        (b'["1", 1]', "unparsable"),
        (b"[[1, 2]]", "dimension"),
        (b"[[1], [2]]", "unparsable"),
        (b"[{}, 1]", "unparsable"),
        (b"[1, 2", "unparsable"),
        (b"1, 2]", "unparsable"),
        (b"[1, 2],[3, 4]", "unparsable"),
        (b"[1 2]", "unparsable"),
        (b"[01, 2]", "unparsable"),
        (b"[1, 2]\0", "unparsable"),
        (b"12", "unparsable"),
        (b"NaN", "unparsable"),
        (b'"[1, 2]"', "unparsable"),
        (b"null", "unparsable"),
        (b"", "unparsable"),
        (b"\xff\xfe", "unparsable"),
        (b'["\xff", 1]', "unparsable"),
        (b"[" * 20_000 + b"]" * 20_000, "unparsable"),
        (b"[" * 100_000 + b"]" * 100_000, "too_large"),
        (b'{"a":' * 2_000 + b"1" + b"}" * 2_000, "unparsable"),
        (b"[null, 1]", "missing_feature"),
        (b'{"a": 1, "b": 2}', "unparsable"),  # the feed takes arrays
    ],
)
def test_an_array_that_cannot_be_used_is_rejected_with_its_code(x, code):
    assert code_of((b"x", x), features=2) == code


@pytest.mark.parametrize(
    ("x", "code"),
    [
        (b'{"a": 1}', "missing_feature"),
        (b'{"a": 1, "b": null}', "missing_feature"),
        (b'{"a": 1, "b": 2, "c": 3}', "unknown_feature"),
        (b'{"a": 1, "b": 2, "a": 3}', "duplicate_field"),
        (b'{"a":1,"b":2,"\\u0061":3}', "duplicate_field"),
        (b'{"a": 1, "b": true}', "unparsable"),
        (b'{"a": 1, "b": "2"}', "unparsable"),
        (b'{"a": 1, "b": [2]}', "unparsable"),
        (b'{"a": 1, "b": NaN}', "not_finite"),
        (b'{"a": 1, "b": 1e999}', "not_finite"),
        (b'{"a": 1, "b": 1e-310}', "out_of_range"),
        (b"{}", "missing_feature"),
        (b'{"a": 1, "b": 2', "unparsable"),
    ],
)
def test_an_object_that_cannot_be_used_is_rejected_with_its_code(x, code):
    assert code_of((b"x", x), features=("a", "b")) == code


@pytest.mark.parametrize(
    ("x", "settings_", "reason"),
    [
        (b"[1, NaN]", {}, "feature 1 is NaN; send a finite number"),
        (b"[1, -Infinity]", {}, "feature 1 is infinite; send a finite number"),
        (b"[1, 1e999]", {"features": ("b", "a")}, "feature 'b' is infinite; send a finite number"),
        (b"[1, 2, NaN]", {"features": ("b", "a")}, "feature 2 is NaN; send a finite number"),
        (b'{"b": 1e999}', {}, "feature 'b' is infinite; send a finite number"),
        (b'{"' + b"b" * 50 + b'": NaN}', {}, f"feature '{'b' * 40}' is NaN; send a finite number"),
        (b'{"a": "nan"}', {}, "feature 'a' is text; send a number"),
        (b'["1e999"]', {}, "feature 0 is text; send a number"),
        (b"[true]", {}, "feature 0 is true or false; send a number"),
        (b"[[1]]", {}, "feature 0 is an array; send a number"),
    ],
)
def test_a_value_that_is_no_finite_number_is_rejected_by_the_name_of_its_feature(
    x, settings_, reason
):
    decoded = decode([entry((b"x", x))], schema_of(**settings_), Limits())
    assert decoded.rejected[0].reason == reason


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (struct.pack("<2d", math.nan, 1), "not_finite"),
        (struct.pack("<2d", 1, math.inf), "not_finite"),
        (struct.pack("<2d", 1, 1e-320), "out_of_range"),
        (struct.pack("<2d", 1, 1e101), "out_of_range"),
        (struct.pack("<3d", 1, 2, 3), "dimension"),
        (b"1234567", "dimension"),
        (b"", "dimension"),
    ],
)
def test_raw_floats_that_cannot_be_used_are_rejected_with_their_code(raw, code):
    assert code_of((b"xb", raw), features=2) == code


@pytest.mark.parametrize(
    ("pairs", "code"),
    [
        ([], "no_features"),
        ([(b"y", b"a")], "no_features"),
        ([(b"x", b"[1]"), (b"z", b"1")], "unknown_field"),
        ([(b"x", b"[1]"), (b"\xff\0", b"1")], "unknown_field"),
        ([(b"X", b"[1]")], "unknown_field"),
        ([(b"x", b"[1]"), (b"x", b"[1]")], "duplicate_field"),
        ([(b"x", b"[1]"), (b"y", b"a"), (b"y", b"a")], "duplicate_field"),
        ([(b"x", b"[1]"), (b"xb", bytes(8))], "duplicate_field"),
        ([(b"for", b"id-1"), (b"y", b"a")], "unsupported"),
        ([(b"x", b"[1]"), (b"y", b"\xff")], "unparsable"),
        ([(b"x", b"[1]"), (b"y", b"a\0")], "unparsable"),
        ([(b"x", b"[1]"), (b"y", b"")], "label"),
        ([(b"x", b"[1]"), (b"y", b"a" * 257)], "label"),
        ([(b"x", b"[1]"), (b"y", b"c")], "label"),
        ([(b"x", b"[1]"), (b"id", b"\xff")], "unparsable"),
        ([(b"x", b"[1]"), (b"id", b"i" * 257)], "too_large"),
        ([(b"x", b"[1" + b" " * (1 << 20) + b"]")], "too_large"),
    ],
)
def test_an_entry_that_cannot_be_used_is_rejected_with_its_code(pairs, code):
    assert code_of(*pairs, classes=("a", "b")) == code


def test_every_code_that_is_given_is_a_published_one():
    assert set(REJECTION_CODES) >= {"duplicate_field", "too_large", "unsupported"}


def test_a_reason_is_short_and_free_of_control_characters():
    hostile = (b"\x1b[31m\r\n\0" + b"\xff" * 100_000, b"1")
    decoded = decode([entry(hostile)], schema_of(), Limits())
    assert len(decoded.rejected[0].reason) < 400
    assert decoded.rejected[0].reason.isprintable()


def test_the_id_of_a_rejected_entry_is_kept_where_it_can_be_read():
    batch = [
        entry((b"id", b"one"), (b"x", b"[NaN]")),
        entry((b"id", b"\xff"), (b"x", b"[1]")),
        entry((b"id", b"a"), (b"id", b"b"), (b"x", b"[1]")),
        entry((b"id", b"four"), (b"x", b"[1]")),
    ]
    decoded = decode(batch, schema_of(), Limits())
    assert decoded.ids == ["one", None, None, "four"]
    assert decoded.accepted == [3]


def test_integers_keep_their_nearest_double():
    big = 2**63 + 1025
    decoded = decode([entry((b"x", b"[%d, -0, 7]" % big))], schema_of(features=3), Limits())
    assert decoded.X[0].tolist() == [float(big), 0.0, 7.0]


def test_a_missing_value_is_a_nan_where_missing_values_are_allowed():
    batch = [entry((b"x", b"[null, 1]")), entry((b"xb", struct.pack("<2d", math.nan, 2)))]
    decoded = decode(batch, schema_of(features=2, missing="mean"), Limits())
    assert np.isnan(decoded.X[:, 0]).all()
    assert decoded.X[:, 1].tolist() == [1.0, 2.0]


# The features of a feed


def test_the_first_accepted_entry_gives_the_feed_its_dimension():
    batch = [
        entry((b"x", b"[1, 2, NaN]")),
        entry((b"x", b"[1, 2, 3]"), (b"y", b"")),
        entry((b"x", b"[1, 2]")),
        entry((b"x", b"[1, 2, 3]")),
    ]
    schema = schema_of()
    decoded = decode(batch, schema, Limits())
    assert schema.dimension == 2
    assert decoded.accepted == [2]
    assert decoded.rejected[3].code == "dimension"


def test_the_first_accepted_entry_gives_the_feed_its_sorted_names():
    schema = schema_of()
    batch = [entry((b"x", b'{"b": 1, "a": 2}')), entry((b"x", b'{"a": 3, "b": 4}'))]
    decoded = decode(batch, schema, Limits())
    assert schema.names == ("a", "b")
    assert decoded.X.tolist() == [[2, 1], [3, 4]]


@pytest.mark.parametrize(
    ("x", "code"),
    [
        (b"[1, 2, 3]", "dimension"),
        (b'{"": 1}', "unparsable"),
        (b'{"a\\u0000": 1}', "unparsable"),
        (b'{"%b": 1}' % (b"n" * 257), "unparsable"),
    ],
)
def test_a_feed_does_not_adopt_features_beyond_its_limits(x, code):
    schema = schema_of()
    decoded = decode([entry((b"x", x))], schema, Limits(max_features=2))
    assert decoded.rejected[0].code == code
    assert schema.dimension is None


# A batch answers as its entries do alone

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


def batches(values, field=b"x"):
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


def alone(batch, schema, limits):
    """Decode entry by entry: batches of one, after a first that can never be ordinary."""
    out = []
    for one in batch:
        decoded = decode([one, entry((b"?", b""))], schema, limits)
        out.append((decoded.X[:1].tobytes(), decoded.labels, decoded.ids[0], reason(decoded, 0)))
    return out


def reason(decoded, i):
    error = decoded.rejected.get(i)
    return None if error is None else (error.code, error.reason)


def together(batch, schema, limits):
    decoded = decode(batch, schema, limits)
    rows = {position: k for k, position in enumerate(decoded.accepted)}
    assert sorted([*rows, *decoded.rejected]) == list(range(len(batch)))
    out = []
    for i in range(len(batch)):
        k = rows.get(i)
        row = b"" if k is None else decoded.X[k].tobytes()
        labels = [] if k is None else [decoded.labels[k]]
        out.append((row, labels, decoded.ids[i], reason(decoded, i)))
    return out


@pytest.mark.parametrize("features", [2, ("a", "b"), None])
@settings(max_examples=150, deadline=None)
@given(
    rows=st.one_of(
        batches(arrays),
        batches(objects),
        batches(oddities),
        batches(st.one_of(arrays, objects, oddities)),
        batches(raw, b"xb"),
    )
)
def test_a_batch_is_decoded_as_its_entries_are_alone(features, rows):
    batch = build(rows)
    config = {"features": features, "classes": ("p", "q")}
    limits = Limits()
    assert together(batch, schema_of(**config), limits) == alone(batch, schema_of(**config), limits)


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


# Encoding

probabilities = st.floats(0, 1)
labels = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)


@st.composite
def blocks(draw):
    m, k = draw(st.integers(1, 4)), draw(st.integers(2, 4))
    unseen = draw(st.booleans())
    names = draw(st.lists(labels, min_size=k, max_size=k, unique=True))
    machines = 1 if k == 2 else k

    def floats(*shape, values=probabilities):
        flat = draw(st.lists(values, min_size=math.prod(shape), max_size=math.prod(shape)))
        return np.array(flat).reshape(shape)

    def integers(low, high):
        return np.array(draw(st.lists(st.integers(low, high), min_size=m, max_size=m)))

    maps = draw(st.lists(st.sampled_from(["platt", "isotonic", "50%"]), unique=True))
    bounded = draw(st.none() | st.lists(st.sampled_from(["venn-abers", "50%"]), unique=True))
    finite = st.floats(allow_nan=False, allow_infinity=False)
    return PredictionBlock(
        status="ok",
        classes=(*names[:-1], None) if unseen else tuple(names),
        n=integers(0, 2**50),
        label=integers(0, k - 1),
        svm_label=integers(0, k - 1),
        point=floats(m, k),
        lower=floats(m, k),
        upper=floats(m, k),
        maps={name: floats(m, k) for name in maps},
        map_intervals=None if bounded is None else {name: floats(m, k, 2) for name in bounded},
        scores=floats(m, machines, values=finite),
        category=integers(0, k),
        category_size=integers(0, 10**6),
        model=draw(st.integers(0, 10**6)),
        calibration=draw(st.integers(0, 10**6)),
        taxonomy=draw(st.integers(0, 10**6)),
        guarantee=draw(st.sampled_from(["exact", "approximate", "none"])),
        reason=draw(st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=9)),
    )


def message_of(block, i, seq, id_):
    """Build the payload the slow, obvious way: the row, through the model of the schema."""
    row = block.row(i)
    fields = {
        name: getattr(row, name)
        for name in PredictionMessage.model_fields
        if name not in ("v", "id", "seq")
    }
    return PredictionMessage(seq=seq, id=id_, **fields)


ids = st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=6)


@settings(max_examples=200, deadline=None)
@given(block=blocks(), data=st.data())
def test_a_block_is_encoded_as_its_rows_are_through_the_schema(block, data):
    seqs = [int(n) + 3 for n in block.n]
    names = data.draw(st.lists(ids, min_size=len(block), max_size=len(block)))
    payloads = encode_block(block, seqs, names)
    for i, payload in enumerate(payloads):
        message = message_of(block, i, seqs[i], names[i])
        assert payload == message.payload()
        parsed = PredictionMessage.model_validate_json(payload)
        assert parsed == message
        for field in PredictionMessage.model_fields:
            assert getattr(parsed, field) == getattr(message, field), field


def warming_block(m=3, map_intervals=None):
    empty = np.empty((m, 0))
    none = np.full(m, -1)
    return PredictionBlock(
        status="warming", classes=("a", "b"), n=np.arange(m), label=none, svm_label=none,
        point=empty, lower=empty, upper=empty, maps={}, map_intervals=map_intervals,
        scores=empty, category=none, category_size=np.zeros(m, dtype=np.int64),
        model=0, calibration=0, taxonomy=0, guarantee="none",
        reason="no refit has seen two classes yet",
    )  # fmt: skip


@pytest.mark.parametrize("map_intervals", [None, {}], ids=["points only", "intervals"])
def test_a_warming_block_is_encoded_through_the_schema_too(map_intervals):
    block = warming_block(map_intervals=map_intervals)
    payloads = encode_block(block, range(3), [None, "a", None])
    assert payloads == [
        message_of(block, i, i, name).payload() for i, name in enumerate([None, "a", None])
    ]
    assert orjson.loads(payloads[1])["probability"] is None
    assert ("map_intervals" in orjson.loads(payloads[1])) == (map_intervals is not None)


def test_a_number_that_is_not_finite_is_never_published():
    block = warming_block(1)
    values = np.array([[0.5, math.nan]])
    one = np.zeros(1, dtype=np.int64)
    broken = PredictionBlock(
        status="ok", classes=("a", "b"), n=one, label=one, svm_label=one, point=values,
        lower=values, upper=values, maps={}, map_intervals=None, scores=values[:, :1],
        category=one, category_size=one, model=1, calibration=1, taxonomy=1,
        guarantee="exact", reason=None,
    )  # fmt: skip
    assert encode_block(block, [0], [None])
    with pytest.raises(ValueError, match="not finite"):
        encode_block(broken, [0], [None])


@given(id_=ids, reason_=st.text(st.characters(exclude_categories=["Cs"])))
def test_a_rejection_is_encoded_as_the_schema_says(id_, reason_):
    payload = encode_rejected(InvalidExample("label", reason_), 9, 4, id_)
    assert payload == RejectedMessage(seq=9, n=4, code="label", reason=reason_, id=id_).payload()


def test_a_report_is_encoded_as_the_schema_says():
    label = LabelReport(accuracy=0.75, lower=None, probability=0.7, upper=None, paper_p=1.0)
    empty = LabelReport(accuracy=None, lower=None, probability=None, upper=None, paper_p=None)
    method = MethodReport(predicted=label, svm=empty, log_loss=0.5, brier=0.1, clipped=0)
    report = ValidityReport(n=100, scored=80, venn=method, maps={"platt": method})
    payload = encode_report(report, seq=101)
    assert payload == MetricsMessage.model_validate_json(payload).payload()
    assert orjson.loads(payload)["maps"]["platt"]["predicted"]["accuracy"] == 0.75
