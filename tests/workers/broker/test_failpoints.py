"""Every call to Redis has its failpoints, and a worker that reaches one is gone at once."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from workers.broker import commands, failpoints, feed_reader, leases, store, streams
from workers.broker.commands import Script
from workers.broker.failpoints import CALLS, EXIT_CODE, VARIABLE, Failpoint
from workers.broker.store import Store

MODULES = (store, feed_reader, leases, streams)
"""Where a worker calls Redis, but for what it asks once a read was cut (`large_replies`)."""

RARE = {
    "blmove", "del", "exists", "expire", "hdel", "hget", "hmget", "hset", "memory", "smembers",
    "srem", "write-ids", "xack", "xgroup", "xinfo", "xpending", "xrevrange", "xtrim",
}  # fmt: skip
"""Calls of commands of people and of some workers: they have no failpoints of their own."""


def command(node):
    """Return the name of a command: a text, or a constant of `commands`."""
    return (
        node.value if isinstance(node, ast.Constant) else getattr(commands, name_of(node))
    ).lower()


def name_of(node):
    return node.id if isinstance(node, ast.Name) else node.attr


BUILT = {
    node.name: command(node.body[-1].value.elts[0])
    for node in ast.parse(Path(commands.__file__).read_text()).body
    if isinstance(node, ast.FunctionDef)
    and ast.unparse(node.returns) == "Command"
    and not node.name.startswith("_")
}
"""The commands that `commands` builds, by the name of the function."""


def calls_of(module):
    """Return the names of the failpoints of all calls to Redis in the source of a module."""
    for node in ast.walk(ast.parse(Path(module.__file__).read_text())):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        first = node.args[0] if node.args else None
        if ast.unparse(node.func.value) == "commands" and node.func.attr in BUILT:
            yield BUILT[node.func.attr]
        elif node.func.attr in ("call", "send") and (
            isinstance(first, ast.Constant) or ast.unparse(first).startswith("commands.")
        ):
            yield command(first)
        elif node.func.attr in ("evaluate", "send_script") and first.id != "script":
            yield getattr(module, first.id).name  # the others come from outside: `Store.run`


def test_every_call_to_redis_has_its_failpoints_and_no_other_is_listed():
    assert {name for module in MODULES for name in calls_of(module)} - RARE == {*CALLS}


def test_every_script_of_the_worker_has_a_name_of_its_own():
    scripts = [
        value for module in MODULES for value in vars(module).values() if isinstance(value, Script)
    ]
    assert len({script.name for script in scripts}) == len(scripts) == 11


def test_the_worker_has_no_way_to_redis_but_the_connection():
    """Whatever spoke to Redis by itself would have no failpoints."""
    package = Path(store.__file__).parents[1]
    bypassing = [
        path.name
        for path in sorted(package.rglob("*.py"))
        if not {"lab", "demo"} & set(path.parts)
        and any(
            word in path.read_text()
            for word in ("execute_command", ".send_command(", "send_packed", "redis.Redis(")
        )
    ]
    # `push` sends pipelines of its own; the embedded server is asked
    # whether it is up, any what this user may do, nodes of a cluster and sentinels where a feed is.
    # The wire is the connection's. A process of many feeds reads snapshots and quiet input ahead by
    # itself; what does not come that way is read over the connection.
    expected = {
        "embedded.py", "node_reader.py", "nodes.py", "permissions.py", "pipeline.py",
        "producer.py", "large_replies.py",
    }  # fmt: skip
    assert set(bypassing) == expected


@pytest.mark.parametrize("text", ["before-nothing", "commit", "after-commit:x", ":1"])
def test_a_failpoint_that_does_not_exist_is_refused(text):
    with pytest.raises(ValueError, match=r"failpoint|invalid literal"):
        Failpoint(text)


def test_without_a_failpoint_there_is_nothing_to_check():
    assert failpoints.chosen is None


CODE = """
import sys
from workers.broker.store import Store
with Store(sys.argv[1], sys.argv[2]) as store:
    store.call("SADD", "first", "1")
    store.call("SADD", "second", "2")
    print("alive", flush=True)
"""


@pytest.mark.parametrize(
    ("point", "written"), [("before-sadd:2", 1), ("after-sadd:2", 2), ("after-sadd", 1)]
)
def test_a_process_dies_at_its_failpoint_and_not_before(embedded_url, feed, point, written):
    with Store(embedded_url, feed) as held:
        held.call("DEL", "first", "second")
        done = subprocess.run(
            [sys.executable, "-c", CODE, embedded_url, feed],
            env=os.environ | {VARIABLE: point},
            capture_output=True,
            check=False,
        )
        assert (done.returncode, done.stdout) == (EXIT_CODE, b"")
        assert held.call("EXISTS", "first", "second") == written
