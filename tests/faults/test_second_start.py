"""A later start with fewer options than the first: nothing is deleted that the first one kept."""

import json

import pytest
from world import COUNT, World, restore, saved

from workers.broker import embedded

HALF = COUNT // 2
BOUNDS = ("--retain-out", "7", "--retain-bytes", "4096")


@pytest.fixture(scope="module")
def url():
    with embedded.temporary() as server:
        yield server.url


@pytest.fixture(scope="module")
def after_keeping(url):
    """What is stored after a worker that kept the input of the first half."""
    with World(url, "kept") as world:
        work(world, HALF, "--keep-input")
        return saved(world.store)


@pytest.fixture
def begun(url, feed, run_command):
    """A feed; `work` lets a worker with some options answer so many more entries, and stops it."""
    with World(url, feed, run_command) as world:
        yield world


@pytest.fixture
def keeping(url, run_command, after_keeping):
    """A feed half of which was answered by a worker that kept the input."""
    with World(url, "kept", run_command) as world:
        restore(world.store, after_keeping)
        world.pushed = HALF
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


def test_input_that_was_kept_is_kept_by_a_later_start_without_the_option(keeping):
    said = work(keeping, HALF)
    assert kept(keeping) == COUNT
    assert "keep_input" not in said
    keeping.check()


def test_input_is_given_up_where_that_is_asked_for_and_it_is_announced(keeping):
    said = work(keeping, HALF, "--no-keep-input")
    assert "keep_input: True, from now on False" in said
    assert kept(keeping) < COUNT
    assert events(keeping, "retention") == ["keep_input: True, from now on False"]
    keeping.check()


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


def test_a_backup_takes_along_what_is_kept(keeping, tmp_path):
    file = tmp_path / "backup"
    assert keeping.run("backup", keeping.feed, str(file))[0] == 0
    keys = [key for key in keeping.store.types() if key != keeping.store.keys.input]
    keeping.store.call("DEL", *keys, *keeping.store.snapshot_keys())
    assert keeping.run("restore", keeping.feed, str(file))[0] == 0
    assert keeping.store.state().retention.keep_input


def test_a_fork_and_a_reset_say_how_the_input_stays_kept(keeping):
    err = keeping.run("fork", keeping.feed, "--to", f"{keeping.feed}-2")[2]
    assert f"online-svm worker {keeping.feed}-2 --keep-input" in " ".join(err.split())
    err = keeping.run("reset", keeping.feed, "--yes")[2]
    assert "a worker trims it unless it has --keep-input again" in " ".join(err.split())
