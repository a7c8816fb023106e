"""A damaged `st` is named, field by field, with exit code 4, and is never written to."""

import pytest
from world import CONFIG, drain, push, rows, session

from workers.broker.store import Store
from workers.config.settings import Limits
from workers.errors import StateLost
from workers.feed.agreement import agreement
from workers.session import preflight

COUNT = 40


@pytest.fixture
def worked(store):
    """A feed with answers and a snapshot, and no worker."""
    push(store, rows()[:COUNT])
    running = session(store)
    drain(running, COUNT)
    running.snapshot()
    return store


def fields(store):
    return store.call("HGETALL", store.keys.state)


DAMAGED = [
    ("format", "one"), ("epoch", "9223372036854775807"), ("epoch", "-1"), ("epoch", "1e3"),
    ("cursor", "zz"), ("cursor", "40"), ("cursor", "40-"), ("cursor", "040-0"), ("cursor", " 40-0"),
    ("cursor", "40-18446744073709551616"), ("cursor", "4٠-0"), ("seq", "many"), ("seq", ""),
    ("seq", "40.0"), ("seq", "9" * 500), ("n", "٣"), ("n", "41"), ("digest", "00" * 31),
    ("digest", "0 " * 32), ("digest", "AB" * 32), ("snapshot", "1:2:3"), ("snapshot", "x"),
    ("snapshot", "5:" + "a" * 64 + ":zz"), ("previous", "5:" + "g" * 64 + ":1-0"),
    ("config", "[]"), ("config", "{"), ("config", "[" * 5000),
    ("environment", "7"), ("environment", "\x00"), ("gone", "x"), ("gone", "1 zz"),
    ("added", "40"), ("added", "40 -1"), ("added", "4e1 0"), ("run_id", ""), ("run_id", "here"),
    ("marks", "40"), ("marks", "x:40-0"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), DAMAGED)
def test_a_damaged_field_is_named_before_anything_is_written(worked, name, value):
    worked.call("HSET", worked.keys.state, name, value)
    before = fields(worked)
    with pytest.raises(StateLost, match=f"is damaged: field '{name}' is .*reset the feed") as told:
        preflight.check(worked, agreement(CONFIG, Limits()))
    assert len(str(told.value)) < 400
    assert fields(worked) == before


@pytest.mark.parametrize("name", ["config", "config_hash"])
def test_a_configuration_that_is_not_the_one_of_its_hash_is_damage_and_no_change(worked, name):
    worked.call("HSET", worked.keys.state, "config_hash", "00", name, "{}")
    with pytest.raises(StateLost, match="field 'config_hash' is not the SHA-256 of field 'config'"):
        preflight.check(worked, agreement(CONFIG, Limits()))


@pytest.mark.parametrize(("name", "value"), [("epoch", "9223372036854775807"), ("epoch", "zz")])
def test_an_epoch_that_cannot_grow_is_damage_to_a_worker_that_reads_again(worked, name, value):
    running = session(worked)
    worked.call("HSET", worked.keys.state, name, value)
    before = fields(worked)
    with pytest.raises(StateLost, match=f"is damaged: field '{name}'"):
        running.reload()
    assert fields(worked) == before


def test_a_wrong_count_of_learned_examples_is_damage_and_not_other_bytes(worked):
    n = worked.state().position.n
    worked.call("HSET", worked.keys.state, "n", n - 1)
    told = f"field 'n' is {n - 1}, but a replay that gives the same answers learns {n}"
    with pytest.raises(StateLost, match=told):
        session(worked)


@pytest.mark.parametrize("command", ["worker", "check", "status", "verify"])
def test_every_command_ends_with_4_and_one_line(worked, redis_url, feed, run_command, command):
    worked.call("HSET", worked.keys.state, "cursor", "zz")
    code, _, err = run_command(command, feed, "--redis", redis_url)
    assert code == 4
    assert f"osvm:{{{feed}}}:st is damaged: field 'cursor' is b'zz', not the ID of an entry" in err
    assert len([line for line in err.splitlines() if line.startswith("online-svm: ")]) == 1


def test_a_damaged_feed_hides_no_other_from_status(redis_url, feed, run_command):
    with Store(redis_url, feed) as one, Store(redis_url, f"{feed}-2") as two:
        for store in (one, two):
            push(store, rows()[:COUNT])
            drain(session(store), COUNT)
            store.register()
        one.call("HSET", one.keys.state, "cursor", "zz")
        code, out, err = run_command("status", "--redis", redis_url, "--json")
    assert code == 0
    assert f'"feed":"{feed}-2"' in out
    assert f"{feed}: osvm:{{{feed}}}:st is damaged" in err
