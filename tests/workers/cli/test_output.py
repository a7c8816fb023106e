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
def redis_url(answered_url):
    """The server of the answered feed: what differs between servers is below the commands."""
    return answered_url


@pytest.fixture
def run(run_command, redis_url):
    """Run a command on the test's Redis; return exit code, standard output, standard error."""
    return lambda *arguments: run_command(*arguments, "--redis", redis_url)


# The last one writes so little that it meets the closed pipe only when it has ended.
@pytest.mark.parametrize(
    "command", [("export",), ("tail", "-n", "0", "--json"), ("tail", "-n", "1")]
)
def test_a_command_whose_reader_is_gone_ends_quietly_with_code_0(answered, redis_url, command):
    feed, _ = answered
    reading, writing = os.pipe()
    os.close(reading)
    arguments = [command[0], feed, *command[1:], "--redis", redis_url]
    done = subprocess.run(
        [sys.executable, "-m", "workers.cli", *arguments],
        stdout=writing,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("command", ["push", "verify", "export"])
def test_work_that_ends_because_nobody_reads_is_not_done(
    answered, redis_url, source, command, tmp_path
):
    if command == "export":
        package("pyarrow", "pip install 'online-svm[archive]'")
    reading, writing = os.pipe()
    os.close(reading)
    arguments = {
        "push": ["push", "unheard", str(source)],
        "verify": ["verify", answered[0]],
        "export": ["export", answered[0], "--to", str(tmp_path), "--json"],
    }[command]
    done = subprocess.run(
        [sys.executable, "-m", "workers.cli", *arguments, "--redis", redis_url],
        stdout=writing,
        stderr=writing,
        check=False,
        timeout=120,
    )
    os.close(writing)
    assert done.returncode == 1


def test_a_worker_whose_log_is_read_no_more_does_not_end_as_if_it_were_done(redis_url):
    reading, writing = os.pipe()
    os.close(reading)
    push(rows("Phishing", Reading()), redis_url, "unread")
    arguments = ["unread", "--redis", redis_url, "--classes", "true,false"]
    done = subprocess.run(
        [sys.executable, "-m", "workers.cli", "worker", *arguments],
        stdout=writing,
        stderr=writing,
        check=False,
        timeout=120,
    )
    os.close(writing)
    assert done.returncode == 1


def test_an_error_that_nobody_reads_has_its_exit_code(redis_url):
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "workers.cli", "status", "nosuch", "--redis", redis_url],
        stdout=writing,
        stderr=writing,
        check=False,
    )
    os.close(writing)
    assert done.returncode == 2


def test_a_broken_pipe_that_is_not_the_output_is_a_fault(answered, redis_url, monkeypatch):
    feed, _ = answered

    def broken(*arguments):
        raise BrokenPipeError

    monkeypatch.setattr("workers.reading.registry.require", broken)
    monkeypatch.setattr(sys, "stdout", sys.__stdout__)
    with pytest.raises(BrokenPipeError):
        cli.main(["tail", feed, "--redis", redis_url])
