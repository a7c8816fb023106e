"""Cards of the rare classes and of actions, from stored answers alone."""

import numpy as np
from bokeh.models import Div

from workers.dashboard.class_cards import ActionsCard, DetectionCard, RareClassCard
from workers.dashboard.class_figures import classes_of_interest, decided_answers, detections
from workers.dashboard.reports import parsed
from workers.dashboard.shown_feed import Excerpt, ShownAnswer
from workers.reading.true_labels import Truth


def answer(p, label, action=None, classes=("fraud", "legit")):
    message = {
        "status": "ok", "label": "fraud" if p > 0.5 else "legit", "classes": list(classes),
        "probabilities": [p, 1.0 - p],
    }  # fmt: skip
    return ShownAnswer(b"1-0", message | ({"action": action} if action else {}), Truth(True, label))


def answers(count=200, action=None):
    rng = np.random.default_rng(5)
    p = rng.beta(0.4, 3.0, count)
    labels = np.where(rng.random(count) < p, "fraud", "legit").tolist()
    return [answer(float(q), label, action) for q, label in zip(p, labels, strict=True)]


def text(card, excerpt):
    card.refresh(excerpt)
    return " ".join(part.text for part in card.root.children if isinstance(part, Div))


def test_the_rarer_of_two_classes_is_shown_and_the_counts_are_plain():
    given = answers()
    (found,) = detections(given)
    pairs = [(one.message["label"], one.truth.label) for one in given]
    frauds = sum(truth == "fraud" for _, truth in pairs)
    hits = pairs.count(("fraud", "fraud"))
    assert (found.label, found.found.positives) == ("fraud", frauds)
    assert found.found.recall.value == hits / frauds
    shown = text(DetectionCard(), Excerpt("f", answers=given))
    assert f"{frauds} of 200" in shown
    assert str(found.found.roc_auc) in shown


def test_an_action_counts_in_place_of_the_label():
    (found,) = detections(answers(action="review"))
    assert found.found.decided == 0
    assert found.reviewed == found.found.positives
    (found,) = detections(answers(action="fraud"))
    assert found.found.recall.value == 1.0


def test_a_class_that_is_asked_for_is_shown_instead():
    (found,) = detections(answers(), positive="legit")
    assert found.label == "legit"


def test_of_many_classes_those_below_half_an_equal_share_are_rare():
    labels = ["a"] * 90 + ["b"] * 90 + ["c"] * 15 + ["d"] * 5
    given = [answer(0.9, label, classes=("a", "b")) for label in labels]
    assert classes_of_interest(decided_answers(given)) == ["d", "c"]


def test_few_labels_and_answers_of_other_programs_show_nothing():
    odd = [ShownAnswer(b"1-0", {"status": "ok", "label": 3, "classes": 7}, Truth(True, "a"))] * 60
    warming = [ShownAnswer(b"1-0", {"status": "warming", "label": "a"}, Truth(True, "a"))] * 60
    for given in (answers(40), odd, warming):
        assert detections(given) == []
        assert 'class="empty"' in text(DetectionCard(), Excerpt("f", answers=given))


def test_the_diagram_of_the_rare_class_has_all_its_probabilities():
    card = RareClassCard()
    card.refresh(Excerpt("f", answers=answers()))
    assert sum(card._source.data["count"]) == 200
    assert max(card._source.data["probability"]) < 0.8
    assert card.drawn.yaxis[0].axis_label == "share of fraud"


def test_the_table_of_actions_has_its_baselines():
    costs = {
        "scored": 1000, "mean": 0.41, "by_label": 0.62, "always": {"bad": 0.7, "<b>": 1.5},
        "taken": {"bad": 600, "<b>": 400},
    }  # fmt: skip
    given = parsed([(b"1-0", {"n": 1000, "scored": 1000, "costs": costs})])
    shown = text(ActionsCard(), Excerpt("f", reports=given))
    for part in (".41", ".62", "always bad", "600", "always &lt;b&gt;", "400"):
        assert part in shown
