"""`status` says that labels come for one side of a decision alone."""

import pytest

from workers.reading.label_facts import selective_labels

ANSWERS = [{"status": "ok", "label": "pay" if i % 3 else "default"} for i in range(300)]


def report(pay=900, default=0, censored=400, **more):
    classes = [{"label": "pay", "predicted": pay}, {"label": "default", "predicted": default}]
    counts = {"censored": censored, "dropped": 0}
    return {"n": 1000, "windowed": {"classes": classes}, "labels": {"counts": counts}} | more


def test_a_label_that_never_gets_one_is_named():
    found = selective_labels(report(), lambda: ANSWERS)
    assert found.startswith("the label default is given in 33 % of the last answers, but in 0 of")
    assert "hold for the labelled alone" in found


def test_an_action_that_never_gets_a_label_is_named():
    answers = [one | {"action": "refuse" if i % 2 else "lend"} for i, one in enumerate(ANSWERS)]
    costs = {"taken": {"lend": 500, "refuse": 3}}
    found = selective_labels(report(600, 300, costs=costs), lambda: answers)
    assert found.startswith("the action refuse is given in 50 % of the last answers, but in 3 of")


@pytest.mark.parametrize(
    "given",
    [
        (report(600, 300), ANSWERS),  # both sides get labels
        (report(600, 120), ANSWERS),  # one gets fewer
        (report(censored=20), ANSWERS),  # hardly any label is missing
        (report(50), ANSWERS),  # few labels
        (report(), ANSWERS[:80]),  # few answers
        (report(budget={"wanted": 3}), ANSWERS),
        (report(labels=None), ANSWERS),  # labels come with their examples
        ({}, ANSWERS),
        (report(windowed=None), ["no answer", None, *ANSWERS]),
    ],
)
def test_nothing_is_said_without_a_reason(given):
    found, answers = given
    assert selective_labels(found, lambda: answers) == ""
