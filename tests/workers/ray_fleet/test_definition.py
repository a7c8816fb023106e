"""What a fleet stores: one key, no secret, and nothing that another version cannot read."""

from contextlib import closing

import pytest

from workers.broker.connection import Connection
from workers.config.settings import WorkerSettings
from workers.errors import BadConfiguration, InvalidFeedName
from workers.feed.keys import fleet_key
from workers.ray_fleet.definition import FleetDefinition, FleetStore, access_of, given_settings
from workers.stop import Stop


@pytest.fixture
def connection(redis_url):
    with closing(Connection(redis_url, Stop())) as opened:
        yield opened


@pytest.fixture
def fleet(connection, feed):
    return FleetStore(connection, feed)


def test_a_definition_is_read_as_it_was_written_until_it_is_deleted(fleet):
    assert fleet.get() is None
    written = FleetDefinition(
        patterns=("sensors-*", "returns"), shards=4, settings={"classes": ["a", "b"], "C": 2.5},
        cpus=0.5, resources={"ssd": 1.0},
    )  # fmt: skip
    fleet.put(written)
    assert fleet.get() == fleet.require() == written
    fleet.delete()
    with pytest.raises(BadConfiguration, match=r"no fleet 'feed-[0-9]+': start it with"):
        fleet.require()


@pytest.mark.parametrize("text", ["", "nonsense", "[]", '{"v":2,"patterns":["a"],"shards":1}',
                                  '{"v":1,"patterns":[],"shards":1}',
                                  '{"v":1,"patterns":["a"],"shards":-1}'])  # fmt: skip
def test_what_is_no_definition_is_named_with_its_key(fleet, connection, feed, text):
    connection.call("SET", fleet_key(feed), text)
    with pytest.raises(BadConfiguration, match=f"osvm:fleet:{feed} is no fleet"):
        fleet.get()


def test_the_name_of_a_fleet_is_one_that_a_feed_could_have(connection):
    with pytest.raises(InvalidFeedName):
        FleetStore(connection, "a b")


@pytest.mark.parametrize("url", [
    "redis://u:pw@h/0", "redis://:pw@h/0", "rediss://u:p%40w@h:1/0", "redis://h/0?password=pw",
    "redis+cluster://u:pw@h,g", "redis+sentinel://h/s?sentinel_password=pw",
])  # fmt: skip
def test_a_url_with_a_password_is_refused_and_the_password_not_shown(url):
    with pytest.raises(BadConfiguration, match="holds a password, which Ray would store") as raised:
        access_of(WorkerSettings(redis=url))
    assert "pw" not in str(raised.value)
    assert "p%40w" not in str(raised.value)


def test_ray_is_told_where_redis_is_and_where_each_machine_has_the_credentials(tmp_path):
    settings = WorkerSettings(redis="rediss://u@h:1/0", redis_password_file=tmp_path / "pw")
    assert access_of(settings) == {
        "redis": "rediss://u@h:1/0",
        "redis_password_file": str(tmp_path / "pw"),
    }


def test_the_embedded_redis_is_refused():
    with pytest.raises(BadConfiguration, match="a Redis that every machine reaches"):
        access_of(WorkerSettings())


def test_a_setting_that_may_be_a_secret_is_refused():
    given = WorkerSettings(alarm_url="https://alarms.example/token")
    with pytest.raises(BadConfiguration, match="ONLINE_SVM_ALARM_URL") as raised:
        given_settings(given, {})
    assert "token" not in str(raised.value)


def test_a_section_that_may_hold_a_secret_is_refused_before_redis_is_asked(run_command, tmp_path):
    file = tmp_path / "settings.toml"
    file.write_text('[feed."a-*"]\nalarm_url = "https://alarms.example/token"\n')
    code, _, told = run_command("fleet", "a-*", "--redis", "redis://127.0.0.1:1", "--config", file)
    assert (code, "ONLINE_SVM_ALARM_URL" in told, "token" in told) == (2, True, False)


def test_the_settings_that_were_given_come_back_as_they_were():
    given = WorkerSettings(
        redis="redis://h/0", classes=("a", "b"), window=None, C=0.1, alarm_secret_file="/run/key"
    )
    told = given_settings(given, {"C": "file", "window": "option", "classes": "environment"})
    assert told["file"] == {"C": 0.1}
    assert told["settings"] == {"alarm_secret_file": "/run/key", "classes": ["a", "b"],
                                "window": None}  # fmt: skip
    stored = FleetDefinition(patterns=("a",), shards=1, **told).model_dump_json()
    read = FleetDefinition.model_validate_json(stored)
    assert WorkerSettings(redis="redis://h/0", **read.settings, **read.file) == given
