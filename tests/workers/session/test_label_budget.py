"""What a person sees of a label budget."""

import json

from late_feed import answered, history, settings

from workers.cli.stream_text import line
from workers.offline.answer_table import flat as table_row
from workers.reading.facts import facts
from workers.reading.status import FeedStatus

BUDGET = {"label_budget": 0.2, "monitors": "default"}


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
