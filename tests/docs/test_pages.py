"""Every block of every page is typed, in its order, or has a mark that says why it is not.

A page is typed in an empty folder, with an embedded Redis of its own. Shell blocks run in bash and
Python blocks in one namespace; `toml` and `json` must parse. A command that stays at work does so
in the background until the page ends, or until a line `# Ctrl-C`. Before a fence may stand
`<!-- not run: REASON -->`, `<!-- run by: TEST -->`, `<!-- file: NAME -->` (the reader saves it), or
`<!-- printed by: COMMAND -->` (a command before it printed these lines, with these numbers). What a
comment behind a `print` of Python says begins with what that printed, or has all its numbers.
"""

import csv
import difflib
import io
import json
import os
import random
import re
import signal
import subprocess
import sys
import tomllib
from contextlib import ExitStack, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest
from processes import Process, free_port
from system_tools import package, tool
from world import wait_until

from workers.broker import embedded
from workers.broker.store import Store

STAY = re.compile(r"online-svm (worker|gateway|dashboard) |.* --follow\b")
"""Commands that end when somebody ends them."""

STOP = re.compile(r"# Ctrl-C\b|online-svm redis stop")
"""Lines before which those commands are ended."""

REDIS, PORT = "redis://localhost:6379/0", "8765"
"""What pages print for a Redis and a port; each run has its own."""

PATIENCE = 200.0  # seconds, on a machine that does much else

FENCE = re.compile(
    r"(?:^<!-- (not run|run by|file|printed by): (.+?) -->\n\n?)?^```([\w-]*)\n(.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
SHELL = {"sh", "console"}
SHOWN = {"text", "sql", "mermaid", "pycon"}
"""Blocks that are read, and never typed; `make doctest` runs the examples of docstrings."""


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
    return [Block(language, text, mark, reason) for mark, reason, language, text
            in FENCE.findall(page)]  # fmt: skip


def commands(text):
    """Return the lines that are typed of a shell block; a backslash joins two lines."""
    lines = text.replace("\\\n", " ").splitlines()
    if any(line.startswith("$ ") for line in lines):
        lines = [line[2:] for line in lines if line.startswith("$ ")]
    return [line for line in lines if line.strip() and (line[:1] != "#" or STOP.match(line))]


DATE = re.compile(r"\([A-Z][a-z]{2} 20\d\d-\d\d-\d\d \d\d:\d\d UTC\)")


def words(line):
    """Return a line with single blanks, without the time at which its example was learned."""
    return " ".join(DATE.sub("(DATE)", line).split())


def missing(shown, printed):
    """Return the lines of a page that no command printed, each with the most similar one."""
    lines = [*map(words, shown.splitlines())]
    return {
        line: difflib.get_close_matches(line, printed, 1, 0.5)
        for line in lines if line not in printed
    }  # fmt: skip


def numbers(text):
    """Return the numbers of a text: a decimal without a digit behind its point is whole."""
    return re.findall(r"-?\d+(?:\.\d+)?", text)


def promised(text):
    """Return what the comments of a block say that its prints print, in order."""
    return [
        said for line in text.splitlines()
        if line.lstrip().startswith("print(") and numbers(said := line.partition("  # ")[2])
    ]  # fmt: skip


def need(page):
    """Skip, with the reason, where a program or package that a page uses is missing."""
    run = "".join(block.text for block in page if block.is_run)
    if "online-svm gateway" in run:
        package("uvicorn", "pip install 'online-svm[http]'")
    if ".parquet" in run:
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
            assert not missing(block.text, self._printed)
        elif block.language in SHELL:
            for line in commands(self._own(block.text)):
                self._enter(line)
        else:
            out = io.StringIO()
            with redirect_stdout(out):
                exec(compile(self._own(block.text), "<page>", "exec"), self._names)  # our own page
            said = [number for each in promised(block.text) for number in numbers(each)]
            assert said == numbers(out.getvalue())[: len(said)], out.getvalue()

    def _own(self, text):
        """Put the server and the port of this run in the place of those that the page prints."""
        if REDIS in text:
            text = text.replace(REDIS, embedded.ensure(self._state).url)
        return text.replace(PORT, self._port)

    def _enter(self, line):
        if STAY.match(line):
            self._begin(line)
            return
        if STOP.match(line):
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


ROOT = Path(__file__).parents[2]
PAGES = {
    path.relative_to(ROOT).as_posix(): blocks(path.read_text("utf-8"))
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/**/*.md"))]
}
TYPED = [name for name, page in PAGES.items() if any(block.is_run for block in page)]


def applications(folder):
    """Write the tables that pages push: 600 applications, the outcome of the last 40 not known."""
    made, names = random.Random(0), ["number", "applied", "country", "purpose", "amount", "outcome"]
    rows = []
    for i in range(600):
        purpose, country = made.choice(["car", "flat", "trip"]), made.choice(["DE", "FR", ""])
        risk = 1.5 * (purpose == "trip") - (country == "DE") + made.gauss(0, 0.5)
        applied = f"2024-{1 + i // 120:02}-{1 + i % 28:02} 09:{i % 60:02}"
        amount = f"{made.lognormvariate(8, 1):.2f}"
        rows.append(
            [f"A{i:04}", applied, country, purpose, amount, ["paid", "default"][risk > 0.5]]
        )
    tables = {
        "loans.csv": (names, [[*row[:5], row[5] if i < 560 else ""] for i, row in enumerate(rows)]),
        "new.csv": (names[:5], [row[:5] for row in rows[-20:]]),
        "outcomes.csv": (["number", "outcome"], [[row[0], row[5]] for row in rows[560:]]),
    }
    for name, (head, body) in tables.items():
        with (folder / name).open("w", newline="", encoding="utf-8") as table:
            csv.writer(table).writerows([head, *body])


@pytest.mark.slow
@pytest.mark.timeout(900)  # a dozen commands a page, each of which imports the library
@pytest.mark.parametrize("name", TYPED)
def test_what_a_page_says_to_type_can_be_typed(name, tmp_path, monkeypatch):
    need(PAGES[name])
    with Reader(tmp_path) as reader:
        monkeypatch.chdir(tmp_path / "here")
        applications(tmp_path / "here")
        for block in PAGES[name]:
            if block.is_run:
                reader.type(block)


@pytest.mark.parametrize("name", PAGES)
def test_every_block_is_typed_or_parses_or_says_why_not(name):
    for block in PAGES[name]:
        if block.mark == "run by":
            assert (ROOT / block.reason).exists()
        elif block.language in ("toml", "json"):
            assert parse(block)
        elif not block.mark:
            assert block.language in SHELL | SHOWN | {"python"}, block.text
    text = (ROOT / name).read_text("utf-8")
    assert len(PAGES[name]) == len(re.findall(r"^```\w*$", text, re.MULTILINE)) / 2


def test_most_pages_have_something_to_type():
    assert len(TYPED) > 5


def test_another_number_is_another_line():
    printed = {"right 0.915 of [0.365, 0.809]", "3 rows"}
    assert not missing("  right 0.915 of  [0.365, 0.809]\n3 rows\n", printed)
    assert [*missing("right 0.915 of [0.420, 0.809]\n", printed).values()] == [
        ["right 0.915 of [0.365, 0.809]"]
    ]


def test_the_numbers_behind_a_print_are_compared(tmp_path):
    with Reader(tmp_path) as reader:
        reader.type(Block("python", "print(0, 1.18)  # from 0 to 1.18\n"))
        with pytest.raises(AssertionError):
            reader.type(Block("python", "print(1.18)  # 1.19 at most\n"))
