"""The verdict: a sentence for each state of a feed, and never that all holds while it does not."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from online_svm.stream.alarm import Alarm
from workers.feed.state_fields import PendingLabels
from workers.reading.answers import newest_answer, newest_label
from workers.reading.events import Event
from workers.reading.incidents import Incident
from workers.reading.lag import Lag
from workers.reading.status import FeedStatus
from workers.reading.verdict import LEVELS, PARKED_SECONDS, Verdict, of_end, summary, trust, verdict
from workers.runner.feed_task import LAST_RETRY

NOW = 1_700_000_000.0
SPAN = {
    "labels": 4_900, "accuracy": 0.757, "announced": 0.752, "within": 0.027, "apart": 0.0,
    "change": 0.4, "range": None, "rare": None, "gain": 0.2, "gain_error": 0.01, "entropy": 0.6,
    "mean": {"label": "spam", "announced": 0.25, "frequency": 0.24, "examples": 1_176,
             "evidence": 0.0, "factor": 1.1},
}  # fmt: skip
FIGURES = {"scored": 1_000, "accuracy": 0.757, "probability": 0.752}


def report_of(last=None, classes=(), start=0, event="spam", unlabelled=(), **since):
    """Return a report whose agreement differs from one that holds as given."""
    agreement = {
        "event": event, "last": SPAN | {"labels": 1_000} | (last or {}), "since": SPAN | since,
        "start": start, "answers": 5_000, "unlabelled": list(unlabelled),
    }  # fmt: skip
    window = {"overall": FIGURES, "classes": list(classes)}
    return {
        "n": 5_000, "seq": 4_999, "scored": 4_900, "agreement": agreement, "windowed": window
    }  # fmt: skip


REPORT = report_of()
EXACT = {"status": "ok", "guarantee": "exact", "reason": None}
WELL = FeedStatus(
    feed="mail", holder="host-1", now=NOW, answer=EXACT, report=REPORT, seq=5_000, n=5_000
)
HOLD = "Holds: right within .03 over all 4,900; helps"
ANNOUNCED = "announced 75 of 100, right were 76, over all 4,900"


def alarm(n=4047, kind="exchangeability", scope="overall", name=None, estimate=None):
    bounds = (None, None) if estimate is None else (estimate - 0.01, estimate + 0.01)
    return Alarm(n, kind, scope, name, "test", 5.0, 4.6, 10, estimate, *bounds, announced=0.9)


def event(code, detail="", seconds=180.0, writer="host-1"):
    return Event(1000 * (NOW - seconds), code, writer, detail)


def no_label_for(seconds):
    """Return what a status of 900 awaited labels has, the last of which came so long ago."""
    labels = PendingLabels(900, 900)
    return {"lag": Lag(0, False, 0.0, labels), "label_at": 1000 * (NOW - seconds)}


def off(scope, name, estimate):
    return Incident((alarm(kind="calibration", scope=scope, name=name, estimate=estimate),))


def of_class(label, announced, frequency, predicted=0, accuracy=None):
    return {
        "label": label, "probability": announced, "frequency": frequency, "predicted": predicted,
        "examples": round(1_000 * frequency), "accuracy": accuracy,
    }  # fmt: skip


CLASSES = (of_class("ham", 0.7, 0.7, 800, 0.8), of_class("spam", 0.3, 0.3, 200, 0.585))
COSTS = {
    "predictor": {
        "costs": {
            "ham": {"ham": 0, "spam": 1, "review": 1.5},
            "spam": {"ham": 20, "spam": 0, "review": 1.5},
        }
    }
}


def priced(mean, taken=None):
    costs = {
        "scored": 10_000, "mean": mean, "by_label": 2.0,
        "always": {"ham": 5.0, "spam": 3.0, "review": 1.5},
        "taken": taken or {"ham": 4_000, "spam": 3_000, "review": 3_000},
    }  # fmt: skip
    return report_of(classes=CLASSES) | {"costs": costs}


def sure(evidence, lower=0.97, upper=0.99, announced=0.981, frequency=0.91):
    return {
        "lower": lower, "upper": upper, "announced": announced, "frequency": frequency,
        "answers": 600, "evidence": evidence,
    }  # fmt: skip


def came(label, announced, frequency, evidence=9.0, examples=30, factor=2.6):
    return {
        "label": label, "announced": announced, "frequency": frequency, "examples": examples,
        "evidence": evidence, "factor": factor,
    }  # fmt: skip


NEVER_LABELLED = {"lower": 0.5, "upper": 0.9, "answers": 1_460, "labelled": 2}
LABELS = Incident((alarm(),))
WARMING = {"status": "warming", "guarantee": "none", "reason": "warming up"}
FAR = report_of(last={"range": sure(30.0)})
NO_WINDOW = {"scored": 11_900}
REJECTED = {"status": "rejected", "code": "bad_label", "reason": "label 'x' is none of a, b"}
UNCALIBRATED = {"status": "ok", "guarantee": "none", "reason": "no calibration example"}
DISCOVERED = EXACT | {"guarantee": "approximate", "reason": "classes are discovered"}
NO_WORKER, BEHIND = {"holder": None}, Lag(900, False, 240.0)
WATCHED = {"predictor": {"score_use": "watched"}}
CHANGED = "Do not trust them since example 4,047: the labels changed"
NO_GUARANTEE = "Take care: the answers have no guarantee"

STATES = {
    "holds": ({}, "well", HOLD),
    "holds since a change": (
        {"report": report_of(start=3_000, within=0.019)}, "well",
        "Holds: right within .02 over the last 4,900; helps",
    ),
    "approximate": ({"answer": DISCOVERED}, "well", HOLD),
    "no guarantee": ({"answer": UNCALIBRATED}, "care", NO_GUARANTEE),
    "off in a range": (
        {"report": FAR}, "care",
        "Off: answers of .970 to .990 for spam: announced 98.1 of 100, true were 91.0, over the "
        "last 1,000",
    ),
    "off in a range, of more classes": (
        {"report": report_of(event=None, range=sure(30.0))}, "care",
        "Off: answers of .970 to .990: announced 98.1 of 100, true were 91.0, over all 4,900",
    ),
    "a rare class too high": (
        {"report": report_of(mean=came("fraud", 0.025, 0.01))}, "care",
        "Off: class fraud: announced 2.5 of 100, true were 1.0, over all 4,900",
    ),
    "off on average": (
        {"report": report_of(apart=0.04)}, "care",
        "Off: probabilities differ from frequencies by .040, over all 4,900",
    ),
    "the worst is told": (
        {"report": report_of(mean=came("fraud", 0.025, 0.01), last={"range": sure(30.0)})}, "care",
        "Off: answers of .970 to .990 for spam: announced 98.1 of 100, true were 91.0, over the "
        "last 1,000",
    ),
    "the last differ": (
        {"report": report_of(last={"accuracy": 0.7, "change": 1.1})}, "care",
        "The last 1,000 differ: announced 75 of 100, right were 70",
    ),
    "the last differ, and are nearly all": (
        {"report": report_of(last={"change": 1.1}, labels=1_200)}, "wait",
        "Too early to say (needs about 300 more labels): announced 75 of 100, right were 76, over "
        "all 1,200",
    ),
    "labels of a part": (
        {"report": report_of(unlabelled=[NEVER_LABELLED])}, "care",
        "Known of a part alone: answers of .500 to .900 for spam get no labels: 2 of the last "
        "1,460 have one",
    ),
    "labels of nearly all": (
        {"report": report_of(unlabelled=[NEVER_LABELLED | {"answers": 200}])}, "well", HOLD,
    ),
    "labels stopped": (
        {"seq": 5_060}, "care", "Labels have stopped: 0 for the last 61 answers",
    ),
    "some labels are missing": ({"seq": 5_060, "n": 5_020}, "well", HOLD),
    "labels that may take long": (
        {"seq": 5_060, "settings": {"predictor": {"horizon": 200}}}, "well", HOLD,
    ),
    "most are rejected": (
        {"rejected": (150, 200), "answer": EXACT}, "bad",
        "150 of the newest 200 entries were rejected",
    ),
    "warming up": ({"answer": WARMING, "report": None}, "wait", "Warming up"),
    "too early": (
        {"report": report_of(within=0.08, labels=490)}, "wait",
        "Too early to say (needs about 770 more labels): announced 75 of 100, right were 76, over "
        "all 490",
    ),
    "too few of a rare class": (
        {"report": report_of(rare=came("fraud", 0.01, 0.01, 0.0, examples=20, factor=1.8))}, "wait",
        f"Too early to say (needs about 40 more examples of class fraud): {ANNOUNCED}",
    ),
    "enough of a rare class": (
        {"report": report_of(rare=came("fraud", 0.01, 0.01, 0.0, examples=80, factor=1.31))},
        "well", "Holds: right within .03, class fraud within a factor of 1.3 over all 4,900; helps",
    ),
    "helps, beside the most frequent class": (
        {"report": report_of(classes=CLASSES)}, "well",
        f"{HOLD} (.757 right, always ham .700)",
    ),
    "a watched score holds, of which the answers' accuracy says nothing": (
        {"report": report_of(classes=CLASSES), "settings": WATCHED}, "well",
        "Holds: the watched score is right within .03 over all 4,900; helps",
    ),
    "a watched score is off": (
        {"report": FAR, "settings": WATCHED}, "care",
        "Off: scores of .970 to .990 for spam: announced 98.1 of 100, true were 91.0, over the "
        "last 1,000",
    ),
    "helps nobody": (
        {"report": report_of(gain=-0.001, gain_error=0.001)}, "care",
        "Holds: right within .03 over all 4,900, but helps no more than the base rate",
    ),
    "helps perhaps": (
        {"report": report_of(gain=0.01, gain_error=0.01)}, "well",
        "Holds: right within .03 over all 4,900; too early to say whether it helps",
    ),
    "costs less than any rule": (
        {"report": priced(mean=0.9), "settings": COSTS}, "well",
        f"{HOLD} (.9 an example, 1.5 always review)",
    ),
    "costs no less than a rule": (
        {"report": priced(mean=1.5, taken={"review": 10_000}), "settings": COSTS}, "care",
        "Holds: right within .03 over all 4,900, but costs no less than always review "
        "(1.5 an example, 1.5 always review)",
    ),
    "begun without examples": (
        {"answer": {}, "report": None}, "wait",
        "Too early to say (needs about 100 more labels): 0 answers scored",
    ),
    "all rejected": ({"answer": REJECTED, "report": None}, "bad", "No example could be used yet"),
    "labels changed": ({"incident": LABELS}, "bad", CHANGED),
    "off in a class": (
        {"incident": off("class", "b", -0.06)}, "bad",
        "Do not trust them since example 4,047: class b: announced 90 of 100, true were 84 (83 to "
        "85)",
    ),
    "off in a slice": (
        {"incident": off("slice", "x=1", 0.1)}, "care",
        "Take care since example 4,047: slice x=1: announced 90.0 of 100, true were 100.0 (99.0 to "
        "100.0)",
    ),
    "features moved": (
        {"incident": Incident((alarm(scope="scores"),))}, "care",
        "Take care since example 4,047: the features have changed",
    ),
    "no worker, nothing waits": (
        NO_WORKER | {"events": (event("stopped", "in order, at seq 5000"),)}, "care",
        "No worker for 3 minutes",
    ),
    "no worker, entries wait": (
        NO_WORKER | {"lag": Lag(12, False, 180.0)}, "bad",
        "No worker; 12 entries wait, the oldest for 3 minutes",
    ),
    "no worker since it stopped, entries wait": (
        NO_WORKER | {"events": (event("stopped"),), "lag": Lag(1200, False, 180.0)}, "bad",
        "No worker for 3 minutes; 1,200 entries wait",
    ),
    "no worker in an incident": (
        NO_WORKER | {"events": (event("failed", "x", seconds=660.0),), "incident": LABELS}, "bad",
        f"No worker for 11 minutes. {CHANGED}",
    ),
    "not begun": (
        NO_WORKER | {"has_begun": False, "lag": Lag(1, False, 0.0), "answer": {}, "report": None},
        "care", "No worker has begun this feed; 1 entry waits",
    ),
    "ended": (
        NO_WORKER | {"events": (event("input_ended", "the last ID"),)}, "wait",
        "The input has ended",
    ),
    "set aside": (
        {"events": (event("failed", "the state is damaged"),), "lag": Lag(3, False, 0.0)}, "bad",
        "Set aside by its worker; 3 entries wait",
    ),
    "set aside, its lease given back": (
        NO_WORKER | {"events": (event("failed", "x", seconds=600.0),), "lag": Lag(3, False, 0.0)},
        "bad", "Set aside by its worker; 3 entries wait",
    ),
    "fenced: another worker has it now": (
        {"events": (event("failed", "fenced", writer="host-0"),)}, "well", HOLD,
    ),
    "replaying": (
        {"events": (event("began", "epoch 2, seq 0"), event("failed", "the state is damaged")),
         "epoch": 3, "lag": Lag(900, False, 40.0)},
        "care", "Replaying; 900 entries wait, the oldest for 40 seconds",
    ),
    "blocked since it began": (
        {"events": (event("began", "epoch 3, seq 5000"),), "rate": 0.0, "lag": BEHIND}, "bad",
        "Nothing is answered; 900 entries wait, the oldest for 4 minutes",
    ),
    "blocked": (
        {"lag": Lag(900, True, 240.0), "rate": 0.0}, "bad",
        "Nothing is answered; 900 or more entries wait, the oldest for 4 minutes",
    ),
    "behind": (
        {"lag": BEHIND, "rate": 30.0}, "care",
        "Behind; 900 entries wait, the oldest for 4 minutes",
    ),
    "behind in an incident": ({"lag": BEHIND, "rate": 30.0, "incident": LABELS}, "bad", CHANGED),
    "no labels": (no_label_for(7300.0), "care", "No label for 2 hours; 900 answers wait"),
    "late labels that come": (no_label_for(30.0), "well", HOLD),
    "unreadable": (
        {"problem": "its state is damaged", "incident": LABELS}, "bad", "This feed cannot be read",
    ),
    "gone": ({"exists": False}, "wait", "There is no such feed now"),
}  # fmt: skip


@pytest.mark.parametrize("name", STATES)
def test_each_state_has_its_sentence_and_its_colour(name):
    changes, level, sentence = STATES[name]
    found = verdict(replace(WELL, **changes))
    assert (found.level, found.sentence) == (level, sentence)


def test_what_to_do_names_the_reason_and_the_command():
    facts = replace(WELL, holder=None, events=(event("failed", "disk is full", seconds=3.0),))
    assert verdict(facts).advice == (
        "disk is full. It is tried again while that worker runs. If none runs: "
        "start one: online-svm worker mail"
    )
    facts = replace(WELL, holder=None, events=(event("failed", "disk is full", seconds=900.0),))
    assert verdict(facts).advice == (
        "Start one: online-svm worker mail. The last one ended with: disk is full"
    )
    approximate = replace(WELL, answer=DISCOVERED)
    assert verdict(approximate).advice == "The guarantee is approximate: classes are discovered."
    assert verdict(replace(WELL, answer=REJECTED, report=None)).advice == (
        "The newest was rejected: label 'x' is none of a, b."
    )


RANGES = st.builds(
    FeedStatus,
    feed=st.just("mail"),
    problem=st.sampled_from(["", "damaged"]),
    exists=st.booleans(),
    has_begun=st.booleans(),
    holder=st.sampled_from([None, "host-1"]),
    events=st.sampled_from([
        (), (event("began", "epoch 1, seq 5000"),), (event("failed", "x"),),
        (event("input_ended"),),
    ]),
    now=st.just(NOW),
    epoch=st.sampled_from([1, 2]),
    lag=st.builds(
        Lag,
        entries=st.sampled_from([0, 1, 900]),
        is_at_least=st.booleans(),
        seconds=st.sampled_from([0.0, 20.0, 500.0]),
        labels=st.sampled_from([None, PendingLabels(900, 900)]),
    ),
    rate=st.sampled_from([None, 0.0, 3.0]),
    label_at=st.sampled_from([None, 1000 * (NOW - 5.0), 1000 * (NOW - 7300.0)]),
    answer=st.sampled_from([{}, EXACT, WARMING, REJECTED, UNCALIBRATED, DISCOVERED, {"status": 3}]),
    report=st.sampled_from([None, REPORT, FAR, NO_WINDOW, {"windowed": 3, "scored": "many"}]),
    incident=st.sampled_from([None, LABELS, Incident((alarm(scope="scores"),))]),
)  # fmt: skip


@given(RANGES)
def test_nothing_holds_while_an_incident_is_open_and_no_state_is_without_words(facts):
    found = verdict(facts)
    assert found.sentence
    assert not found.sentence.endswith(".")
    is_shown = facts.exists and not facts.problem
    if facts.incident is not None and is_shown:
        assert found.level in ("bad", "care")
        assert "Holds" not in found.sentence
        assert "since example 4,047" in found.sentence
    if found.level == "well":
        assert found.sentence.startswith("Holds: ")
        assert facts.holder is not None


def test_a_parked_feed_has_a_worker_until_the_longest_retry_passes():
    assert PARKED_SECONDS - LAST_RETRY == 60.0


def test_without_a_guarantee_the_newest_answer_is_told():
    assert newest_answer([{"status": "label"}, REJECTED, None]) == REJECTED
    assert newest_answer([None]) == {}


def test_a_label_is_missing_for_no_longer_than_an_answer_waits_for_it():
    def missing_for(label_seconds, waits, answered=5):
        lag = Lag(0, False, 0.0, PendingLabels(1, 1, 0, 1000 * waits))
        newest = b"%d-0" % (1000 * (NOW - answered))
        label_at = 1000 * (NOW - label_seconds)
        return replace(WELL, lag=lag, label_at=label_at, answered=newest).label_seconds

    assert missing_for(7300.0, 15) == 20.0
    assert missing_for(20.0, 7300) == 20.0
    assert missing_for(20.0, 10, answered=-15) == 0.0  # this clock is behind that of Redis
    assert WELL.label_seconds is None


def lifecycle(*events):
    return replace(WELL, events=events).lifecycle


def test_the_last_word_of_a_worker_is_no_note():
    began, note = event("began", "epoch 1, seq 0"), event("note", "deployed")
    assert lifecycle(event("stopped"), began, note) == began
    assert lifecycle(note) is None


def test_an_input_that_has_ended_is_told_whoever_stops_or_begins_afterwards():
    began, ended = event("began", "epoch 1, seq 0"), event("input_ended", "the last ID")
    for later in ([], [event("stopped")], [event("stopped"), began, event("stopped")]):
        assert lifecycle(began, ended, *later) == ended
    failed = event("failed", "WrongKeyType")
    assert lifecycle(began, ended, failed) == failed


def test_without_a_label_among_the_answers_none_came_since():
    entries = [(b"%d-0" % i, {"status": "ok"}) for i in (5, 6, 7)]
    assert newest_label(entries) == 5.0
    assert newest_label([*entries, (b"8-0", {"status": "label"}), (b"9-0", None)]) == 8.0
    assert newest_label([]) is None


def test_the_end_of_an_incident_tells_how_the_answers_stand():
    ended = Incident(LABELS.parts, 5000)
    assert of_end(ended, REPORT, {}) == Verdict(
        "well", f"The guarantee is back since example 5,000. {HOLD}"
    )


def test_the_advice_on_an_incident_begins_with_the_feature_that_is_stuck():
    stuck = {"since": 1519, "feature": "flow", "direction": "narrower", "rank": 0.5}
    report = REPORT | {"monitors": {"features": [stuck]}}
    found = trust(FeedStatus(feed="f", report=report, incident=LABELS))
    plain = trust(FeedStatus(feed="f", report=REPORT, incident=LABELS))
    assert found.sentence == plain.sentence
    assert found.advice == (
        f"Feature flow varies less than usual, since example 1,519. {plain.advice}"
    )


def test_all_feeds_are_summed_up():
    every = [Verdict(level, "x") for level in LEVELS]
    assert summary(every) == "1 of 4 feeds well, 2 not, 1 to be seen"
    assert summary([]) == "0 of 0 feeds well"
