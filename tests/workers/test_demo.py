"""The demonstration, run as a user runs it."""

import re
import subprocess
import sys
from pathlib import Path

from workers.demo.feeds import Plan, Progress
from workers.demo.view import line


def processes_that_mention(text: str) -> list[str]:
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    return [line for line in listed.stdout.splitlines() if text in line]


def test_the_demo_answers_two_feeds_draws_the_curves_and_leaves_nothing(tmp_path: Path) -> None:
    picture = tmp_path / "curves.png"
    command = [sys.executable, "-m", "workers.cli", "demo", "--picture", str(picture)]
    ran = subprocess.run(
        [*command, "--speed", "20"], capture_output=True, text=True, timeout=240, check=False
    )
    assert ran.returncode == 0, ran.stderr
    said = " ".join(ran.stdout.split())  # lines wrap at the terminal's width
    assert "1,250 examples answered" in said
    assert "2,310 examples answered" in said
    assert "◆ accuracy so far █ probability announced so far" in said
    assert picture.read_bytes().startswith(b"\x89PNG")
    server = re.search(r"unix://(\S+)/redis\.sock", said)
    assert server is not None
    assert not Path(server[1]).exists()
    # The server and both workers were started with this directory in their arguments.
    assert processes_that_mention(server[1]) == []


def test_the_workers_of_the_demonstration_do_not_see_the_settings_of_the_user(monkeypatch):
    from workers.demo.run import _without_settings

    monkeypatch.setenv("ONLINE_SVM_REDIS_PASSWORD_FILE", "/nowhere")
    monkeypatch.setenv("XDG_STATE_HOME", "/tmp")
    left = _without_settings()
    assert left["XDG_STATE_HOME"] == "/tmp"
    assert not any(name.startswith("ONLINE_SVM_") for name in left)


def test_a_plain_line_claims_no_accuracy_within_the_bounds():
    own = {"accuracy": 0.872, "lower": 0.847, "upper": 0.869}
    feed = Progress(Plan("f", "", "", 1.0), total=200, answered=100)
    assert line(feed) == "f: 100 of 200 answered"
    feed.reports.append({"venn": {"predicted": own}})
    assert line(feed).endswith(", accuracy 0.872, announced [0.847, 0.869]")
