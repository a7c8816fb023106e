"""Output that nobody reads any more: exit codes, and no traceback."""

import os
import subprocess
import sys

import pytest
from system_tools import package

from workers.cli import app as cli
from workers.push.ingest import push
from workers.push.sources import Reading, rows


@pytest.fixture
def unheard(redis_url):
    """Run a command whose output, or all it says, goes to a pipe without a reader."""

    def run(*arguments, says=True, where=True):
        reading, writing = os.pipe()
        os.close(reading)
        done = subprocess.run(
            [sys.executable, "-m", "workers.cli", *arguments, *["--redis", redis_url] * where],
            stdout=writing,
            stderr=subprocess.PIPE if says else writing,
            check=False,
            timeout=120,
        )
        os.close(writing)
        return done.returncode, done.stderr

    return run


# The last but two writes so little that it meets the closed pipe only when it has ended.
@pytest.mark.parametrize(
    "command",
    [
        ("export", "answered"), ("tail", "answered", "-n", "0", "--json"),
        ("tail", "answered", "-n", "1"), ("worker", "--help"), ("combine", "--help"),
    ],
)  # fmt: skip
def test_a_command_whose_reader_is_gone_ends_quietly_with_code_0(answered, unheard, command):
    assert unheard(*command, where="--help" not in command) == (0, b"")


@pytest.mark.parametrize("command", ["push", "verify", "export", "worker"])
def test_work_that_ends_because_nobody_reads_is_not_done(
    answered, unheard, redis_url, source, command, tmp_path
):
    if command == "export":
        package("pyarrow", "pip install 'online-svm[archive]'")
    if command == "worker":
        push(rows("Phishing", Reading()), redis_url, "unread")
    arguments = {
        "push": ["unheard", str(source)],
        "verify": [answered[0]],
        "export": [answered[0], "--to", str(tmp_path), "--json"],
        "worker": ["unread", "--classes", "true,false"],
    }[command]
    assert unheard(command, *arguments, says=False)[0] == 1


def test_an_error_that_nobody_reads_has_its_exit_code(unheard):
    assert unheard("status", "nosuch", says=False)[0] == 2


def test_a_broken_pipe_that_is_not_the_output_is_a_fault(answered, redis_url, monkeypatch):
    feed, _ = answered

    def broken(*arguments):
        raise BrokenPipeError

    monkeypatch.setattr("workers.reading.registry.require", broken)
    monkeypatch.setattr(sys, "stdout", sys.__stdout__)
    with pytest.raises(BrokenPipeError):
        cli.main(["tail", feed, "--redis", redis_url])
