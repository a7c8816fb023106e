"""Entries that carry an annotator's probability: what is accepted, alone and in a batch."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from online_svm.config import PredictorConfig
from online_svm.errors import REJECTION_CODES
from online_svm.stream.schema import FeatureSchema
from workers.config.settings import Limits
from workers.message import column_decode
from workers.message.decode import decode

TUBES = PredictorConfig(learner="psvm", classes=("a", "b"), features=2)
LABELS = PredictorConfig(classes=("a", "b"), features=2)


def entry(*pairs, number=1):
    """Return a stream entry as the protocol carries it: an ID and a flat list."""
    return (b"%d-0" % number, [part for pair in pairs for part in pair])


def decoded(*pairs, config=TUBES):
    return decode([entry((b"x", b"[1,2]"), *pairs)], FeatureSchema(config), Limits())


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b"0", 0.0), (b"1", 1.0), (b"0.25", 0.25), (b".5", 0.5), (b"1.", 1.0), (b"+0.5", 0.5),
        (b"5e-1", 0.5), (b"1E-400", 0.0), (b"0.9999999999999999999", 1.0), (b"-0", 0.0),
    ],
)  # fmt: skip
def test_a_decimal_number_from_0_to_1_is_a_probability(text, value):
    found = decoded((b"p", text))
    assert found.labels == [None]
    assert found.probabilities == [value]
    assert not np.signbit(found.probabilities[0])
    assert found.learned() == [True]


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
    found = decoded((b"p", text))
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
    found = decoded(*pairs, config=config)
    assert found.rejected[0].code == code


def test_a_refused_probability_does_not_fix_the_features_of_a_feed():
    schema = FeatureSchema(PredictorConfig(learner="psvm", classes=("a", "b")))
    decode([entry((b"x", b"[1,2]"), (b"p", b"2"))], schema, Limits())
    assert schema.dimension is None


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
features = st.sampled_from([b"[1,2]", b"[3,4]", b"[5]"])
row = st.tuples(features, targets, identities)
uniform = st.tuples(st.sampled_from([b"[1,2]", b"[3,4]"]), only_p, st.just([(b"id", b"i")]))


def facts(found, i):
    """Return what is known of the i-th entry of a batch."""
    error = found.rejected.get(i)
    if error is not None:
        return error.code, error.reason, found.ids[i]
    k = found.accepted.index(i)
    return (
        found.X[k].tobytes(), found.labels[k], found.probabilities[k], found.learned()[k],
        found.ids[i],
    )  # fmt: skip


@pytest.mark.parametrize("config", [TUBES, LABELS], ids=["psvm", "svc"])
@settings(max_examples=200, deadline=None)
@given(batch=st.one_of(st.lists(row, max_size=6), st.lists(uniform, min_size=1, max_size=6)))
def test_a_batch_is_decoded_as_its_entries_are_alone(config, batch):
    entries = [entry((b"x", x), *t, *i, number=n) for n, (x, t, i) in enumerate(batch)]
    together = decode(entries, FeatureSchema(config), Limits())
    for position, one in enumerate(entries):
        # A second entry that can never be ordinary makes the first be read singly.
        alone = decode([one, entry((b"?", b""))], FeatureSchema(config), Limits())
        assert facts(together, position) == facts(alone, 0)


def test_a_batch_of_probabilities_alone_is_read_by_columns():
    batch = [[b"x", b"[1,2]", b"p", b"0.25"], [b"x", b"[3,4]", b"p", b"1"]]
    X, labels, probabilities, _ = column_decode.decode_columns(
        batch, FeatureSchema(TUBES), Limits()
    )
    assert (X.tolist(), labels) == ([[1.0, 2.0], [3.0, 4.0]], [None, None])
    assert probabilities == [0.25, 1.0]


def test_entries_without_a_probability_are_read_by_columns_as_ever():
    batch = [[b"x", b"[1,2]", b"y", b"a"]]
    read = column_decode.decode_columns(batch, FeatureSchema(TUBES), Limits())
    assert read is not None
    assert read[1:] == (["a"], [None], [None])
