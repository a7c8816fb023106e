"""What the README says to type, typed."""

import os
import re
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from processes import Process
from world import Worker, wait_until

from scripts.bench.commands import MODULES as BENCHMARKS
from workers.broker import embedded
from workers.cli import app as cli

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
PATIENCE = 120  # seconds, for a machine that does much else


def block_with(text):
    """Return the one code block that holds a text."""
    found = [block for block in re.findall(r"```\w*\n(.*?)```", README, re.S) if text in block]
    assert len(found) == 1
    return found[0]


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """The environment of a new user, in which `online-svm` is the command of these sources."""
    home = tmp_path_factory.mktemp("home")
    command = home / "online-svm"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m workers.cli "$@"\n')
    command.chmod(0o755)
    kept = {name: text for name, text in os.environ.items() if not name.startswith("ONLINE_SVM_")}
    return kept | {"PATH": f"{home}:{os.environ['PATH']}", "HOME": str(home)}


def shell(line, environment, **more):
    return Process(["bash", "-c", f"exec {line}"], env=environment, text=True, **more)


def said_by(line, environment):
    """Return what a line says on standard output; it must end with 0."""
    with shell(line, environment, stdout=subprocess.PIPE) as process:
        out, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    return out


def test_what_each_terminal_first_runs_finds_the_command_and_hides_no_redis(tmp_path):
    (line,) = re.findall(r"in each of them first run `(.*?)`", README)
    here, system = tmp_path / "a clone", tmp_path / "bin"
    for program in (
        *(here / ".venv/bin/online-svm", here / ".venv/bin/redis-server"),
        *(system / "online-svm", system / "redis-server"),
    ):
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(f'#!/bin/sh\necho "{program}"\n')
        program.chmod(0o755)
    typed = f"shopt -s expand_aliases\n{line}\nonline-svm\nredis-server"
    path = {"PATH": f"{system}:{os.environ['PATH']}"}
    told = subprocess.check_output(["bash", "-c", typed], cwd=here, env=path, text=True)
    assert told.splitlines() == [f"{here}/.venv/bin/online-svm", f"{system}/redis-server"]


@pytest.mark.slow
def test_the_first_real_use_goes_as_the_readme_says(environment, tmp_path):
    environment = environment | {"XDG_STATE_HOME": str(tmp_path)}
    work, push, tail = block_with("online-svm worker web").splitlines()
    assert "`online-svm status web` then says `1,250 learned`" in README
    (recent,) = re.findall(r"`(over the last [\d,]+ scored)`", README)
    covered = re.search(r"`over ([\d,]+) scored of the\s+first ([\d,]+) learned`", README)

    def status():
        return said_by("online-svm status web", environment)

    with ExitStack() as opened:
        opened.callback(said_by, "online-svm redis stop", environment)
        worker = opened.enter_context(shell(work, environment, stderr=subprocess.DEVNULL))
        said_by(push.replace("--rate 100", "--rate 1000"), environment)
        quiet = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        follower = opened.enter_context(shell(tail, environment, **quiet))
        assert any("  exact" in answer for answer in follower.stdout)  # after the warm-up
        wait_until(lambda: "1,250 learned" in status(), PATIENCE, pause=0.5)
        said = status()
        assert recent in said
        assert f"over {covered[1]} scored of the first {covered[2]} learned" in said
        follower.send_signal(signal.SIGTERM)
        assert follower.wait(PATIENCE) == -signal.SIGTERM  # 143 in a shell
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(PATIENCE) == 0


def test_ten_lines_learn_online_and_print_what_they_say(capsys):
    block = block_with("OnlineClassifier()")
    assert README.index(block) == README.index("```python\n") + len("```python\n")
    lines = [line for line in block.splitlines() if line]
    assert len(lines) == 10
    exec(block, {})
    right, interval = capsys.readouterr().out.split("\n", 1)
    said = [line.partition("  # ")[2] for line in lines if line.startswith("print")]
    assert said[0] == f"{right} of the answers were right"
    low, high = interval.strip(" []\n").split()
    assert said[1] == f"the next one is phishing: {low.rstrip('.')} to {high}"


def test_the_example_in_process_runs():
    made = {}
    exec(block_with("OnlinePredictor(PredictorConfig"), made)
    assert made["prediction"].probability is None
    assert isinstance(made["state"], bytes)


def test_the_client_of_any_redis_gets_its_answer(capsys):
    block = block_with("r.xadd(")
    assert '"redis://localhost:6379/0"' in block
    with embedded.temporary() as server, Worker("worker", "mail", "--redis", server.url):
        exec(block.replace("redis://localhost:6379/0", server.url), {})
    assert capsys.readouterr().out.startswith("warming up")


def test_every_command_of_the_readme_is_one_and_none_is_left_out():
    table = README[README.index("## Commands") : README.index("Exit codes:")]
    typed = set(re.findall(r"`online-svm ([a-z]+)", README))
    assert typed <= set(cli.COMMANDS)
    assert set(cli.COMMANDS) - typed <= set(re.findall(r"`([a-z]+)[ `]", table))


def test_every_benchmark_of_the_readme_is_one_and_none_is_left_out():
    table = README[README.index("## Benchmarks") : README.index("## Data")]
    rows = re.findall(r"^\| (`.*?) \|", table, re.M)
    named = {name for row in rows for name in re.findall(r"`(.*?)`", row)}
    assert named == set(BENCHMARKS)
