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
        (b"[true, 1]", "unsupported"),
        (b'["1", 1]', "unsupported"),
        (b"[[1, 2]]", "dimension"),
        (b"[[1], [2]]", "unsupported"),
        (b"[{}, 1]", "unsupported"),
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
        (b'{"a": 1, "b": true}', "unsupported"),
        (b'{"a": 1, "b": "2"}', "unsupported"),
        (b'{"a": 1, "b": [2]}', "unsupported"),
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


@pytest.mark.parametrize("others", [[], [(b"x", b"[1]"), (b"y", b"a")]])
def test_a_field_whose_feature_is_to_come_is_rejected_as_not_supported_yet(others):
    rejected = decode([entry(*others, (b"c", b"1"))], schema_of(), Limits()).rejected[0]
    assert (rejected.code, rejected.reason) == (
        "unsupported",
        "field 'c', a control entry, is not supported yet; known: x, xb, y, p, id",
    )


@pytest.mark.parametrize("changes", [{}, {"metrics_window": None}])
def test_slices_are_rejected_where_the_feed_has_none(changes):
    sent = entry((b"x", b"[1]"), (b"s", b"{}"))
    rejected = decode([sent], schema_of(**changes), Limits()).rejected[0]
    assert (rejected.code, rejected.reason) == (
        "unsupported",
        "s is sent, but the feed has no slices; set slices",
    )


@pytest.mark.parametrize("name", ["s", "for", "time"])
def test_a_request_with_a_field_of_an_example_is_told_that_it_has_features_alone(name):
    config = PredictorConfig(horizon="10ms", slices=("country",), features=1)
    sent = entry((b"x", b"[1]"), (name.encode(), b"1"))
    rejected = decode([sent], request_schema(config), Limits()).rejected[0]
    assert (rejected.code, rejected.reason) == (
        "unsupported",
        f"field {name!r} is of an example; a request has features alone",
    )


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


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (b"1.5", "out_of_range"),
        (b"1.0000000000000003", "out_of_range"),
        (b"-0.1", "out_of_range"),
        (b"-1e-300", "out_of_range"),
        (b"1e999", "not_finite"),
        (b"nan", "not_finite"),
        (b"NaN", "not_finite"),
        (b"-inf", "not_finite"),
        (b"Infinity", "not_finite"),
        (b"", "unparsable"),
        (b" 0.5", "unparsable"),
        (b"0.5\n", "unparsable"),
        (b"0_1", "unparsable"),
        (b"0x1p-1", "unparsable"),
        (b"\xd9\xa0", "unparsable"),  # a digit, but not of ASCII
        (b"\xff", "unparsable"),
        (b"0.5\0", "unparsable"),
        (b"half", "unparsable"),
        (b"50%", "unparsable"),
        (b"0." + b"1" * 100_000, "unparsable"),
    ],
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
