"""A trace context in an entry changes its own answer by one field, and nothing else."""

import json

from hypothesis import given
from hypothesis import strategies as st

from online_svm.config import PredictorConfig
from online_svm.predictor.online_predictor import OnlinePredictor
from workers.config.settings import Limits
from workers.feed.position import START
from workers.message.schema import (
    DuplicateMessage,
    InputEntry,
    LabelMessage,
    PredictionMessage,
    RejectedMessage,
)
from workers.message.trace import FIELD, read_trace, traced
from workers.session.answer import process

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
