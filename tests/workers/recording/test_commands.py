"""Every command that reads a feed reads its file in the same way, without Redis."""

import json

import pytest
from recorded_feed import KEPT, answering, entry, push

from workers.recording.backup import backup


@pytest.fixture
def recorded(embedded_url, feed, tmp_path):
    """A feed with 100 answers, and its file."""
    with answering(embedded_url, feed, **KEPT) as (store, answer, session):
        push(store, 0, 100)
        answer()
        session.snapshot()
        backup(store, tmp_path / "feed.sqlite")
        yield store, str(tmp_path / "feed.sqlite")


@pytest.fixture
def run(run_command, recorded):
    """Return what a command prints of the feed, and what it prints of the file."""
    store, file = recorded

    def both(command, *arguments):
        of_feed = run_command(command, store.keys.feed, *arguments, "--redis", store.url)
        of_file = run_command(command, file, *arguments, "--redis", "redis://127.0.0.1:1")
        return of_feed, of_file

    return both


@pytest.mark.parametrize(
    "command",
    [
        ("explain", entry(70)[0], "--json"), ("explain", "id-31", "--json"), ("export",),
        ("export", "-", "--features"),
        ("backtest", "--set", "other:C=2", "--processes", "1", "--json"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_what_a_command_says_of_the_file_is_what_it_says_of_the_feed(run, command):
    of_feed, of_file = run(*command)
    assert of_feed[0] == of_file[0] == 0, of_file
    if command[0] == "explain":
        found = [json.loads(out) for _, out, _ in (of_feed, of_file)]
        for each in found:
            del each["from_seq"], each["replayed"]
        assert found[0] == found[1]
        assert found[1]["is_identical"]
    elif command[0] == "backtest":
        results = [list(map(json.loads, out.splitlines())) for _, out, _ in (of_feed, of_file)]
        for each in results[0] + results[1]:
            del each["microseconds"]
        assert results[0] == results[1]
        assert "100 entries" in of_file[2]
    else:
        assert of_feed[1] == of_file[1]


def test_a_report_of_the_file_is_that_of_the_feed(run_command, recorded, tmp_path):
    store, file = recorded
    last = ("--redis", store.url)
    told = [
        run_command("report", source, "--out", tmp_path / f"{i}.html", "--json", *last)
        for i, source in enumerate((store.keys.feed, file))
    ]
    assert [code for code, *_ in told] == [0, 0], told
    summaries = [json.loads(out)["facts"] for _, out, _ in told]
    assert summaries[0] == summaries[1]
    code, out, _ = run_command("report", store.keys.feed, "--against", file, "--json", *last)
    assert code == 0
    assert json.loads(out)["compared"] == 80


def test_a_fork_of_the_file_is_that_of_the_feed_and_verify_needs_no_redis(run_command, recorded):
    store, file = recorded
    name = f"{store.keys.feed}-copy"
    code, out, err = run_command("fork", file, "--to", name, "--redis", store.url)
    assert (code, out) == (0, f"{name}\n"), err
    assert "100 entries copied; to answer: online-svm worker" in err
    code, out, _ = run_command("verify", file)
    assert (code, out.splitlines()[-1]) == (0, "identical")
    code, out, _ = run_command("verify", file, "--json")
    assert json.loads(out)["answers"] == 100


def test_of_the_erased_nothing_is_left_and_the_command_says_how_much(run_command, recorded):
    store, file = recorded
    last = ("--yes", "--redis", store.url)
    code, _, err = run_command("erase", store.keys.feed, "--id", "id-50", "--file", file, *last)
    assert (code, "1 entry of" in err, "2 rows of the recording" in err) == (0, True, True), err
    code, out, _ = run_command("erase", file, "--id", "id-51", "--yes", "--json")
    assert (code, json.loads(out)["rows"]) == (0, 2)
    code, out, _ = run_command("verify", file)
    assert (code, "2 entries erased: not recomputable; 98 answers before that" in out) == (0, True)
