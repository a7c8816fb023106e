"""`bench fleet-model`, as a person runs it."""

import json

import pytest

from scripts.bench.commands import app
from scripts.command_line import main

SMALL = ["--feeds", "30", "--shards", "3", "--machines", "2", "--redis", "2", "--rate", "300",
         "--days", "200"]  # fmt: skip


@pytest.fixture
def ran(capsys):
    """Run the command; return its exit code, what it printed, and what it complained of."""

    def invoke(*options):
        with pytest.raises(SystemExit) as ended:
            main(app, "bench", ["fleet-model", *SMALL, *options])
        told = capsys.readouterr()
        return ended.value.code, told.out, told.err

    return invoke


def test_it_prints_the_same_bytes_for_the_same_seed_and_others_for_another(ran):
    first, again, other = ran(), ran(), ran("--seed", "1")
    assert first[0] == 0, first
    assert first == again != other


def test_it_prints_the_share_of_each_feed_as_json(ran):
    told = [json.loads(line) for line in ran("--json")[1].splitlines()]
    causes = [line["share"] for line in told if "cause" in line]
    shares = [line["share"] for line in told if "feed" in line]
    assert [line["feed"] for line in told if "feed" in line] == list(range(30))
    assert sum(causes) == pytest.approx(sum(shares) / 30)
    assert min(shares) > 0


def test_processes_that_cannot_answer_what_comes_are_refused(ran):
    code, printed, complaint = ran("--rate", "1e6")
    assert (code, printed) == (2, "")
    assert "give more of them" in complaint
