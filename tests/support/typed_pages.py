"""The blocks of a Markdown page, typed one after the other as a reader would.

A page is typed in an empty folder, by a user with an embedded Redis of his own. Shell blocks (`sh`,
`console`) run in bash and Python blocks in one namespace; `toml` and `json` must parse. A command
that stays at work, such as `online-svm worker`, does so in the background until the page ends.
Before a fence may stand

    <!-- not run: needs systemd -->
    <!-- run by: tests/docs/test_backtest_page.py -->
    <!-- file: costs.toml -->
    <!-- printed by: status -->

where a block cannot run here, another test runs it, the reader saves it as a file, or a command
before it printed it, with these words, whatever the numbers are.
"""

import json
import os
import re
import signal
import subprocess
import sys
import tomllib
from contextlib import ExitStack
from dataclasses import dataclass

from processes import Process, free_port
from system_tools import package, tool
from world import wait_until

from workers.broker import embedded
from workers.broker.store import Store

STAY = re.compile(r"online-svm (worker|gateway|dashboard|scorer) |.* --follow\b")
"""Commands that end when somebody ends them."""

REDIS, PORT = "redis://localhost:6379/0", "8765"
"""What pages print for a Redis and a port; each run has its own."""

PATIENCE = 60.0  # seconds, on a machine that does much else

FENCE = re.compile(
    r"(?:^<!-- (not run|run by|file|printed by): (.+?) -->\n\n?)?^```([\w-]*)\n(.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
SHELL = {"sh", "console"}
SHOWN = {"text", "sql", "mermaid"}
"""Blocks that are read, and never typed."""


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, and the mark before it, if any, with its reason."""

    language: str
    text: str
    mark: str = ""
    reason: str = ""

    @property
    def is_run(self):
        typed = self.language in SHELL or self.language == "python"
        return self.mark in ("file", "printed by") or (typed and not self.mark)


def blocks(page):
    """Return the fenced blocks of a page, given as text."""
    return [Block(language, text, mark, reason) for mark, reason, language, text
            in FENCE.findall(page)]  # fmt: skip


def commands(text):
    """Return the lines that are typed of a shell block; a backslash joins two lines."""
    lines = text.replace("\\\n", " ").splitlines()
    if any(line.startswith("$ ") for line in lines):
        lines = [line[2:] for line in lines if line.startswith("$ ")]
    return [line for line in lines if line.strip() and not line.startswith("#")]


def words(line):
    """Return what a line says beside its numbers."""
    return re.sub(r"[+-]?[\d.,]*\d", "#", " ".join(line.split()))


def need(page):
    """Skip, with the reason, where a program or package that a page uses is missing."""
    run = "".join(block.text for block in page if block.is_run)
    if "online-svm gateway" in run:
        package("uvicorn", "pip install 'online-svm[http]'")
    if "--to " in run:
        package("pyarrow", "pip install 'online-svm[archive]'")
    if "curl " in run:
        tool("curl", "curl")


class Reader:
    """Types the blocks of one page in a folder."""

    def __init__(self, folder):
        (folder / "bin").mkdir()
        command = folder / "bin" / "online-svm"
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m workers.cli "$@"\n')
        command.chmod(0o755)
        self._folder = folder / "here"
        self._folder.mkdir(exist_ok=True)
        self._state = folder / "online-svm"
        self._environment = os.environ | {
            "PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "XDG_STATE_HOME": str(folder),
        }  # fmt: skip
        self._port, self._names = str(free_port()), {}
        self._at_work, self._opened, self._printed = [], ExitStack(), set()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        try:
            self._end_all()
        finally:
            self._opened.close()
            embedded.stop(self._state)

    def type(self, block):
        """Type a block; a command that fails, and an exception, fail the test."""
        if block.mark == "file":
            (self._folder / block.reason).write_text(block.text, "utf-8")
        elif block.mark == "printed by":
            assert {*map(words, block.text.splitlines())} <= self._printed
        elif block.language in SHELL:
            for line in commands(self._own(block.text)):
                self._enter(line)
        else:
            exec(compile(self._own(block.text), "<page>", "exec"), self._names)  # our own page

    def _own(self, text):
        """Put the server and the port of this run in the place of those that the page prints."""
        if REDIS in text:
            text = text.replace(REDIS, embedded.ensure(self._state).url)
        return text.replace(PORT, self._port)

    def _enter(self, line):
        if STAY.match(line):
            self._begin(line)
            return
        if line.startswith("online-svm redis stop"):
            self._end_all()
        done = subprocess.run(
            ["bash", "-ec", line], cwd=self._folder, env=self._environment, timeout=PATIENCE,
            capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        self._printed |= {*map(words, (done.stdout + done.stderr).splitlines())}
        if pushed := re.match(r"online-svm push (\S+)", line):
            self._wait_until_answered(pushed[1])

    def _begin(self, line):
        log = self._opened.enter_context((self._folder.parent / "log").open("a"))
        process = Process(
            ["bash", "-c", f"exec {line}"], cwd=self._folder, env=self._environment,
            stdout=log, stderr=subprocess.STDOUT,
        )  # fmt: skip
        self._at_work.append(self._opened.enter_context(process))
        named = re.match(r"online-svm worker (\w+)", line)
        if named:
            self._wait(lambda: self._state_of(named[1]) is not None, line)
        if self._port in line:
            self._wait(self._listens, line)

    def _wait(self, is_true, line):
        def is_done():
            assert all(process.poll() is None for process in self._at_work), self._said()
            return is_true()

        wait_until(is_done, PATIENCE, f"{line}\n{self._said()}", pause=0.05)

    def _said(self):
        return (self._folder.parent / "log").read_text()

    def _state_of(self, feed):
        server = embedded.running(self._state)
        if server is None:
            return None
        with Store(server.url, feed) as store:
            return store.state()

    def _listens(self):
        probe = f"exec 3<>/dev/tcp/127.0.0.1/{self._port}"
        return subprocess.run(["bash", "-c", probe], capture_output=True).returncode == 0

    def _wait_until_answered(self, feed):
        server = embedded.running(self._state)
        if server is None:
            return  # nothing was sent
        with Store(server.url, feed) as store:
            if store.call("EXISTS", store.keys.input) and self._at_work:
                newest = store.call("XREVRANGE", store.keys.input, "+", "-", "COUNT", "1")[0][0]
                self._wait(lambda: _cursor(store) == newest, f"{feed} is answered")

    def _end_all(self):
        while self._at_work:
            process = self._at_work.pop()
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE) in (0, -signal.SIGTERM), self._said()


def _cursor(store):
    state = store.state()
    return state and state.position.cursor


def parse(block):
    """Parse a block of TOML or JSON, of which a page may show an object a line."""
    if block.language == "toml":
        return tomllib.loads(block.text)
    try:
        return json.loads(block.text)
    except json.JSONDecodeError:
        return [json.loads(line) for line in block.text.splitlines()]
