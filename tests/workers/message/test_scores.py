"""Scores in entries: what is accepted, whichever entries share a batch, and how they are sent."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from online_svm import PredictorConfig
from online_svm.stream.schema import FeatureSchema
from workers.config.settings import Limits
from workers.gateway.refused import Refused
from workers.gateway.rows import example
from workers.message.column_decode import decode_columns
from workers.message.decode import decode
from workers.push.ingest import entry
from workers.push.reading import BadSource, Reading
from workers.push.sources import rows

LIMITS = Limits()


def schema(use="alone", classes=("a", "b"), scores="probability", names=("k", "m")):
    made = PredictorConfig(classes=classes, scores=scores, score_use=use)
    return FeatureSchema(made).knowing(dict.fromkeys(names))


SCORES = st.sampled_from(
    [b"0.25", b"0", b"1", b"1e-12", b"1.5", b"-0.1", b"null", b"", b".5", b"true", b'"0.5"',
     b"[0.2,0.8]", b"NaN", b"1e999", b'{"a":0.5,"b":0.5}', b'{"a":1,"a":1}', b"[[1]]", b"{",
     b"0.5,0.5"]
)  # fmt: skip
FEATURES = st.sampled_from(
    [b'{"k":1,"m":2}', b'{"m":2}', b"{}", b"[1,2]", b'{"score":1}', b'{"\\u0073core":null}',
     b'{"k":"red","m":null}', b"{", b'{"k":1e-310}', b"[-0.0,1e-310]", b"[1,null]", b"[1e101,2]",
     b"[1,2,3,4]", b'{"x1":2,"x0":1}', b"[true,0]", b"[]"]
)  # fmt: skip
ENTRIES = st.fixed_dictionaries(
    {},
    optional={
        b"score": SCORES,
        b"score_version": st.sampled_from([b"1", b"new", b"", b"2024-01-01", b"x" * 65]),
        b"x": FEATURES,
        b"xb": st.sampled_from([b"\0" * 16, b"\0" * 24, b"\xff" * 16, b"\0" * 40]),
        b"y": st.sampled_from([b"a", b"b", b"c"]),
        b"id": st.just(b"i"),
    },
)


@pytest.mark.parametrize("names", [("k", "m"), ("x0", "x1"), ("x1", "x0")])
@pytest.mark.parametrize("use", ["alone", "member", "watched"])
def test_an_entry_is_decoded_alike_in_any_batch(use, names):
    known = schema(use, names=names)

    @settings(max_examples=100, deadline=None)
    @given(ENTRIES, st.integers(1, 20))
    def check(fields, count):
        batch = [(b"%d-0" % i, fields) for i in range(1, count + 1)]
        single = decode(batch[:1], known, LIMITS)
        whole = decode(batch, known, LIMITS)
        by_column = decode_columns([fields] * count, known, LIMITS)
        if single.rejected:
            assert by_column is None
            assert [*whole.rejected] == list(range(count))
            assert whole.rejected[0].about == single.rejected[0].about
            return
        assert np.array_equal(whole.X, np.repeat(single.X, count, axis=0), equal_nan=True)
        if by_column is not None:
            assert np.array_equal(by_column[0], whole.X, equal_nan=True)

    check()


def test_ordinary_entries_with_scores_are_decoded_by_column():
    for use in ("alone", "member"):
        fields = {b"score": b"0.25", b"score_version": b"2", b"x": b'{"k":1,"m":2}', b"y": b"a"}
        assert decode_columns([fields] * 20, schema(use), LIMITS) is not None
        del fields[b"x"], fields[b"score_version"]
        assert decode_columns([fields] * 20, schema(use), LIMITS) is not None
    for features in ({b"x": b"[1,2]"}, {b"xb": b"\0" * 16}):
        of_arrays = schema("member", names=("x0", "x1"))
        assert decode_columns([features | {b"score": b"1"}] * 20, of_arrays, LIMITS) is not None


@pytest.mark.parametrize("sent", [{b"x": b"[7,8]"}, {b"xb": np.array([7.0, 8.0]).tobytes()}])
def test_an_array_as_long_as_the_columns_of_a_score_is_known_by_name(sent):
    bare = FeatureSchema(
        PredictorConfig(classes=("a", "b"), scores="probability", score_use="member")
    )
    found = decode([(b"1-0", {b"score": b"0.5"} | sent)], bare, LIMITS)
    assert found.schema.names == ("score", "score_version", "x0", "x1")


@pytest.mark.parametrize(
    ("fields", "case"),
    [
        ({b"y": b"a"}, "no_x"),
        ({b"score": b"high"}, "score_not_json"),
        ({b"score": b"1.5"}, "score_out_of_range"),
        ({b"score": b"1e999"}, "score_not_finite"),
        ({b"score": b"[0.1,0.2,0.7]"}, "score_of_classes"),
        ({b"score": b"0.5", b"score_version": b"x" * 65}, "score_version_of_type"),
        ({b"score": b"0.5", b"x": b'{"score": 1}'}, "feature_of_score"),
    ],
)
def test_a_score_that_cannot_be_used_is_rejected_by_name(fields, case):
    found = decode([(b"1-0", fields)], schema("member"), LIMITS)
    assert found.rejected[0].case == case


def test_features_of_a_long_array_stand_in_the_order_of_their_names():
    score, values = {b"score": b"0.5"}, np.arange(12.0)
    known = schema("member", names=[f"x{i}" for i in range(12)])
    sent = [score | {b"x": json.dumps(values.tolist()).encode()}, score | {b"xb": values.tobytes()}]
    sent.append(score | {b"x": json.dumps({f"x{i}": i for i in range(12)}).encode()})
    for fields in sent:
        found = decode_columns([fields] * 20, known, LIMITS)
        assert np.array_equal(found[0], decode([(b"1-0", sent[2])] * 20, known, LIMITS).X, True)


def test_margins_and_scores_by_class_are_read():
    margins = schema(scores="margin")
    assert decode([(b"1-0", {b"score": b"-7.5"})], margins, LIMITS).X[0, 0] == -7.5
    three = schema(classes=("a", "b", "c"))
    by_name = {b"score": b'{"c": 0.2, "a": 0.5, "b": 0.3}'}
    listed = {b"score": b"[0.5, 0.3, 0.2]"}
    found = decode([(b"1-0", by_name), (b"2-0", listed)], three, LIMITS).X
    assert np.array_equal(found[0, :3], found[1, :3])


def test_the_gateway_sends_a_score_with_or_without_features():
    assert example({"score": 0.25, "y": "a"}) == [b"score", b"0.25", b"y", "a"]
    sent = example({"x": {"k": 1}, "score": {"a": 0.5, "b": 0.5}, "score_version": 3})
    assert sent[2:] == [b"score", b'{"a":0.5,"b":0.5}', b"score_version", "3"]
    with pytest.raises(Refused, match="score_version"):
        example({"score": 0.5, "score_version": 1.5})


def test_push_sends_a_column_as_score_and_the_version_of_an_entry(tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("k,s,y\n3,0.2,a\n4,,b\n")
    sent = [entry(row) for row in rows(str(table), Reading(score="s"))]
    assert sent[0] == [b"x", b'{"k":3.0}', b"score", b"0.2", b"y", "a"]
    assert b"score" not in sent[1]
    with pytest.raises(BadSource, match="no column 'z' for the score"):
        list(rows(str(table), Reading(score="z")))
    lines = tmp_path / "t.jsonl"
    items = [{"x": {"k": 1}, "score": 0.5, "score_version": "q"}, {"k": 1, "score": 0.5}]
    lines.write_text("\n".join(map(json.dumps, items)))
    first, second = (entry(row) for row in rows(str(lines), Reading()))
    assert first == [b"x", b'{"k":1}', b"score", b"0.5", b"score_version", "q"]
    assert second == [b"x", b'{"k":1,"score":0.5}']  # a flat object holds features
