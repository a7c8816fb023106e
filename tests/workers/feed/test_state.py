"""A damaged `st` is named, field by field, with exit code 4, and is never written to."""

import pytest
from session_steps import taken_over
from world import CONFIG

from workers.config.settings import Limits
from workers.errors import StateLost
from workers.feed.pinned_config import pinned_config
from workers.session import preflight

COUNT = 40
AGREEMENT = pinned_config(CONFIG, Limits())


@pytest.fixture
def worked(world):
    """A feed with answers and a snapshot, and no worker."""
    world.push(COUNT)
    world.answer().snapshot()
    return world


def damage(world, *fields):
    """Damage the state of a feed; return a function that tells whether it is still like that."""
    world.store.call("HSET", world.store.keys.state, *fields)
    before = fields_of(world)
    return lambda: fields_of(world) == before


def fields_of(world):
    """Return the fields of the state; Redis gives them in an order that may change."""
    flat = world.store.call("HGETALL", world.store.keys.state)
    return dict(zip(flat[::2], flat[1::2], strict=True))


DAMAGED = [
    ("format", "one"), ("epoch", "9223372036854775807"), ("epoch", "-1"), ("epoch", "1e3"),
    ("cursor", "zz"), ("cursor", "40"), ("cursor", "40-"), ("cursor", "040-0"), ("cursor", " 40-0"),
    ("cursor", "40-18446744073709551616"), ("cursor", "4٠-0"), ("seq", "many"), ("seq", ""),
    ("seq", "40.0"), ("seq", "9" * 500), ("n", "٣"), ("n", "41"), ("digest", "00" * 31),
    ("digest", "0 " * 32), ("digest", "AB" * 32), ("snapshot", "1:2:3"), ("snapshot", "x"),
    ("snapshot", "5:" + "a" * 64 + ":zz"), ("previous", "5:" + "g" * 64 + ":1-0"),
    ("config", "[]"), ("config", "{"), ("config", "[" * 5000),
    ("gone", "x"), ("gone", "1 zz"),
    ("added", "40"), ("added", "40 -1"), ("added", "4e1 0"), ("run_id", ""), ("run_id", "here"),
    ("marks", "40"), ("marks", "x:40-0"), ("retention", "{"), ("retention", '{"retain_out":0}'),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), DAMAGED)
def test_a_damaged_field_is_named_before_anything_is_written(worked, name, value):
    is_untouched = damage(worked, name, value)
    told_so = f"is damaged: field '{name}' is .*online-svm reset"
    with pytest.raises(StateLost, match=told_so) as told:
        preflight.check(worked.store, AGREEMENT)
    assert len(str(told.value)) < 450
    assert is_untouched()


@pytest.mark.parametrize("name", ["config", "config_hash"])
def test_a_configuration_of_another_hash_is_damage(worked, name):
    damage(worked, "config_hash", "00", name, "{}")
    with pytest.raises(StateLost, match="field 'config_hash' is not the SHA-256 of field 'config'"):
        preflight.check(worked.store, AGREEMENT)


@pytest.mark.parametrize("value", ["9223372036854775807", "zz"])
def test_an_epoch_that_cannot_grow_is_damage_to_a_worker_that_reads_again(worked, value):
    running = worked.session()
    is_untouched = damage(worked, "epoch", value)
    running.reload()
    with pytest.raises(StateLost, match="is damaged: field 'epoch'"):
        taken_over(running)
    assert is_untouched()


def test_a_wrong_count_of_learned_examples_is_damage_and_not_other_bytes(worked):
    n = worked.store.state().position.n
    damage(worked, "n", n - 1)
    told = f"field 'n' is {n - 1}, but a replay that gives the same answers learns {n}"
    with pytest.raises(StateLost, match=told):
        worked.session()


@pytest.mark.parametrize("command", ["worker", "check", "status", "verify"])
def test_every_command_ends_with_4_and_one_line(worked, command):
    damage(worked, "cursor", "zz")
    code, _, err = worked.run(command, worked.feed)
    told = f"{worked.store.keys.state} is damaged: field 'cursor' is b'zz', not the ID of an entry"
    assert (code, told in err) == (4, True)
    assert len([line for line in err.splitlines() if line.startswith("online-svm: ")]) == 1
