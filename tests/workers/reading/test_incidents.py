"""Incidents: the alarms of one change are one incident, whatever is known of it."""

from dataclasses import asdict, replace

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from online_svm.stream.alarm import Alarm
from workers.message.encode import encode_alarms
from workers.reading.incidents import (
    RaisedAlarm,
    ReportedOpenAlarms,
    incidents,
    known_alarms,
    open_incident,
    timeline,
)


def alarm(n, kind="calibration", scope="overall", name=None):
    return Alarm(n, kind, scope, name, "test", 5.0, 4.6, 10)


def raised(*alarms):
    return [RaisedAlarm(b"%d-0" % one.n, one.n - 1, one) for one in alarms]


def report(n, *alarms):
    return ReportedOpenAlarms(b"%d-0" % n, n, alarms)


FIRST = alarm(50, "exchangeability")
SAME, OTHER = alarm(60, "exchangeability", "class", "b"), alarm(70, "calibration", "bin", "3")


def told(alarms, reports):
    return [(one.step, one.entry) for one in timeline(raised(*alarms), reports)]


def test_one_change_is_told_by_its_beginning_its_worsening_and_its_end():
    reports = [report(25), report(75, FIRST, SAME, OTHER), report(100, OTHER), report(125)]
    assert told([FIRST, SAME, OTHER], reports) == [
        ("began", b"50-0"), ("went_on", b"60-0"), ("worsened", b"70-0"), ("ended", b"125-0"),
    ]  # fmt: skip
    (only,) = incidents(raised(FIRST, SAME, OTHER), reports)
    assert (only.since, only.until, only.parts) == (50, 125, (FIRST, SAME, OTHER))


def test_a_part_that_concerns_all_answers_worsens_one_that_did_not():
    scores, overall = alarm(50, "exchangeability", "scores"), alarm(60, "exchangeability")
    assert told([scores, overall], []) == [("began", b"50-0"), ("worsened", b"60-0")]


def test_a_share_that_changed_is_named_and_breaks_no_probability():
    share, scores = (
        alarm(50, "exchangeability", "labels", "b"),
        alarm(40, "exchangeability", "scores"),
    )
    (only,) = incidents(raised(scores, share), [])
    assert only.cause == "the share of class b has changed"
    assert not only.is_broken
    assert told([share, SAME], []) == [("began", b"50-0"), ("worsened", b"60-0")]


def test_the_report_of_the_very_entry_comes_after_its_alarm():
    assert told([FIRST], [report(50)]) == [("began", b"50-0"), ("ended", b"50-0")]


def test_the_alarms_of_one_entry_are_one_event():
    both = [FIRST, alarm(50)]
    assert told(both, []) == [("began", b"50-0")]
    assert incidents(raised(*both), [])[0].parts == tuple(both)


def test_an_incident_whose_alarms_are_trimmed_is_known_from_the_reports():
    assert incidents([], [report(75, FIRST)])[-1].parts == (FIRST,)
    assert incidents(raised(OTHER), [report(65, FIRST, SAME)])[-1].since == 50


def test_alarms_that_were_learned_again_without_an_erased_example_are_the_same():
    again = [replace(one, n=one.n - 1, log_wealth=4.9) for one in (FIRST, SAME)]
    (only,) = incidents(raised(FIRST, SAME), [report(74, *again)])
    assert only.parts == (FIRST, SAME)


def test_alarms_of_an_entry_are_read_one_by_one():
    odd = ({"n": "7"}, {"name": [3]}, {"log_wealth": "much"})
    entries = [(b"1-0", {"seq": 6, "alarms": [asdict(FIRST), asdict(SAME)]}), (b"2-0", None)]
    entries += [(b"3-0", {"seq": 6, "alarms": [asdict(FIRST) | one]}) for one in odd]
    assert [one.alarm for one in known_alarms(entries)] == [FIRST, SAME]


@pytest.mark.parametrize("odd", [None, 3, {}, {"n": 1, "monitors": {"open": 3}}, {"monitors": []}])
def test_what_is_no_report_says_nothing(odd):
    assert ReportedOpenAlarms.of(b"1-0", odd) is None


@pytest.mark.servers("embedded", "system")
def test_alarms_before_a_trimmed_report_are_those_the_next_lists(store):
    met, alarms = store.keys.met, store.keys.alarms

    def say(n, *is_open):
        said = {"n": n, "monitors": {"open": [asdict(one) for one in is_open]}}
        store.call("XADD", met, f"{n}-0", "p", orjson.dumps(said))

    for one in (FIRST, SAME):
        store.call("XADD", alarms, f"{one.n}-0", "p", encode_alarms([one], one.n - 1))
    say(65, SAME)  # no report came between the two: one incident
    (newest_report,) = store.last_entries(met, 1)
    assert open_incident(store, newest_report).parts == (FIRST, SAME)
    store.call("DEL", met)
    say(55)  # the first has ended
    say(65, SAME)
    (newest_report,) = store.last_entries(met, 1)
    assert open_incident(store, newest_report).parts == (SAME,)
    store.call("XTRIM", met, "MAXLEN", 1)
    assert open_incident(store, newest_report).parts == (SAME,)
    store.call("XADD", alarms, "70-0", "p", encode_alarms([OTHER], 69))
    say(75, SAME, OTHER)
    (newest_report,) = store.last_entries(met, 1)
    assert open_incident(store, newest_report).parts == (SAME, OTHER)


STREAM = st.lists(
    st.one_of(
        st.builds(alarm, st.just(0), st.sampled_from(["calibration", "exchangeability"])),
        st.just("quiet"),
        st.just("open"),
    ),
    max_size=12,
)


@given(STREAM)
def test_incidents_begin_and_end_in_turn_however_the_stream_is_cut(steps):
    alarms, reports, is_open = [], [], ()
    for n, step in enumerate(steps, 1):
        if isinstance(step, Alarm):
            alarms.append(alarm(n, step.kind))
            is_open = (*is_open, alarms[-1])
        elif step == "quiet":
            reports.append(report(n))
            is_open = ()
        else:
            reports.append(report(n, *is_open))
    whole = list(timeline(raised(*alarms), reports))
    turns = [one.step for one in whole if one.step in ("began", "ended")]
    assert turns == ["began", "ended"] * (len(turns) // 2) + ["began"] * (len(turns) % 2)
    for cut in range(len(steps) + 1):
        head = list(
            timeline(raised(*(a for a in alarms if a.n <= cut)), [r for r in reports if r.n <= cut])
        )
        before = head[-1].incident if head and head[-1].step != "ended" else None
        rest = raised(*(a for a in alarms if a.n > cut)), [r for r in reports if r.n > cut]
        assert head + list(timeline(*rest, before)) == whole


@pytest.mark.parametrize("seed", range(8))
def test_the_open_incident_of_a_feed_is_the_last_of_its_story(store, seed):
    alarms, reports, is_open = [], [], ()
    rng = np.random.default_rng(seed)
    for n, step in enumerate(
        rng.choice(["calibration", "exchangeability", "quiet", "open"], 12), 1
    ):
        if step == "quiet":
            is_open = ()
        elif step != "open":
            alarms.append(alarm(n, step, name=str(n)))
            is_open = (*is_open, alarms[-1])
            store.call("XADD", store.keys.alarms, f"{n}-0", "p", encode_alarms(alarms[-1:], n - 1))
            continue
        reports.append(report(n, *is_open))
        said = {"n": n, "monitors": {"open": [asdict(one) for one in is_open]}}
        store.call("XADD", store.keys.met, f"{n}-0", "p", orjson.dumps(said))
        told = incidents(raised(*alarms), reports)
        expected = told[-1] if told and told[-1].until is None else None
        assert open_incident(store, store.last_entries(store.keys.met, 1)[0]) == expected
