"""A later start with fewer options than the first: nothing is deleted that the first one kept."""

import json

import pytest
from world import COUNT, World

HALF = COUNT // 2
BOUNDS = ("--retain-out", "7", "--retain-bytes", "4096")


@pytest.fixture
def begun(embedded_url, feed, run_command):
    """A feed; `work` lets a worker with some options answer so many more entries, and stops it."""
    with World(embedded_url, feed, run_command) as world:
        yield world


def work(world, count, *options):
    world.push(count)
    return world.work(None, *options)


def kept(world):
    return world.store.length(world.store.keys.input)


def events(world, code):
    pages = world.store.pages(world.store.keys.events, b"0-0")
    found = [json.loads(fields[1]) for page in pages for _, fields in page]
    return [event["detail"] for event in found if event["code"] == code]


def test_input_that_was_kept_is_kept_by_a_later_start_without_the_option(begun):
    work(begun, HALF, "--keep-input")
    said = work(begun, HALF)
    assert kept(begun) == COUNT
    assert "keep_input" not in said
    begun.check()


def test_input_is_given_up_where_that_is_asked_for_and_it_is_announced(begun):
    work(begun, HALF, "--keep-input")
    said = work(begun, HALF, "--no-keep-input")
    assert "keep_input: True, from now on False" in said
    assert kept(begun) < COUNT
    assert events(begun, "retention") == ["keep_input: True, from now on False"]
    begun.check()


def test_a_feed_of_a_version_that_stored_none_of_it_goes_on(begun):
    work(begun, HALF, "--keep-input")
    begun.store.call("HDEL", begun.store.keys.state, "retention")
    said = work(begun, HALF, "--keep-input")
    assert "from now on" not in said
    assert kept(begun) == COUNT
    assert begun.store.state().retention.keep_input
    begun.check()


def test_bounds_and_the_policy_are_those_of_the_first_start(begun):
    work(begun, HALF, *BOUNDS)
    stored = begun.store.state().retention
    assert (stored.retain_out, stored.retain_bytes, stored.downstream) == (7, 4096, "trim")
    work(begun, HALF)
    assert begun.store.state().retention == stored
    assert begun.store.length(begun.store.keys.out) < HALF


def test_what_waits_for_a_consumer_is_not_trimmed_by_a_later_start(begun):
    third = COUNT // 3
    work(begun, third, "--downstream", "block")
    work(begun, third)
    assert kept(begun) == 2 * third  # nobody has acknowledged an answer to it
    assert "downstream: block, from now on trim" in work(begun, third, "--downstream", "trim")
    assert kept(begun) < COUNT
    begun.check()


def test_a_backup_takes_along_what_is_kept(begun, tmp_path):
    work(begun, HALF, "--keep-input")
    file = tmp_path / "backup"
    assert begun.run("backup", begun.feed, "--out", str(file))[0] == 0
    keys = [key for key in begun.store.types() if key != begun.store.keys.input]
    begun.store.call("DEL", *keys, *begun.store.snapshot_keys())
    assert begun.run("restore", begun.feed, str(file))[0] == 0
    assert begun.store.state().retention.keep_input


def test_a_fork_and_a_reset_say_how_the_input_stays_kept(begun):
    work(begun, HALF, "--keep-input")
    err = begun.run("fork", begun.feed, "--to", f"{begun.feed}-2")[2]
    assert f"online-svm worker {begun.feed}-2 --keep-input" in " ".join(err.split())
    err = begun.run("reset", begun.feed, "--yes")[2]
    assert "a worker trims it unless it has --keep-input again" in " ".join(err.split())
