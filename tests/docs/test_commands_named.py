"""Every command that a document, a message or a file of deploy/ names exists."""

import re
import subprocess
from pathlib import Path

from workers.cli.app import COMMANDS

ROOT = Path(__file__).parents[2]
PROSE = {"authors", "bench", "below", "feed", "in", "needs", "says", "with"}
"""Words that follow the name of the project in sentences; `bench` was a command once."""


def texts():
    listed = ["git", "-C", str(ROOT), "ls-files", "-z"]
    tracked = subprocess.run(listed, check=True, capture_output=True, text=True).stdout
    for path in filter(None, tracked.split("\0")):
        if (ROOT / path).is_file():
            yield path, (ROOT / path).read_bytes().decode("utf-8", "replace")


def test_each_text_names_commands_that_there_are():
    wrong = [
        f"{path}: {line.strip()}"
        for path, text in texts()
        for line in text.splitlines()
        if "kubectl" not in line
        for word in re.findall(r"online-svm ([a-z]+)\b(?![-:@/])", line)
        if word not in {*COMMANDS, *PROSE}
    ]
    assert wrong == []
