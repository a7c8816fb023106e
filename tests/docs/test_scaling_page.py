"""The page on scaling prints what the simulation prints, and its table the defaults."""

import re
from pathlib import Path

import pytest

from workers.cli import app as cli

PAGE = (Path(__file__).parents[2] / "docs/scaling.md").read_text("utf-8")


def printed(capsys, *options):
    with pytest.raises(SystemExit) as ended:
        cli.main(["bench", "fleet-model", *options])
    assert ended.value.code == 0
    return capsys.readouterr().out


def test_the_page_shows_what_the_command_prints(capsys):
    (shown,) = re.findall(
        r"`online-svm bench fleet-model` prints\n.*?\n\n```\n(.*?)```", PAGE, re.S
    )
    assert printed(capsys) == shown


def test_rarer_snapshots_cost_what_the_page_says(capsys):
    told = printed(capsys, "--snapshot-every", "10000")
    mean, longest = re.findall(
        r"make the mean (\d+) millionths and the longest outage (\d+) s", PAGE
    )[0]
    assert round(float(re.findall(r"mean ([\d.]+) millionths", told)[0])) == int(mean)
    assert round(max(map(float, re.findall(r"a feed ([\d.]+) s at most", told)))) == int(longest)
