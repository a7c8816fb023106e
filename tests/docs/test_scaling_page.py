"""The page on scaling prints what the simulation prints, and its table the defaults."""

import re
from pathlib import Path

import pytest

from scripts.bench.commands import app
from scripts.bench.fleet_model.fleet import Failures, Timings
from scripts.command_line import main

PAGE = (Path(__file__).parents[2] / "docs/scaling.md").read_text("utf-8")


def printed(capsys, *options):
    with pytest.raises(SystemExit) as ended:
        main(app, "bench", ["fleet-model", *options])
    assert ended.value.code == 0
    return capsys.readouterr().out


def test_the_page_shows_what_the_command_prints(capsys):
    (shown,) = re.findall(
        r"`python scripts/bench fleet-model` prints.*?\n\n```\n(.*?)```", PAGE, re.S
    )
    assert printed(capsys) == shown


ROWS = re.findall(r"^\| ([\d,]+) \| (\d+) \| ([\d.]+) millionths \| ([\d.]+) s \|$", PAGE, re.M)


@pytest.mark.slow
@pytest.mark.parametrize(("entries", "written", "mean", "longest"), ROWS)
def test_closer_snapshots_cost_and_gain_what_the_page_says(capsys, entries, written, mean, longest):
    every = int(entries.replace(",", ""))
    told = printed(capsys, "--snapshot-every", str(every))
    assert re.findall(r"mean ([\d.]+) millionths", told) == [mean]
    assert max(map(float, re.findall(r"a feed ([\d.]+) s at most", told))) == float(longest)
    assert round(100_000 / every * 1.835) == int(written)


def test_the_page_has_a_row_for_several_distances_of_snapshots():
    assert len(ROWS) >= 3


def test_the_table_of_defaults_has_those_of_the_command():
    timings = Timings()
    for option, value in {
        "start": f"{timings.start:g} s", "lease": f"{timings.lease:g} s",
        "detection": f"{timings.detection:g} s", "failover": f"{timings.failover:g} s",
        "take-over": f"{timings.take_over * 1000:g} ms",
        "snapshot-every": f"{timings.snapshot_every:,}",
        "replay-rate": f"{timings.replay_rate:,.0f} entries a second",
        "process-days": f"every {Failures().process:g} days",
        "upgrade-days": f"every {Failures().upgrade:g} days",
    }.items():  # fmt: skip
        assert re.search(rf"`--{option}` \| {re.escape(value)} \|", PAGE), option
