"""A promised error rate of a feed: answers, status, metrics, page and report show it in a line."""

import pytest
from world import World

from workers.dashboard.reports import parsed
from workers.dashboard.shown_feed import Excerpt
from workers.monitor.metrics import of_report
from workers.reading.answers import answer
from workers.reading.label_facts import promise_text

PROMISE = {"error": 0.4, "confidence": 0.6}


@pytest.fixture
def world(redis_url, feed, run_command, capsys):
    with World(redis_url, feed, run_command, promise=PROMISE) as made:
        made.push(made.entries[:260])
        made.answer()
        capsys.readouterr()
        yield made


def test_a_promise_is_shown_wherever_costs_are(world):
    store = world.store
    entries = store.last_entries(store.keys.met, 1)
    report = answer(entries[0])
    promise = report["promise"]
    assert promise["answered"] > 100
    code, said, _ = world.run("status", world.feed)
    assert code == 0
    text = promise_text(promise)
    assert f"promise    {text}" in said
    actions = [answer(entry).get("action") for entry in store.last_entries(store.keys.out, 200)]
    assert set(actions) - {None} <= {"a", "b", "review"}
    assert "review" in actions or promise["holds"]
    shares = [one for one in of_report({"f": report}) if one.name.endswith("decided_share")]
    assert [sample.value for one in shares for sample in one.samples] == [promise["decided_share"]]
    past = Excerpt("f", reports=parsed([(b"1-0", report)]))
    assert text in [fact.sentence for fact in past.facts() if fact.name == "promise"]


HELD = {
    "holds": True, "withdrawn": None, "thresholds": {"no": 0.9}, "decided_share": 0.4,
    "bounds": {"false_alarm": 0.02}, "labels": 900, "labels_needed": 0,
}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, "false alarm at most 2 %; decided: no from 0.9, 40 % of recent examples"),
        ({"withdrawn": "why", "holds": False}, "withdrawn, all go to review: why"),
        (
            {"holds": False, "labels_needed": None},
            "all go to review: too many errors at every threshold of 900 labels",
        ),
    ],
)
def test_the_text_of_a_promise_says_what_holds_or_why_not(changes, text):
    assert promise_text(HELD | changes) == text


def test_the_bound_of_each_rate_is_a_metric():
    (family,) = [
        one for one in of_report({"f": {"promise": HELD}}) if one.name.endswith("promise_bound")
    ]
    (sample,) = family.samples
    assert (sample.labels, sample.value) == ({"feed": "f", "rate": "false_alarm"}, 0.02)
