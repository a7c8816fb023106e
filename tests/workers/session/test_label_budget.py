"""A feed with a label budget on a real Redis, and its answers as the programs show them."""

import json

import pytest
from late_feed import answered, flat, history, settings
from world import drain, payloads, push, session

from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.stream.input_batch import Example
from workers.admin.verify import verify
from workers.cli.stream_text import line
from workers.cli.validity_text import validity_lines
from workers.config.settings import Limits
from workers.message.compact import parse
from workers.message.schema import MetricsMessage, PredictionMessage
from workers.offline.answer_table import flat as table_row

BUDGET = {"label_budget": 0.2, "monitors": "default"}
LIMITS = Limits(dedupe_window=30)


@pytest.mark.parametrize("payload", ["full", "compact"])
def test_workers_that_die_leave_the_same_wanted_labels(store, payload):
    entries, config = history(120), settings(**BUDGET)
    limits = Limits(dedupe_window=30, payload=payload)
    push(store, flat(entries))
    for batch, until in ((1, 9), (7, 60), (64, 61), (3, 140)):
        drain(session(store, batch, config, limits=limits, snapshot_every=25), min(until, 140))
    drain(session(store, 11, config, limits=limits, snapshot_every=25), len(entries))
    ((whole,), _) = answered(entries, config, limits=limits)
    assert payloads(store) == [list(zip(whole.ids, whole.out, strict=True)), whole.met]
    assert verify(store).is_identical


def test_the_answers_are_those_of_the_library():
    entries, config = history(200), settings(**BUDGET)
    outcomes, _ = answered(entries, config, size=7)
    sent = [json.loads(payload) for each in outcomes for payload in each.out]
    predictor, wanted = OnlinePredictor(config), 0
    for entry, message in zip(entries, sent, strict=True):
        if message["status"] == "label":
            predictor.label(message["example"], message["label"])
        elif message["status"] in ("ok", "warming"):
            found = predictor.step(Example(json.loads(entry["x"]), entry.get("y"), id=entry["id"]))
            assert found.label_wanted == message["label_wanted"]
            assert found.label_probability == message["label_probability"]
            wanted += found.label_wanted
    assert 15 < wanted < 80


def test_one_row_and_a_block_have_the_same_bytes_and_fit_the_schema():
    entries, config = (
        history(160),
        settings(**BUDGET, costs={"a": {"a": 0, "b": 1}, "b": {"a": 4, "b": 0}}),
    )
    (single, _), (block, _) = (answered(entries, config, size=size) for size in (1, None))
    assert [each for one in single for each in one.out] == block[0].out
    for payload in block[0].out:
        if b'"guarantee"' in payload:
            assert PredictionMessage.model_validate_json(payload).payload() == payload
    for _, payload in block[0].met:
        assert MetricsMessage.model_validate_json(payload).payload() == payload


def test_the_compact_form_keeps_both_fields():
    entries, config = history(160), settings(**BUDGET)
    full, _ = answered(entries, config)
    compact, _ = answered(entries, config, limits=Limits(payload="compact"))
    pairs = list(zip(full[0].out, compact[0].out, strict=True))
    assert any(one != other for one, other in pairs)
    for one, other in pairs:
        names = ("label_wanted", "label_probability")
        assert [parse(one).get(n) for n in names] == [parse(other).get(n) for n in names]
    broken = next(b for _, b in pairs if b'"c"' in b and b'"label_wanted":true' in b)
    with pytest.raises(ValueError, match="label_wanted"):
        parse(broken.replace(b'"label_wanted":true', b'"label_wanted":1'))


def test_a_person_sees_which_labels_are_wanted():
    entries, config = history(200), settings(**BUDGET)
    ((whole,), _) = answered(entries, config)
    chosen = [p for p in whole.out if b'"ok"' in p and b'"label_wanted":true' in p]
    message = json.loads(chosen[0])
    assert f"label wanted, for {1 / message['label_probability']:.0f} examples" in line(chosen[0])
    row = table_row(message)
    assert (row["label_wanted"], row["label_probability"]) == (True, message["label_probability"])
    report = json.loads(whole.met[-1][1])
    shown = dict(validity_lines(report))["budget"]
    assert f"{report['budget']['wanted']} labels, {report['budget']['labelled']} came" in shown
