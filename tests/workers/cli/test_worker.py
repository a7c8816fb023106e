"""The page beside a worker: a process of its own that ends with it."""

import os
import re
import signal
import sys
import urllib.request

import pytest
from processes import LIMIT, Process
from world import wait_until

from workers.cli.worker import page_process

BEGIN = (
    "import sys, time\nfrom workers.cli.worker import page_process\n"
    "with page_process(['mail'], sys.argv[1], 0):\n    time.sleep(60)\n"
)


def link_in(lines):
    """Return the address that the page tells."""
    for line in lines:
        if found := re.search(rb"the page is at (http://[^ ]+/)", line):
            return found[1].decode()
    raise AssertionError("the page did not say where it is")


def is_there(link):
    try:
        with urllib.request.urlopen(link, timeout=LIMIT) as reply:
            return b"online-svm" in reply.read()
    except OSError:
        return False


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_the_page_ends_with_the_process_that_began_it_even_if_that_is_killed(embedded_url, number):
    command = [sys.executable, "-c", BEGIN, embedded_url]
    with Process(command, stderr=-1) as begun:
        link = link_in(begun.stderr)
        assert is_there(link)
        begun.send_signal(number)
        begun.wait()
        wait_until(lambda: not is_there(link), pause=0.1)
        begun.stderr.close()


def test_no_list_of_processes_shows_the_password_of_redis(monkeypatch, tmp_path):
    """What the page was begun with is told by a program that stands in for Python."""
    told = tmp_path / "told"
    stand_in = tmp_path / "python"
    stand_in.write_text(f'#!/bin/sh\n{{ echo "$@"; env; }} > {told}\n')
    stand_in.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(stand_in))
    monkeypatch.setitem(os.environ, "ONLINE_SVM_REDIS_PASSWORD_FILE", "/run/secrets/redis")
    with page_process(["mail"], "redis://:secret@host/0", 5006):
        pass
    command, *environment = told.read_text().splitlines()
    assert "secret" not in command
    assert [line for line in environment if line.startswith("ONLINE_SVM_")] == [
        "ONLINE_SVM_REDIS=redis://:secret@host/0"
    ]
