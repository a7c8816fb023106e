"""What one entry must be like to be used, and the code and reason of what is not."""

import json
import math
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from online_svm.config import PredictorConfig
from online_svm.errors import REJECTION_CODES
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.stream.schema import FeatureSchema
from workers.config.settings import Limits
from workers.feed.position import START
from workers.message.decode import decode
from workers.message.entry_decode import FIELD, read_trace, traced
from workers.message.schema import (
    DuplicateMessage,
    InputEntry,
    LabelMessage,
    PredictionMessage,
    RejectedMessage,
)
from workers.session.answer import process

DECLARED = {"classes": ("a", "b")}
TUBES = DECLARED | {"learner": "psvm"}


def decoded(*entries, limits=None, **settings):
    """Decode entries, each given by its fields as pairs."""
    batch = [(b"%d-0" % i, [part for pair in pairs for part in pair])
             for i, pairs in enumerate(entries, 1)]  # fmt: skip
    return decode(batch, FeatureSchema(PredictorConfig(**settings)), limits or Limits())


def rejected(*pairs, **settings):
    found = decoded(pairs, **settings)
    assert (found.accepted, len(found.X)) == ([], 0)
    error = found.rejected[0]
    assert error.code in REJECTION_CODES
    assert len(error.reason) < 400
    assert error.reason.isprintable()
    return error


TWO, NAMED = {"features": 2}, {"features": ("a", "b")}
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
    (DECLARED, "unsupported", b"p", [b"0.5", b"nan", b"half"]),
    (TUBES, "out_of_range", b"p", [b"1.5", b"1.0000000000000003", b"-0.1", b"-1e-300"]),
    (TUBES, "not_finite", b"p", [b"1e999", b"nan", b"NaN", b"-inf", b"Infinity"]),
    (TUBES, "unparsable", b"p", [
        b"", b" 0.5", b"0.5\n", b"0_1", b"0x1p-1", b"\xd9\xa0",  # a digit, but not of ASCII
        b"\xff", b"0.5\0", b"half", b"50%", b"0." + b"1" * 100_000,
    ]),
]  # fmt: skip
"""Settings of the feed, code, field, and values of it that are rejected with this code."""


@pytest.mark.parametrize(
    ("settings_", "code", "field", "value"),
    [(*case, value) for *case, values in REJECTED for value in values],
)
def test_a_field_that_cannot_be_used_is_rejected_with_its_code(settings_, code, field, value):
    features = [] if field in (b"x", b"xb") else [(b"x", b"[1]")]
    assert rejected(*features, (field, value), **settings_).code == code


@pytest.mark.parametrize(
    ("x", "settings_", "reason"),
    [
        (b"[1, NaN]", {}, "feature 1 is NaN; send a finite number"),
        (b"[1, -Infinity]", {}, "feature 1 is infinite; send a finite number"),
        (b"[1, 1e999]", {"features": ("b", "a")}, "feature 'b' is infinite; send a finite number"),
        (b"[1, 2, NaN]", {"features": ("b", "a")}, "feature 2 is NaN; send a finite number"),
        (b'{"b": 1e999}', {"features": ("b",)}, "feature 'b' is infinite; send a finite number"),
        (
            b'{"' + b"b" * 50 + b'": NaN}',
            {"features": ("b" * 50,)},
            f"feature '{'b' * 40}' is NaN; send a finite number",
        ),
        (
            b'{"a": "nan"}',
            {"features": ("a",)},
            "feature 'a' is text, which is not supported yet; send a number",
        ),
        (b'["1e999"]', {}, "feature 0 is text, which is not supported yet; send a number"),
        (b"[true]", {}, "feature 0 is true or false, which is not supported yet; send a number"),
        (b"[[1]]", {}, "feature 0 is an array, which is not supported yet; send a number"),
    ],
)
def test_a_value_that_is_not_finite_is_rejected_by_name(x, settings_, reason):
    assert rejected((b"x", x), **settings_).reason == reason


X, Y = (b"x", b"[1]"), (b"y", b"a")
P, S = (b"p", b"0.5"), (b"s", b"{}")
NO_SLICES = "s is sent, but the feed has no slices; set slices"
NO_CONTROL = "field 'c', a control entry, is not supported yet; known: x, xb, y, p, id"
FIELDS = [
    ({}, [], "no_features", ""),
    ({}, [Y], "no_features", ""),
    ({}, [X, (b"z", b"1")], "unknown_field", ""),
    ({}, [X, (b"\xff\0", b"1")], "unknown_field", ""),
    ({}, [(b"X", b"[1]")], "unknown_field", ""),
    ({}, [(b"\x1b[31m\r\n\0" + b"\xff" * 100_000, b"1")], "unknown_field", ""),
    ({}, [X, X], "duplicate_field", ""),
    ({}, [X, Y, Y], "duplicate_field", ""),
    ({}, [X, (b"xb", bytes(8))], "duplicate_field", ""),
    ({"slices": ("country",)}, [X, S, S], "duplicate_field", ""),
    (TUBES, [X, Y, P], "duplicate_field", ""),
    (TUBES, [X, P, P], "duplicate_field", ""),
    (DECLARED, [X, Y, P], "duplicate_field", ""),
    (DECLARED, [(b"for", b"id-1"), Y], "unsupported", "set horizon to"),
    ({}, [X, Y, (b"for", b"1")], "unsupported", "set horizon to"),
    ({}, [X, Y, (b"time", b"1")], "unsupported", "set horizon to a time"),
    ({}, [(b"c", b"1")], "unsupported", NO_CONTROL),
    ({}, [X, Y, (b"c", b"1")], "unsupported", NO_CONTROL),
    ({}, [X, S], "unsupported", NO_SLICES),
    ({"metrics_window": None}, [X, S], "unsupported", NO_SLICES),
]


@pytest.mark.parametrize(("settings_", "pairs", "code", "reason"), FIELDS)
def test_an_entry_of_other_fields_is_rejected_with_its_code(settings_, pairs, code, reason):
    error = rejected(*pairs, **settings_)
    assert (error.code, reason in error.reason) == (code, True), error.reason


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
    error = rejected(X, (b"s", sent), **SLICED)
    assert (error.code, error.reason) == (code, reason)


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
    assert decoded([X, (b"s", raw)], **SLICED).slices == [values]


def test_the_id_of_a_rejected_entry_is_kept_where_it_can_be_read():
    found = decoded(
        [(b"id", b"one"), (b"x", b"[NaN]")], [(b"id", b"\xff"), X],
        [(b"id", b"a"), (b"id", b"b"), X], [(b"id", b"four"), X],
    )  # fmt: skip
    assert (found.ids, found.accepted) == (["one", None, None, "four"], [3])


def test_integers_keep_their_nearest_double():
    big = 2**63 + 1025
    assert decoded([(b"x", b"[%d, -0, 7]" % big)]).X.tolist() == [[float(big), 0.0, 7.0]]


def test_a_missing_value_is_a_nan_where_missing_values_are_allowed():
    raw = struct.pack("<2d", math.nan, 2)
    found = decoded([(b"x", b"[null, 1]")], [(b"xb", raw)], **TWO, missing="mean")
    assert np.isnan(found.X[:, 0]).all()
    assert found.X[:, 1].tolist() == [1.0, 2.0]


# A probability instead of a label


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b"0", 0.0), (b"1", 1.0), (b"0.25", 0.25), (b".5", 0.5), (b"1.", 1.0), (b"+0.5", 0.5),
        (b"5e-1", 0.5), (b"1E-400", 0.0), (b"0.9999999999999999999", 1.0), (b"-0", 0.0),
    ],
)  # fmt: skip
def test_a_decimal_number_from_0_to_1_is_a_probability(text, value):
    found = decoded([X, (b"p", text)], **TUBES)
    assert (found.labels, found.probabilities) == ([None], [value])
    assert not np.signbit(found.probabilities[0])


# The features of a feed


def test_the_first_accepted_entry_gives_the_feed_its_dimension_or_its_sorted_names():
    found = decoded(
        [(b"x", b"[1, 2, NaN]")], [(b"x", b"[1, 2, 3]"), (b"y", b"")], [(b"x", b"[1, 2]")],
        [(b"x", b"[1, 2, 3]")],
    )  # fmt: skip
    assert (found.schema.dimension, found.accepted) == (2, [2])
    assert found.rejected[3].code == "dimension"
    found = decoded([(b"x", b'{"b": 1, "a": 2}')], [(b"x", b'{"a": 3, "b": 4}')])
    assert (found.schema.names, found.X.tolist()) == (("a", "b"), [[2, 1], [3, 4]])


@pytest.mark.parametrize(
    ("pairs", "code", "settings_"),
    [
        ([(b"x", b"[1, 2, 3]")], "dimension", {}),
        ([(b"x", b'{"": 1}')], "dimension", {}),
        ([(b"x", b'{"a\\u0000": 1}')], "dimension", {}),
        ([(b"x", b'{"%b": 1}' % (b"n" * 257))], "dimension", {}),
        ([(b"x", b"[1,2]"), (b"p", b"2")], "out_of_range", TUBES),
    ],
)
def test_a_feed_adopts_no_features_beyond_its_limits_or_of_a_rejected_entry(pairs, code, settings_):
    found = decoded(pairs, limits=Limits(max_features=2), **settings_)
    assert (found.rejected[0].code, found.schema.dimension) == (code, None)


@pytest.mark.parametrize("x", [b"[1,2]", b'{"b":1,"a":2}'])
def test_reading_a_batch_does_not_change_the_schema_it_is_read_by(x):
    unknown = FeatureSchema(PredictorConfig())
    decode([(b"1-0", [b"x", x]), (b"2-0", [b"x", x])], unknown, Limits())
    assert (unknown.names, unknown.dimension) == (None, None)


TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
COUNT = 60


def entries(trace_of=lambda _: None, count=COUNT):
    """Return entries of every kind of answer, some with a trace context."""
    made = []
    for i in range(count):
        x = b"[%d,%d]" % (i % 7, i % 3) if i % 11 else b"[1]"
        fields = [b"x", x, b"y", b"ab"[i % 2 : i % 2 + 1], b"id", b"n%d" % (i // 2 * 2)]
        trace = trace_of(i)
        made.append((b"%d-0" % (i + 1), fields + ([] if trace is None else [FIELD, trace])))
    return made


def answers(sent):
    config = PredictorConfig(classes=("a", "b"), committee="single", window=40, refit_every=20)
    predictor = OnlinePredictor(config)
    outcome = process(predictor, Limits(), START, sent)
    return outcome.out, outcome.after, outcome.dlq, predictor.snapshot()


def some(i):
    return TRACE.encode() if i % 3 == 0 else None


def test_an_answer_repeats_the_trace_and_nothing_else_changes():
    plain, with_traces = answers(entries()), answers(entries(some))
    assert with_traces[0] == [
        traced(payload, TRACE if i % 3 == 0 else None) for i, payload in enumerate(plain[0])
    ]
    assert with_traces[1].digest != plain[1].digest, "the field is in the digest"
    assert with_traces[3] == plain[3], "what is learned is the same, byte for byte"
    assert b"traceparent=" in b"".join(letter.head for letter in with_traces[2])


def test_what_is_no_trace_is_ignored():
    wrong = [b"", b"01", TRACE.encode() + b"-00", TRACE.upper().encode(), b"\xff" * 55]
    sent = entries(lambda i: wrong[i % len(wrong)])
    sent[3][1].extend([FIELD, TRACE.encode()])  # sent twice
    assert answers(sent)[0] == answers(entries())[0]


def test_a_trace_counts_in_the_size_of_its_entry():
    out, *_ = answers(entries(lambda _: b"x" * (1 << 21), count=2))
    assert {json.loads(payload)["about"]["case"] for payload in out} == {"entry_bytes"}


@given(st.from_regex(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}", fullmatch=True))
def test_the_form_is_that_of_the_standard(text):
    version, trace, span, _ = text.split("-")
    is_valid = version != "ff" and int(trace, 16) != 0 and int(span, 16) != 0
    assert (read_trace(text) == text) is is_valid
    assert read_trace(text + "\n") is None


def test_every_answer_and_the_entry_have_the_field_last():
    answers = (PredictionMessage, RejectedMessage, DuplicateMessage, LabelMessage)
    for model in (*answers, InputEntry):
        assert [*model.model_fields][-1] == "traceparent"
    found = LabelMessage(seq=1, n=0, example="a", label="b", done="accepted", traceparent=TRACE)
    plain = found.model_copy(update={"traceparent": None})
    assert found.payload() == traced(plain.payload(), TRACE)
