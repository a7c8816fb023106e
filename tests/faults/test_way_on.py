"""Each command that an error names is run as printed; then the feed goes on."""

import re
import shlex
import sys

import pytest
from session_steps import advance
from world import Worker, World, drain, push, rows

from workers.config.settings import WorkerSettings
from workers.errors import WorkerError
from workers.session.preflight import run as preflight

ANSWERED, WAITING, LATER = 100, 20, 10
FIRST_LATER = 1000  # ID of the first entry that is pushed after the error
REDIS_COMMANDS = re.compile(r"(?:XGROUP|XSETID|HDEL|HSET) [^,;]+")
PROGRAM_COMMANDS = re.compile(
    r"online-svm ((?:reset|restore|verify|fork) (?:'[^']+'|\S+?)(?: FILE| NEW| --[a-z]+)*)"
    r"(?=[\s,;:.)]|$)"
)


@pytest.fixture
def world(counting_url, feed, run_command, tmp_path):
    """A feed on a Redis that counts what a stream got and lost, with a backup at 60 entries."""
    with World(counting_url, feed, run_command) as world:
        world.push(60)
        world.answer().snapshot()
        world.backup = tmp_path / "feed.backup"
        world.run("backup", world.feed, world.backup)
        yield world


def call(world, command, key, *words):
    return world.store.call(command, getattr(world.store.keys, key), *words)


def away(takes_away):
    """A fault that happens while no worker runs."""

    def fault(world):
        takes_away(world)
        preflight(world.store, WorkerSettings(**world._given))
        world.session()

    return fault


def beside_a_worker(takes_away):
    """A fault that a running worker finds."""

    def fault(world):
        running = world.session()
        takes_away(world)
        for _ in range(20):
            running.idle()
            advance(running)

    return fault


def with_snapshot(fault):
    """The same with a snapshot of the last answer."""

    def after(world):
        world.session().snapshot()
        fault(world)

    return after


def delete_input(world):
    call(world, "DEL", "input")


def begin_input_anew(world):
    delete_input(world)
    push(world.store, rows()[:5], ANSWERED + 500)


def delete_waiting(world):
    push(world.store, rows()[:WAITING], ANSWERED + 1)
    call(world, "XDEL", "input", f"{ANSWERED + 2}-0")


def trim_input(world):
    push(world.store, rows()[:WAITING], ANSWERED + 1)
    call(world, "XTRIM", "input", "MINID", f"{ANSWERED + 5}-0")


def delete_state(world):
    call(world, "DEL", "state")


def spoil_snapshots(world):
    world.session().snapshot()
    for pointer in world.store.state().snapshots:
        for key in pointer.keys(world.store.keys):
            world.store.call("SET", key, "spoiled")


def cut_answers(world):
    """As where Redis lost the last answers, but not the state."""
    call(world, "DEL", "out")
    call(world, "XADD", "out", "1-0", "p", "{}")


def delete_answered_input(world):
    call(world, "XDEL", "input", *[f"{i}-0" for i in range(70, 80)])


def spoil_config(world):
    call(world, "HSET", "state", "config", "{")


FAULTS = {
    "input expired": (away(delete_input), {"restore", "reset"}),
    "input expired after a snapshot": (
        with_snapshot(away(delete_input)), {"redis", "reset"},
    ),
    "input expired under a worker": (beside_a_worker(delete_input), {"redis", "reset"}),
    "input made anew": (away(begin_input_anew), {"restore", "reset"}),
    "input made anew, after a snapshot": (
        with_snapshot(away(begin_input_anew)), {"redis", "reset"},
    ),
    "input made anew under a worker": (beside_a_worker(begin_input_anew), {"redis", "reset"}),
    "an entry deleted before it was read": (
        beside_a_worker(delete_waiting), {"redis", "reset"},
    ),
    "input trimmed before it was read": (beside_a_worker(trim_input), {"restore", "reset"}),
    "input trimmed before it was read, after a snapshot": (
        with_snapshot(beside_a_worker(trim_input)), {"redis", "reset"},
    ),
    "answered input deleted": (away(delete_answered_input), {"restore", "reset"}),
    "state deleted": (away(delete_state), {"restore", "reset"}),
    "no snapshot": (away(spoil_snapshots), {"verify", "restore", "reset"}),
    "answers lost": (away(cut_answers), {"verify", "restore", "reset"}),
    "configuration damaged": (away(spoil_config), {"restore", "reset"}),
}  # fmt: skip


def ways_of(text):
    """Return the ways on that a text names: lists of commands, by the kind of the last."""
    ways, end = {}, -1
    for found in PROGRAM_COMMANDS.finditer(text):
        words = shlex.split(found[1])
        before = ways.popitem()[1] if text[end : found.start()] == ", then " else []
        ways[words[0]] = [*before, words]
        end = found.end()
    redis = [shlex.split(command) for command in REDIS_COMMANDS.findall(text)]
    return ways | ({"redis": redis} if redis else {})


def follow(world, kind, commands):
    for words in commands:
        if kind == "redis":
            world.store.call(*words)
            continue
        given = [str(world.backup) if word == "FILE" else word for word in words]
        code, _, said = world.run(*given, *(["--yes"] if kind != "verify" else []))
        assert code == 0, said


@pytest.mark.parametrize("fault", FAULTS)
def test_each_way_on_leads_to_a_feed_that_goes_on(world, fault, run_command):
    happens, expected = FAULTS[fault]
    for kind in sorted(expected):
        each = world.beside(kind)
        each.push(60)
        each.answer().snapshot()
        each.backup = world.backup.with_name(kind)
        each.run("backup", each.feed, each.backup)
        each.push(ANSWERED - 60)
        each.answer()
        with pytest.raises(WorkerError) as raised:
            happens(each)
        text = str(raised.value)
        ways = ways_of(text)
        assert set(ways) == expected, text
        follow(each, kind, ways[kind])
        push(each.store, rows()[:LATER], FIRST_LATER)
        running = each.session()
        left = [
            one
            for page in each.store.pages(each.store.keys.input, running.position.cursor)
            for one in page
        ]
        drain(running, running.position.seq + len(left))
        assert running.position.cursor == f"{FIRST_LATER + LATER - 1}-0".encode()
        each.session()


@pytest.mark.parametrize("is_begun", [True, False])
def test_the_command_of_a_verdict_leads_to_a_feed_that_goes_on(world, is_begun):
    if not is_begun:
        world = world.beside("new")
    world.push(WAITING)
    _, status, _ = world.run("status", world.feed)
    (named,) = re.findall(r"online-svm (worker [\w.-]+)", status)
    program = sys.executable, "-P", "-m", "workers.cli"
    with Worker(*named.split(), "--redis", world.url, program=program) as worker:
        worker.wait_for(world.store, world.pushed)
        assert "online-svm worker" not in world.run("status", world.feed)[1]
        worker.stopped()
    assert world.run("verify", world.feed)[0] == 0
