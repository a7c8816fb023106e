"""The words of a promised error rate, and its metric."""

import pytest

from workers.monitor.metrics import of_report
from workers.reading.label_facts import promise_text

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
