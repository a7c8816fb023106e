"""What one entry must be like to be used, and the code and reason of what is not."""

import math
import struct

import numpy as np
import pytest

from online_svm.config import PredictorConfig
from online_svm.errors import REJECTION_CODES
from online_svm.predictor.answering_state import request_schema
from online_svm.stream.schema import FeatureSchema
from workers.config.settings import Limits
from workers.message.decode import decode

TUBES = PredictorConfig(learner="psvm", classes=("a", "b"), features=2)
LABELS = PredictorConfig(classes=("a", "b"), features=2)


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


def with_target(*pairs, config=TUBES):
    return decode([entry((b"x", b"[1,2]"), *pairs)], FeatureSchema(config), Limits())


# What is rejected, and why


TWO, NAMED, DECLARED = {"features": 2}, {"features": ("a", "b")}, {"classes": ("a", "b")}
LONG = b"[1" + b" " * (1 << 20) + b"]"
REJECTED = [
    (TWO, "not_finite", b"x", [
        b"[NaN, 1]", b"[Infinity, 1]", b"[-Infinity, 1]", b"[1e999, 1]", b"[-1e999, 1]",
        b"[" + b"9" * 5000 + b", 1]",
    ]),
    (TWO, "out_of_range", b"x", [
        b"[1e-310, 1]", b"[5e-324, 1]", b"[1.1e100, 1]", b"[-1.7976931348623157e308, 1]",
    ]),
    (TWO, "dimension", b"x", [b"[1]", b"[1, 2, 3]", b"[]", b"[[1, 2]]"]),
    (TWO, "unsupported", b"x", [b"[true, 1]", b'["1", 1]', b"[[1], [2]]", b"[{}, 1]"]),
    (TWO, "unparsable", b"x", [
        b"[1, 2", b"1, 2]", b"[1, 2],[3, 4]", b"[1 2]", b"[01, 2]", b"[1, 2]\0", b"12", b"NaN",
        b'"[1, 2]"', b"null", b"", b"\xff\xfe", b'["\xff", 1]', b"[" * 20_000 + b"]" * 20_000,
        b'{"a":' * 2_000 + b"1" + b"}" * 2_000, b'{"a": 1, "b": 2}',  # the feed takes arrays
    ]),
    (TWO, "too_large", b"x", [b"[" * 100_000 + b"]" * 100_000]),
    (TWO, "missing_feature", b"x", [b"[null, 1]"]),
    (NAMED, "missing_feature", b"x", [b'{"a": 1}', b'{"a": 1, "b": null}', b"{}"]),
    (NAMED, "unknown_feature", b"x", [b'{"a": 1, "b": 2, "c": 3}']),
    (NAMED, "duplicate_field", b"x", [b'{"a": 1, "b": 2, "a": 3}', b'{"a":1,"b":2,"\\u0061":3}']),
    (NAMED, "unsupported", b"x", [
        b'{"a": 1, "b": true}', b'{"a": 1, "b": "2"}', b'{"a": 1, "b": [2]}',
    ]),
    (NAMED, "not_finite", b"x", [b'{"a": 1, "b": NaN}', b'{"a": 1, "b": 1e999}']),
    (NAMED, "out_of_range", b"x", [b'{"a": 1, "b": 1e-310}']),
    (NAMED, "unparsable", b"x", [b'{"a": 1, "b": 2']),
    (TWO, "not_finite", b"xb", [struct.pack("<2d", math.nan, 1), struct.pack("<2d", 1, math.inf)]),
    (TWO, "out_of_range", b"xb", [struct.pack("<2d", 1, 1e-320), struct.pack("<2d", 1, 1e101)]),
    (TWO, "dimension", b"xb", [struct.pack("<3d", 1, 2, 3), b"1234567", b""]),
    (DECLARED, "label", b"y", [b"", b"a" * 257, b"c"]),
    (DECLARED, "unparsable", b"y", [b"\xff", b"a\0"]),
    (DECLARED, "unparsable", b"id", [b"\xff"]),
    (DECLARED, "too_large", b"id", [b"i" * 257]),
    (DECLARED, "too_large", b"x", [LONG]),
]  # fmt: skip
"""Settings of the feed, code, field, and values of it that are rejected with this code."""


@pytest.mark.parametrize(
    ("settings_", "code", "field", "value"),
    [(*case, value) for *case, values in REJECTED for value in values],
)
def test_a_field_that_cannot_be_used_is_rejected_with_its_code(settings_, code, field, value):
    features = [] if field in (b"x", b"xb") else [(b"x", b"[1]")]
    assert code_of(*features, (field, value), **settings_) == code


@pytest.mark.parametrize(
    ("x", "settings_", "reason"),
    [
        (b"[1, NaN]", {}, "feature 1 is NaN; send a finite number"),
        (b"[1, -Infinity]", {}, "feature 1 is infinite; send a finite number"),
        (b"[1, 1e999]", {"features": ("b", "a")}, "feature 'b' is infinite; send a finite number"),
        (b"[1, 2, NaN]", {"features": ("b", "a")}, "feature 2 is NaN; send a finite number"),
        (b'{"b": 1e999}', {}, "feature 'b' is infinite; send a finite number"),
        (b'{"' + b"b" * 50 + b'": NaN}', {}, f"feature '{'b' * 40}' is NaN; send a finite number"),
        (b'{"a": "nan"}', {}, "feature 'a' is text, which is not supported yet; send a number"),
        (b'["1e999"]', {}, "feature 0 is text, which is not supported yet; send a number"),
        (b"[true]", {}, "feature 0 is true or false, which is not supported yet; send a number"),
        (b"[[1]]", {}, "feature 0 is an array, which is not supported yet; send a number"),
    ],
)
def test_a_value_that_is_no_finite_number_is_rejected_by_the_name_of_its_feature(
    x, settings_, reason
):
    decoded = decode([entry((b"x", x))], schema_of(**settings_), Limits())
    assert decoded.rejected[0].reason == reason


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
    ],
)
def test_an_entry_of_other_fields_is_rejected_with_its_code(pairs, code):
    assert code_of(*pairs, classes=("a", "b")) == code


NO_SLICES = "s is sent, but the feed has no slices; set slices"
NO_CONTROL = "field 'c', a control entry, is not supported yet; known: x, xb, y, p, id"
OF_EXAMPLE = "field {!r} is of an example; a request has features alone"
LATE_REQUESTS = request_schema(PredictorConfig(horizon="10ms", slices=("country",), features=1))


@pytest.mark.parametrize(
    ("schema", "pairs", "reason"),
    [
        (schema_of(), [(b"c", b"1")], NO_CONTROL),
        (schema_of(), [(b"x", b"[1]"), (b"y", b"a"), (b"c", b"1")], NO_CONTROL),
        (schema_of(), [(b"x", b"[1]"), (b"s", b"{}")], NO_SLICES),
        (schema_of(metrics_window=None), [(b"x", b"[1]"), (b"s", b"{}")], NO_SLICES),
        *(
            (LATE_REQUESTS, [(b"x", b"[1]"), (name.encode(), b"1")], OF_EXAMPLE.format(name))
            for name in ("s", "for", "time")
        ),
    ],
)
def test_a_field_that_has_no_place_here_is_rejected_as_not_supported(schema, pairs, reason):
    rejected = decode([entry(*pairs)], schema, Limits()).rejected[0]
    assert (rejected.code, rejected.reason) == ("unsupported", reason)


SLICED = {"slices": ("country", "age"), "features": 1}


@pytest.mark.parametrize(
    ("sent", "code", "reason"),
    [
        (b"", "slice", "s is not JSON"),
        (b"\xff", "slice", "s is not JSON"),
        (b'{"country":"\\ud800"}', "slice", "s is not JSON"),
        (b"[" * 9000, "slice", "s is not JSON"),
        (b"null", "slice", "s is not an object of text values"),
        (b'"DE"', "slice", "s is not an object of text values"),
        (b'{"land":"DE"}', "slice", "s: the feed has no slice 'land'; it has country, age"),
        (b'{"country":3}', "slice", "s: 'country' is not text"),
        (b'{"country":{}}', "slice", "s: 'country' is not text"),
        (b'{"country":"' + b"x" * 65 + b'"}', "slice", "s: 'country' has more than 64 characters"),
        (b'{"country":"' + b"x" * 16384 + b'"}', "slice", "s has more than 16384 bytes"),
        (b'{"country":"DE","country":"FR"}', "duplicate_field", "a name is in s twice"),
        (b'{"country":"DE","\\u0063ountry":"FR"}', "duplicate_field", "a name is in s twice"),
    ],
)
def test_slices_that_cannot_be_counted_reject_the_entry(sent, code, reason):
    decoded = decode([entry((b"x", b"[1]"), (b"s", sent))], schema_of(**SLICED), Limits())
    assert (decoded.rejected[0].code, decoded.rejected[0].reason) == (code, reason)


@pytest.mark.parametrize(
    ("sent", "values"),
    [
        (b"{}", (None, None)),
        (b'{"age":"","country":null}', (None, "")),
        (b' {"country" : "\\u0000\\u001b[2J\\""} ', ('\0\x1b[2J"', None)),
        ('{"country":"' + "\U0001f600" * 64 + '"}', ("\U0001f600" * 64, None)),
    ],
)
def test_any_text_may_name_a_slice(sent, values):
    raw = sent.encode() if isinstance(sent, str) else sent
    decoded = decode([entry((b"x", b"[1]"), (b"s", raw))], schema_of(**SLICED), Limits())
    assert decoded.slices == [values]


def test_slices_sent_twice_are_a_field_sent_twice():
    twice = entry((b"x", b"[1]"), (b"s", b"{}"), (b"s", b"{}"))
    assert decode([twice], schema_of(**SLICED), Limits()).rejected[0].code == "duplicate_field"


@pytest.mark.parametrize(
    ("name", "setting"), [("for", "horizon to"), ("time", "horizon_in to time")]
)
def test_a_field_that_a_setting_asks_for_is_rejected_with_what_to_set(name, setting):
    sent = [(b"x", b"[1]"), (b"y", b"a"), (name.encode(), b"1")]
    rejected = decode([entry(*sent)], schema_of(), Limits()).rejected[0]
    assert rejected.code == "unsupported"
    assert f"set {setting}" in rejected.reason


def test_every_code_that_is_given_is_a_published_one():
    assert set(REJECTION_CODES) >= {code for _, code, *_ in REJECTED} | NO_PROBABILITY.keys()


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


# A probability instead of a label


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b"0", 0.0), (b"1", 1.0), (b"0.25", 0.25), (b".5", 0.5), (b"1.", 1.0), (b"+0.5", 0.5),
        (b"5e-1", 0.5), (b"1E-400", 0.0), (b"0.9999999999999999999", 1.0), (b"-0", 0.0),
    ],
)  # fmt: skip
def test_a_decimal_number_from_0_to_1_is_a_probability(text, value):
    found = with_target((b"p", text))
    assert found.labels == [None]
    assert found.probabilities == [value]
    assert not np.signbit(found.probabilities[0])


NO_PROBABILITY = {
    "out_of_range": [b"1.5", b"1.0000000000000003", b"-0.1", b"-1e-300"],
    "not_finite": [b"1e999", b"nan", b"NaN", b"-inf", b"Infinity"],
    "unparsable": [
        b"", b" 0.5", b"0.5\n", b"0_1", b"0x1p-1", b"\xd9\xa0",  # a digit, but not of ASCII
        b"\xff", b"0.5\0", b"half", b"50%", b"0." + b"1" * 100_000,
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "code"), [(text, code) for code, texts in NO_PROBABILITY.items() for text in texts]
)
def test_a_probability_that_cannot_be_used_is_rejected_with_its_code(text, code):
    found = with_target((b"p", text))
    assert found.accepted == []
    assert found.rejected[0].code == code
    assert code in REJECTION_CODES
    assert len(found.rejected[0].reason) < 400
    assert found.rejected[0].reason.isprintable()


@pytest.mark.parametrize(
    ("config", "pairs", "code"),
    [
        (TUBES, [(b"y", b"a"), (b"p", b"0.5")], "duplicate_field"),
        (TUBES, [(b"p", b"0.5"), (b"p", b"0.5")], "duplicate_field"),
        (LABELS, [(b"p", b"0.5")], "unsupported"),
        (LABELS, [(b"p", b"nan")], "unsupported"),
        (LABELS, [(b"p", b"half")], "unsupported"),
        (LABELS, [(b"y", b"a"), (b"p", b"0.5")], "duplicate_field"),
    ],
)
def test_where_a_probability_has_no_place_it_is_rejected_with_its_code(config, pairs, code):
    found = with_target(*pairs, config=config)
    assert found.rejected[0].code == code


def test_a_refused_probability_does_not_fix_the_features_of_a_feed():
    schema = schema_of(learner="psvm", classes=("a", "b"))
    decoded = decode([entry((b"x", b"[1,2]"), (b"p", b"2"))], schema, Limits())
    assert decoded.schema.dimension is None


# The features of a feed


def test_the_first_accepted_entry_gives_the_feed_its_dimension():
    batch = [
        entry((b"x", b"[1, 2, NaN]")),
        entry((b"x", b"[1, 2, 3]"), (b"y", b"")),
        entry((b"x", b"[1, 2]")),
        entry((b"x", b"[1, 2, 3]")),
    ]
    decoded = decode(batch, schema_of(), Limits())
    assert decoded.schema.dimension == 2
    assert decoded.accepted == [2]
    assert decoded.rejected[3].code == "dimension"


def test_the_first_accepted_entry_gives_the_feed_its_sorted_names():
    batch = [entry((b"x", b'{"b": 1, "a": 2}')), entry((b"x", b'{"a": 3, "b": 4}'))]
    decoded = decode(batch, schema_of(), Limits())
    assert decoded.schema.names == ("a", "b")
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
    decoded = decode([entry((b"x", x))], schema_of(), Limits(max_features=2))
    assert decoded.rejected[0].code == code
    assert decoded.schema.dimension is None


@pytest.mark.parametrize("x", [b"[1,2]", b'{"b":1,"a":2}'])
def test_reading_a_batch_does_not_change_the_schema_it_is_read_by(x):
    unknown = schema_of()
    decode([entry((b"x", x)), entry((b"x", x))], unknown, Limits())
    assert (unknown.names, unknown.dimension) == (None, None)
