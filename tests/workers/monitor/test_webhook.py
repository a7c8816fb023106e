"""Alarms are posted at least once, whatever the receiver, Redis or the worker do."""

import hashlib
import hmac
import json
import time
from contextlib import ExitStack
from dataclasses import asdict, replace
from datetime import UTC, datetime

import pytest
from alarm_receiver import alarm, delivering, pending, raise_alarms, receiving
from structlog.testing import capture_logs
from world import wait_until

from workers.admin.notes import acknowledge, duration, note, silence
from workers.broker import embedded
from workers.broker.store import Store
from workers.config.settings import WorkerSettings
from workers.errors import BadConfiguration
from workers.message.encode import encode_alarms
from workers.message.schema import EventMessage
from workers.monitor.webhook_post import SIGNATURE_HEADER, receiver_of

SECRET = b"a key that nobody else has"


pytestmark = pytest.mark.servers("embedded")  # where servers differ, a test asks for both

FIRST = 3
"""The entry after the last that was answered."""


@pytest.fixture
def begun(store):
    """A feed that was answered before, without alarms."""
    store.call("HSET", store.keys.state, "cursor", "2-0", "n", 40)
    return store


def expected(store, numbers):
    return [f"{store.keys.feed}/{i}-0/began" for i in numbers]


def test_each_incident_is_posted_once_in_order(begun):
    with receiving() as received, delivering(begun, received) as webhook:
        raise_alarms(begun, 5, FIRST, together=2)
        messages = received.wait(5)
        wait_until(lambda: pending(begun) == 0)
        time.sleep(0.05)
    assert received.keys == expected(begun, range(FIRST, FIRST + 5))
    assert messages[0]["alarm"] == json.loads(encode_alarms([alarm(10 * FIRST)], 0))["alarms"][0]
    assert (messages[0]["feed"], messages[0]["entry"]) == (begun.keys.feed, f"{FIRST}-0")
    assert webhook.delivered == 5
    assert SIGNATURE_HEADER not in received.requests[0][0]


def test_a_post_is_signed_and_logs_show_no_secret(begun):
    with capture_logs() as logs, receiving() as received, delivering(begun, received, SECRET):
        received.status = 500
        raise_alarms(begun, 1, FIRST)
        received.wait(3)
        received.status = 200
        wait_until(lambda: pending(begun) == 0)
    assert [log["event"] for log in logs].count("alarms are taken again") == 1
    headers, body = received.requests[0]
    assert (
        headers[SIGNATURE_HEADER] == "sha256=" + hmac.new(SECRET, body, hashlib.sha256).hexdigest()
    )
    assert {found["Idempotency-Key"] for found, _ in received.requests} == {received.keys[0]}
    assert {sent for _, sent in received.requests} == {body}
    told = json.dumps(logs)
    assert "was not taken" in told
    assert "geheim" in received.url
    assert "geheim" not in told
    assert SECRET.decode() not in told


@pytest.mark.parametrize("answer", [302, 404, 429, 500, None], ids=lambda one: one or "too late")
def test_what_is_not_taken_is_posted_until_it_is(begun, answer):
    options, failure = ({}, f"status {answer}") if answer else ({"seconds": 0.1}, "TimeoutError")
    with receiving() as received, delivering(begun, received, **options) as webhook:
        if answer:
            received.status = answer
        else:
            received.blocks.clear()
        raise_alarms(begun, 2, FIRST)
        wait_until(lambda: webhook.failures[failure] >= 3)
        assert pending(begun) == 1
        received.status = 204
        received.blocks.set()
        wait_until(lambda: webhook.delivered == 2)
    assert set(received.keys) == set(expected(begun, range(FIRST, FIRST + 2)))


def reports(store, n, *alarms):
    said = {"n": n, "scored": 90, "monitors": {"open": [asdict(one) for one in alarms]}}
    store.call("XADD", store.keys.met, f"{n}-1", "p", json.dumps(said))


def raises(store, n, *changes):
    """Raise alarms in one entry; return them."""
    found = [replace(alarm(n), **each) for each in changes or ({},)]
    store.call("XADD", store.keys.alarms, f"{n}-0", "p", encode_alarms(found, n))
    return found


def test_posts_tell_of_alarms_that_began_or_worsened_an_incident(begun):
    part, other_part = ({"scope": "slice", "name": f"x={i}"} for i in (1, 2))
    labels = {"kind": "exchangeability"}
    with receiving() as received, delivering(begun, received) as webhook:
        raises(begun, 50, part, labels)
        raises(begun, 60, labels)
        reports(begun, 70)
        raises(begun, 80, part)
        raises(begun, 90, other_part, labels)
        webhook.raised()
        messages = received.wait(4)
        wait_until(lambda: pending(begun) == 0)
    told = [
        (m["what"], m["entry"], "alarm" in m and (m["alarm"]["kind"], m["alarm"]["name"]))
        for m in messages
    ]
    assert told == [
        ("began", "50-0", ("calibration", "x=1")), ("ended", "70-1", False),
        ("began", "80-0", ("calibration", "x=1")), ("worsened", "90-0", ("exchangeability", None)),
    ]  # fmt: skip
    assert [m["verdict"]["sentence"] for m in messages[1::2]] == [
        "The guarantee is back since example 70. Too early to say (needs about "
        "100 more labels): 90 answers scored",
        "Do not trust them since example 80: the labels changed",
    ]
    assert messages[1]["incident"] == {
        "since": 50, "until": 70, "alarms": 3, "kinds": ["calibration", "exchangeability"],
    }  # fmt: skip
    assert [headers["ce-type"].rpartition(".")[2] for headers, _ in received.requests] == [
        what for what, *_ in told
    ]


def test_the_next_process_tells_an_end_and_no_beginning_that_was_told(begun):
    with receiving() as received:
        with delivering(begun, received):
            (open_one,) = raises(begun, 50)
            reports(begun, 60, open_one)
            received.wait(1)
            wait_until(lambda: pending(begun) == 0)
        reports(begun, 70, open_one)
        reports(begun, 80)
        received.status = 500
        with delivering(begun, received):
            received.wait(3)  # it is tried again
        received.status = 204
        with delivering(begun, received) as webhook:
            wait_until(lambda: webhook.delivered == 1)
        reports(begun, 90)
        with delivering(begun, received) as webhook:
            webhook.raised()
            time.sleep(0.2)
            assert webhook.delivered == 0
    feed = begun.keys.feed
    assert set(received.keys) == {f"{feed}/50-0/began", f"{feed}/80-1/ended"}
    assert received.keys.count(f"{feed}/50-0/began") == 1


def test_an_alarm_is_a_cloud_event_in_binary_mode_beside_its_body(begun):
    begun.call("XADD", begun.keys.alarms, "1700000000123-4", "p", encode_alarms([alarm(7)], 1))
    other = replace(alarm(9), kind="exchangeability")
    begun.call("XADD", begun.keys.alarms, f"{2**62}-0", "p", encode_alarms([other], 2))
    with receiving() as received, delivering(begun, received):
        first, second = received.wait(2)
    feed = begun.keys.feed
    sent, of_no_year = (
        {name.lower(): value for name, value in headers.items()} for headers, _ in received.requests
    )
    assert {name: value for name, value in sent.items() if name.startswith("ce-")} == {
        "ce-specversion": "1.0",
        "ce-id": f"{feed}/1700000000123-4/began",
        "ce-source": f"/feeds/{feed}",
        "ce-type": "online-svm.incident.began",
        "ce-time": "2023-11-14T22:13:20.123Z",
    }
    assert sent["content-type"] == "application/json"
    assert (first["key"], second["key"]) == (sent["ce-id"], of_no_year["ce-id"])
    assert "ce-time" not in of_no_year, "RFC 3339 has no year of five digits"


def test_a_receiver_that_answers_410_gets_no_more_posts(begun):
    with capture_logs() as logs, receiving() as received:
        received.status = 410
        with delivering(begun, received) as webhook:
            raise_alarms(begun, 2, FIRST)
            received.wait(1)
            wait_until(lambda: webhook.failures["status 410"])
            raise_alarms(begun, 1, FIRST + 2)
            webhook.raised()
            time.sleep(0.2)  # several pauses between attempts
        assert received.keys == expected(begun, [FIRST])
        assert [log["event"] for log in logs].count(
            "alarms are posted no more: the receiver says that it is gone"
        ) == 1
        assert "geheim" not in json.dumps(logs)
        check_the_next_process_posts(begun, received, range(FIRST, FIRST + 3))


def check_the_next_process_posts(begun, received, numbers):
    received.status = 204
    received.requests.clear()
    with delivering(begun, received):
        received.wait(len(numbers))
    assert received.keys == expected(begun, numbers)


def test_an_alarm_between_two_processes_is_posted(begun):
    raise_alarms(begun, 2, 1)
    with receiving() as received:
        with delivering(begun, received):
            wait_until(lambda: begun.call("XINFO", "GROUPS", begun.keys.alarms))
        raise_alarms(begun, 1, FIRST)
        with delivering(begun, received):
            received.wait(1)
    assert received.keys == expected(begun, [FIRST])


def test_a_standby_posts_nothing(begun):
    with receiving() as received, delivering(begun, received, is_at_work=False):
        raise_alarms(begun, 1, FIRST)
        time.sleep(0.1)
        assert received.requests == []
        assert not begun.call("XINFO", "GROUPS", begun.keys.alarms)


def test_a_redis_that_goes_away_and_comes_back_loses_no_alarm(own_redis, feed):
    with ExitStack() as opened:
        opened.callback(embedded.stop, own_redis.directory)  # the one that is begun here
        store = opened.enter_context(Store(own_redis.url, feed))
        store.call("HSET", store.keys.state, "cursor", "1-0")
        with receiving() as received, delivering(store, received) as webhook:
            wait_until(lambda: store.call("EXISTS", store.keys.alarms))
            embedded.stop(own_redis.directory)
            time.sleep(0.2)
            embedded.ensure(own_redis.directory)
            store.close()
            raise_alarms(store, 2, FIRST)
            wait_until(lambda: webhook.delivered == 2)
    assert set(received.keys) == set(expected(store, [FIRST, FIRST + 1]))


def test_while_a_feed_is_silenced_nothing_is_posted_and_afterwards_again(begun):
    with receiving() as received, delivering(begun, received) as webhook:
        until = silence(begun, 3600, "planned work on the form")
        assert abs(until / 1000 - time.time() - 3600) < 60
        ((_, fields),) = begun.call("XRANGE", begun.keys.events, "-", "+")
        said = EventMessage.model_validate_json(fields[1])
        end = f"{datetime.fromtimestamp(until // 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
        assert (said.until, said.detail) == (until, f"until {end}: planned work on the form")
        raise_alarms(begun, 3, FIRST)
        wait_until(lambda: webhook.silenced == 3)
        silence(begun, 0, "done")
        raise_alarms(begun, 1, FIRST + 3)
        received.wait(1)
    assert received.keys == expected(begun, [FIRST + 3])
    assert pending(begun) == 0


HALF = '{"seq":1,"alarms":[{"n":3}]}'


@pytest.mark.parametrize(
    "fields", [("p", "<html>"), ("p", "[]"), ("p", "{}"), ("q", "1"), ("p", HALF)]
)
def test_what_another_program_wrote_holds_no_alarm_up(begun, fields):
    for stream in (begun.keys.alarms, begun.keys.events):
        begun.call("XADD", stream, f"{FIRST}-0" if stream == begun.keys.alarms else "*", *fields)
    begun.call("XADD", begun.keys.events, "*", "p", '{"code":"silenced"}')
    with receiving() as received, delivering(begun, received):
        raise_alarms(begun, 1, FIRST + 1)
        received.wait(1)
        wait_until(lambda: pending(begun) == 0)
    assert received.keys == expected(begun, [FIRST + 1])


def test_an_alarm_is_acknowledged_by_its_n_wherever_it_is_in_its_entry(begun):
    raise_alarms(begun, 3, FIRST, together=2)
    assert [acknowledge(begun, n) for n in ("40", "41", "4-0")] == ["4-0"] * 3


MISSAID = {
    "there is no such alarm": (
        acknowledge, ("9-9", "*", "", "-", "1-0 x", ",", "17"), "keeps no alarm",
    ),
    "it says nothing in one line": (
        note, ("", " \t", "\x1b\x07", "x" * 201), "what to note|200 characters",
    ),
    "a silence without a reason": (lambda store, why: silence(store, 60, why), (" ",), "say why"),
    "a silence without an end": (
        lambda store, seconds: silence(store, seconds, "for ever"), (400 * 86_400,), "--silence",
    ),
    "no duration": (
        lambda _, text: duration(text),
        ("", "2", "h", "2 h", "-1h", "1w", "99999999h"), "--silence",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("say", "said", "told"), MISSAID.values(), ids=MISSAID)
def test_what_people_cannot_say_is_refused_and_not_noted(begun, say, said, told):
    raise_alarms(begun, 1, FIRST)
    for text in said:
        with pytest.raises(BadConfiguration, match=told):
            say(begun, text)
    assert not begun.length(begun.keys.events)


def test_a_note_has_its_example_its_speaker_and_no_control_characters(begun):
    assert note(begun, "  deployed\n\x1b[2Jv2\u202e \x00") == 40
    assert note(begun, "x" * 200, 7, "ann@desk") == 7
    first, second = (
        EventMessage.model_validate_json(fields[1])
        for _, fields in begun.call("XRANGE", begun.keys.events, "-", "+")
    )
    assert (first.code, first.detail, first.n) == ("note", "deployed [2Jv2", 40)
    assert "@" in first.writer
    assert (second.n, second.writer) == (7, "ann@desk")


def test_the_settings_show_neither_the_token_nor_the_key(tmp_path):
    path = tmp_path / "key"
    path.write_bytes(SECRET + b"\n")
    settings = WorkerSettings(alarm_url="https://h/geheim?geheim", alarm_secret_file=path)
    assert settings.alarm_key == SECRET
    assert settings.shown()["alarm_url"] == "https://h/..."
    assert "geheim" not in json.dumps(settings.shown()) + repr(settings)
    assert receiver_of(WorkerSettings()) is None


def test_a_key_that_cannot_be_used_is_refused(tmp_path):
    empty, key, url = tmp_path / "empty", tmp_path / "key", "https://h/"
    empty.write_text("\n")
    key.write_bytes(SECRET)
    for told, given in (
        (r"alarm_secret_file: .*No such file", {"alarm_secret_file": tmp_path / "none"}),
        ("one line is wanted", {"alarm_secret_file": empty}),
        ("give alarm_url as well", {"alarm_secret_file": key, "alarm_url": None}),
    ):
        with pytest.raises(BadConfiguration, match=told):
            receiver_of(WorkerSettings(**{"alarm_url": url} | given))
