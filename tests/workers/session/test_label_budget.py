"""A feed with a label budget on a real Redis, and its answers as the programs show them."""

import json

from late_feed import answered, history, settings

from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.stream.input_batch import Example
from workers.cli.stream_text import line
from workers.config.settings import Limits
from workers.message.schema import MetricsMessage, PredictionMessage
from workers.offline.answer_table import flat as table_row
from workers.reading.facts import facts
from workers.reading.status import FeedStatus

BUDGET = {"label_budget": 0.2, "monitors": "default"}
LIMITS = Limits(dedupe_window=30)


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
            assert message["label_probability"] == round(found.label_probability, 6)
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


def test_a_person_sees_which_labels_are_wanted():
    entries, config = history(200), settings(**BUDGET)
    ((whole,), _) = answered(entries, config)
    chosen = [p for p in whole.out if b'"ok"' in p and b'"label_wanted":true' in p]
    message = json.loads(chosen[0])
    assert f"label wanted, for {1 / message['label_probability']:.0f} examples" in line(chosen[0])
    row = table_row(message)
    assert (row["label_wanted"], row["label_probability"]) == (True, message["label_probability"])
    report = json.loads(whole.met[-1][1])
    found = facts(FeedStatus(feed="f", report=report))
    (shown,) = [fact.sentence for fact in found if fact.name == "budget"]
    assert f"{report['budget']['wanted']} labels, {report['budget']['labelled']} came" in shown
