"""`fleet`, `status --fleet`: which options go together; at work: `placed/test_fleet.py`."""

import pytest

WRONG = {
    "nothing": (("fleet",), "name feeds or patterns, or give --replicas N"),
    "stop and start": (("fleet", "a-*", "--replicas", "0"), "stops the fleet: leave out the feeds"),
    "settings alone": (("fleet", "--replicas", "2", "--window", "60"), "change with its feeds"),
    "processors alone": (("fleet", "--replicas", "2", "--cpus", "2"), "change with its feeds"),
    "no pattern": (("fleet", "a[", "--replicas", "2"), "a '[' has no ']'"),
    "a feed": (("status", "f", "--fleet", "fleet"), "--fleet shows shards: leave out FEED"),
    "a check": (("status", "--check", "--fleet", "fleet"), "leave out FEED and --check"),
}


@pytest.mark.parametrize(("arguments", "told"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_asked_of_a_fleet_is_told_before_redis_is(run_command, arguments, told):
    code, out, err = run_command(*arguments, "--redis", "redis://127.0.0.1:1")
    assert (code, out, told in err, err.count("\n")) == (2, "", True, 1)
