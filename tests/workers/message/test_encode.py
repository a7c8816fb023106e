"""Payloads: the same bytes as the slow way through the schema gives."""

import json
import math
import re
from dataclasses import replace
from math import isclose

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from six_decimals import rounded

from online_svm.config import PredictorConfig
from online_svm.errors import InvalidExample
from online_svm.predictor.active_model import warming_block
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.stream.guarantee_reason import GuaranteeReason
from online_svm.stream.prediction import PredictionBlock
from online_svm.stream.validity_report import LabelReport, MethodReport, ValidityReport
from workers.message.encode import dumps, encode_block, encode_rejected, encode_report
from workers.message.schema import MetricsMessage, PredictionMessage, RejectedMessage

probabilities = st.floats(0, 1)
labels = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)

REASONS = (None, GuaranteeReason("time"), GuaranteeReason("false_alarm", (("level", 0.01),)))


ids = st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=6)


@st.composite
def blocks(draw):
    """Draw a block of answers of a model; two classes need not be each other's complement."""
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
    actions = draw(st.just(()) | st.lists(labels, min_size=1, max_size=3, unique=True))
    return PredictionBlock(
        status="ok",
        classes=(*names[:-1], None) if unseen else tuple(names),
        n=integers(0, 2**50),
        label=integers(0, k - 1),
        svm_label=integers(0, k - 1),
        point=floats(m, k),
        lower=floats(m, k),
        upper=floats(m, k),
        venn_point=floats(m, k),
        venn_lower=floats(m, k),
        venn_upper=floats(m, k),
        maps={name: floats(m, k) for name in maps},
        map_intervals=None if bounded is None else {name: floats(m, k, 2) for name in bounded},
        scores=floats(m, machines, values=finite),
        category=integers(0, k),
        category_size=integers(0, 10**6),
        imputed=integers(0, 99) if draw(st.booleans()) else np.full(m, -1),
        model=draw(st.integers(0, 10**6)),
        calibration=draw(st.integers(0, 10**6)),
        taxonomy=draw(st.integers(0, 10**6)),
        guarantee=draw(st.sampled_from(["exact", "approximate", "none"])),
        reason=draw(st.sampled_from(REASONS)),
        method=draw(st.sampled_from(["venn", "50%"])),
        interval_level=draw(st.none() | st.just(0.9)),
        actions=tuple(actions),
        action=integers(0, len(actions) - 1) if actions else None,
        expected_cost=floats(m, values=finite) if actions and draw(st.booleans()) else None,
        sets=floats(m, k) > 0.3 if draw(st.booleans()) else None,
    )


def message_of(block, i, seq, id_):
    """Build the payload the slow, obvious way: the rounded row, through the model of the schema."""
    row = block.row(i)
    fields = {
        name: getattr(row, name) for name in PredictionMessage.model_fields if hasattr(row, name)
    }
    return PredictionMessage(seq=seq, id=id_, **(fields | rounded(row)))


@settings(max_examples=80, deadline=None)
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


@pytest.mark.parametrize("map_intervals", [False, True])
def test_a_warming_block_is_encoded_through_the_schema_too(map_intervals):
    block = warming_block(("a", "b"), np.arange(3), map_intervals=map_intervals)
    names = [None, "a", None]
    payloads = encode_block(block, range(3), names)
    assert payloads == [message_of(block, i, i, name).payload() for i, name in enumerate(names)]
    assert orjson.loads(payloads[1])["probability"] is None
    assert ("map_intervals" in orjson.loads(payloads[1])) == map_intervals


@pytest.mark.parametrize("classes", [None, ("ham", "spam"), tuple("abc")])
@pytest.mark.parametrize("interval_level", [None, 0.9])
def test_answers_before_a_model_are_encoded_through_the_schema(classes, interval_level):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(40, 2)), rng.choice(classes or ("x", "y"), 40).tolist()
    config = PredictorConfig(
        features=2, classes=classes, interval_level=interval_level, set_coverage=interval_level
    )
    answers = OnlinePredictor(config).step_many(X, y)
    warming = [b for b in answers if isinstance(b, PredictionBlock) and b.status == "warming"]
    assert max(map(len, warming)) > 1  # a block whose rows differ
    with_labels = 0
    for block in warming:
        rows = range(len(block))
        payloads = encode_block(block, rows, ["a"] * len(block))
        assert payloads == [message_of(block, i, i, "a").payload() for i in rows]
        assert payloads == [encode_block(block.part(i, i + 1), [i], ["a"])[0] for i in rows]
        with_labels += sum(bool(orjson.loads(payload)["probabilities"]) for payload in payloads)
    assert with_labels == sum(map(len, warming)) - (classes is None)


NUMBERS = ("point", "lower", "upper", "venn_lower", "venn_upper", "scores")


@pytest.mark.parametrize("name", [*NUMBERS, "maps"])
@settings(max_examples=10)
@given(block=blocks(), data=st.data())
def test_a_number_that_is_not_finite_is_never_published(name, block, data):
    values = np.array(block.point if name == "maps" else getattr(block, name))
    place = tuple(data.draw(st.integers(0, size - 1)) for size in values.shape)
    values[place] = data.draw(st.sampled_from([math.nan, math.inf, -math.inf]))
    broken = replace(block, **{name: {"platt": values} if name == "maps" else values})
    with pytest.raises(ValueError, match="not finite"):
        encode_block(broken, range(len(block)), [None] * len(block))


@given(id_=ids, label=st.text())
def test_a_rejection_is_encoded_as_the_schema_says(id_, label):
    error = InvalidExample("label_no_integer", label=label)
    payload = encode_rejected(error, 9, 4, id_)
    about = {"case": "label_no_integer", "label": label.encode(errors="backslashreplace").decode()}
    assert payload == RejectedMessage(seq=9, n=4, code="label", about=about, id=id_).payload()


def test_a_report_is_encoded_as_the_schema_says():
    label = LabelReport(accuracy=0.75, lower=None, probability=0.7, upper=None, paper_p=1.0)
    empty = LabelReport(accuracy=None, lower=None, probability=None, upper=None, paper_p=None)
    method = MethodReport(predicted=label, svm=empty, log_loss=0.5, brier=0.1, clipped=0)
    other = MethodReport(predicted=label, svm=empty, log_loss=0.75, brier=0.2, clipped=1)
    report = ValidityReport(n=100, scored=80, headline=method, venn=other, maps={"platt": method})
    payload = encode_report(report, seq=101)
    assert payload == MetricsMessage.model_validate_json(payload).payload()
    message = orjson.loads(payload)
    assert message["maps"]["platt"]["predicted"]["accuracy"] == 0.75
    assert (message["headline"]["log_loss"], message["venn"]["log_loss"]) == (0.5, 0.75)


# Numbers as text: one form, whichever orjson is installed

FINITE = st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    FINITE | st.text() | st.sampled_from(["e+", '"e+5', "\\", '\\"1e+16', "1e+20"]),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def in_python(value):
    """Return the form of a number, from the digits that Python finds."""
    text = re.sub(r"e([+-])0?(\d+)", lambda m: "e" + m[1].replace("+", "") + m[2], repr(value))
    whole = re.fullmatch(r"(-?)(\d)\.?(\d*)e-5", text)  # Python writes these with an exponent
    return f"{whole[1]}0.0000{whole[2]}{whole[3]}" if whole else text


@given(st.lists(FINITE | FINITE.map(lambda x: x % 1e-3), min_size=1))
def test_a_number_has_the_fewest_digits_that_read_back_and_no_plus(values):
    assert dumps(values) == f"[{','.join(map(in_python, values))}]".encode()


@settings(max_examples=50)
@given(VALUES)
def test_what_is_written_reads_back_and_text_stays_as_it_is(value):
    assert json.loads(dumps(value)) == value


OF_CLASSES = ("lower", "upper", "probability", "probabilities", "intervals", "venn", "maps",
              "map_intervals")  # fmt: skip


def each(value):
    """Yield the numbers of nested lists and dicts."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for part in value:
            yield from each(part)
    elif value is not None:
        yield value


def messages(block):
    return [orjson.loads(p) for p in encode_block(block, range(len(block)), [None] * len(block))]


@settings(max_examples=80, deadline=None)
@given(block=blocks())
def test_numbers_of_classes_are_millionths_and_make_the_same_bytes(block):
    for payload in encode_block(block, range(len(block)), [None] * len(block)):
        message = orjson.loads(payload)
        for name in OF_CLASSES:
            for number in each(message.get(name)):
                stored = np.int32(round(number * 1e6))
                assert int(stored) / 1e6 == number
                assert str(number)[0] != "-"
        assert dumps(message) == payload


@st.composite
def distributions(draw):
    """Draw a block whose rows are distributions inside their intervals."""
    block = draw(blocks())
    raw = np.maximum(block.point, 1e-9) ** draw(st.sampled_from([1, 9]))
    point = raw / raw.sum(axis=1, keepdims=True)
    wide = np.array(draw(st.lists(st.floats(0, 1), min_size=point.size, max_size=point.size)))
    lower = point * wide.reshape(point.shape)
    return replace(block, point=point, lower=lower, upper=1 - (1 - point) * (1 - lower))


@settings(max_examples=200, deadline=None)
@given(block=distributions())
def test_rounded_distributions_sum_to_one_inside_their_intervals(block):
    for i, message in enumerate(messages(block)):
        found = message["probabilities"]
        assert sum(round(number * 1e6) for number in found) == 1_000_000
        for k, (lower, upper) in enumerate(message["intervals"]):
            assert 0 <= lower <= found[k] <= upper <= 1
            assert abs(found[k] - block.point[i, k]) <= 1.0001e-6
            assert abs(lower - block.lower[i, k]) <= 1.0001e-6
        assert message["lower"] <= message["probability"] <= message["upper"]


def answers(classes=("ham", "spam"), count=2300, **settings):
    """Return answers of a feed with today's defaults, after a long while."""
    rng, k = np.random.default_rng(0), len(classes)
    X = rng.normal(size=(count, 4))
    y = np.argmax(X[:, :k] + rng.normal(size=(count, k)), axis=1)
    predictor, found = OnlinePredictor(PredictorConfig(classes=classes, **settings)), []
    for block in predictor.step_many(X, [classes[k] for k in y]):
        if isinstance(block, PredictionBlock) and block.n[0] > count - 300:
            rows = range(10**7, 10**7 + len(block))
            found += encode_block(block, rows, [f"tx-{i}" for i in rows])
    return found


@pytest.mark.parametrize(("options", "most"), [({}, 600), ({"maps": ()}, 500)])
def test_an_answer_of_two_classes_is_small(options, most):
    found = answers(**options)
    assert len(found) > 200
    assert max(map(len, found)) <= most


def test_two_classes_are_each_others_complement():
    for payload in answers(count=400):
        message = json.loads(payload)
        if message["status"] == "ok":
            first, second = message["probabilities"]
            assert isclose(first + second, 1.0, abs_tol=1e-12)
            (lower, upper), (other_lower, other_upper) = message["intervals"]
            assert isclose(lower, 1 - other_upper, abs_tol=1e-6)
            assert isclose(upper, 1 - other_lower, abs_tol=1e-6)
