"""`note`: what people say of a feed stands in its events; refusals: `test_commands.py`."""

import orjson
import pytest

from online_svm.stream.alarm import Alarm
from workers.broker.store import Store
from workers.message.encode import encode_alarms

OFF = Alarm(5040, "calibration", "class", "b", "bets", 5.7, 5.3, 4000, -0.05, -0.09, -0.02, 0.9)


@pytest.fixture
def run(run_command, embedded_url):
    return lambda *arguments: run_command("note", *arguments, "--redis", embedded_url)


@pytest.fixture
def store(embedded_url, feed):
    """A feed that has learned 40 examples and raised an alarm."""
    with Store(embedded_url, feed) as opened:
        keys = opened.keys
        opened.call("XADD", keys.input, "1-0", "x", "[1]")
        opened.call("HSET", keys.state, "n", 40)
        opened.call("XADD", keys.alarms, "3-0", "p", encode_alarms([OFF], 5039))
        yield opened
        opened.call("DEL", keys.input, keys.state, keys.alarms, keys.events)


SAID = {
    "what happened": (
        ("deployed v2",), "noted at example 40", {"code": "note", "n": 40, "detail": "deployed v2"},
    ),
    "an alarm by its n": (
        ("a new form", "--ack", "5,040"), "the alarm at 3-0 is acknowledged",
        {"code": "acknowledged", "alarm": "3-0", "detail": "the alarm at 3-0: a new form"},
    ),
    "an alarm by its entry": (
        ("--ack", "3-0"), "the alarm at 3-0 is acknowledged",
        {"code": "acknowledged", "detail": "the alarm at 3-0"},
    ),
    "a silence": (
        ("planned", "--silence", "2h"), "nothing is posted until 2", {"code": "silenced"},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("arguments", "told", "event"), SAID.values(), ids=SAID)
def test_what_is_said_is_an_event(run, store, arguments, told, event):
    code, out, err = run(store.keys.feed, *arguments)
    assert (code, out, err.startswith(f"{store.keys.feed}: {told}")) == (0, "", True)
    ((_, fields),) = store.call("XRANGE", store.keys.events, "-", "+")
    assert orjson.loads(fields[1]).items() >= event.items()
