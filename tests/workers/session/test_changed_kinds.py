"""A feature whose kind changes is told: once in the log, and in `status`."""

import json

import pytest
from structlog.testing import capture_logs
from world import World

WORDS = (
    "feature 'flag' was learned as numbers and came as true and false: these values (30 so far) "
    "count as missing; send the kind that was learned"
)


def entries(count, form):
    return [
        ["x", json.dumps({"flag": form(i % 2), "z": i % 7}), *(["y", "ab"[i % 2]] if y else [])]
        for i in range(count)
        for y in [form is int]
    ]


def test_a_changed_kind_is_logged_once_and_stays_in_the_status(redis_url, feed, run_command):
    with World(redis_url, feed, run_command, committee="default", window=200) as world:
        world.push(entries(200, int))
        world.answer().snapshot()
        assert json.loads(world.run("status", feed, "--json")[1])["kinds"] == []
        with capture_logs() as logs:
            world.push(entries(20, bool))
            running = world.answer(batch=7)
            world.push(entries(10, bool))
            world.answer(batch=7)
            del running
        told = [line["event"] for line in logs if "was learned as" in line["event"]]
        assert len(told) == 1
        (kind,) = json.loads(world.run("status", feed, "--json")[1])["kinds"]
        assert kind == {
            "feature": "flag", "learned": "numbers", "came": "true and false", "values": 30,
            "words": WORDS,
        }  # fmt: skip
        assert WORDS in world.run("status", feed)[1]


@pytest.mark.parametrize("horizon", [None, 50])
def test_a_restored_feed_shows_what_it_showed(redis_url, feed, run_command, tmp_path, horizon):
    settings = {} if horizon is None else {"horizon": horizon}
    with World(redis_url, feed, run_command, committee="default", window=200, **settings) as world:
        world.push(entries(200, int))
        world.push(entries(30, bool))
        world.answer().snapshot()

        def shown():
            status = json.loads(world.run("status", feed, "--json")[1])
            return status["kinds"], status["pending"]

        before = shown()
        assert before[0]
        assert horizon is None or before[1]["pending"] == horizon
        file = str(tmp_path / "feed.sqlite")
        assert world.run("backup", feed, file)[0] == 0
        assert world.run("reset", feed, "--yes")[0] == 0
        assert world.run("restore", feed, file, "--yes")[0] == 0
        assert shown() == before
