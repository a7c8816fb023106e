"""What the README says to type, typed."""

import os
import re
import subprocess
from pathlib import Path

from scripts.bench.commands import FIGURES as BENCHMARKS
from workers.cli import app as cli

ROOT = Path(__file__).parents[2]
README, MAKEFILE, PAGE_OF_COMMANDS, TUTORIAL = (
    (ROOT / name).read_text(encoding="utf-8")
    for name in ("README.md", "Makefile", "docs/commands.md", "docs/tutorial.md")
)
MEASURED = "".join(path.read_text(encoding="utf-8") for path in ROOT.glob("docs/*.md"))


def block_with(text):
    """Return the one code block that holds a text."""
    found = [block for block in re.findall(r"```\w*\n(.*?)```", README, re.S) if text in block]
    assert len(found) == 1
    return found[0]


def test_what_each_terminal_first_runs_finds_the_command_and_hides_no_redis(tmp_path):
    (line,) = re.findall(r"^alias .*$", TUTORIAL, re.MULTILINE)
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
    assert said[1] == f"next: phishing at {low.rstrip('.')} to {high}"


def test_calibrated_trees_follow_the_drift_as_it_says(capsys):
    block = block_with("OnlineCalibrator.from_prefit")
    exec(block, {})
    raw, live = map(float, capsys.readouterr().out.split())
    said = re.search(r"end ([\d.]+) too high, live ([\d.]+)", block)
    assert abs(raw - float(said[1])) <= 0.01
    assert abs(live - float(said[2])) <= 0.01


def test_the_readme_is_short_and_has_the_plain_commands_of_its_two_targets():
    assert README.count("\n") <= 140
    for target in ("demo", "test"):
        recipe = re.search(rf"^{target}: .*\n\t(.*)$", MAKEFILE, re.MULTILINE)[1]
        plain = recipe.replace("$(BIN)", ".venv/bin").replace(" $(ARGS)", "")
        assert f"make {target}\n```" in README
        assert f"\n{plain}\n```" in README
    for extra in re.findall(r"pip install --quiet (-e .*)$", MAKEFILE, re.MULTILINE):
        assert f"\n.venv/bin/python -m pip install {extra}\n" in README


def test_every_command_of_the_page_is_one_and_none_is_left_out():
    cells = re.findall(r"^\| (`.*?) \| ", PAGE_OF_COMMANDS, re.MULTILINE)
    named = {name for cell in cells for name in re.findall(r"`([a-z]+)[ `]", cell)}
    assert named == set(cli.COMMANDS)


def test_every_benchmark_that_is_named_is_one_and_none_is_left_out():
    named = re.findall(r"python scripts/bench ([a-z]+)", MEASURED)
    assert set(named) == set(BENCHMARKS)
