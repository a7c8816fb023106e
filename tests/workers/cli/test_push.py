"""`push`: rows in their order, and labels of earlier ones; columns: `test_push_columns.py`."""

import re
import time

import orjson
import pytest
from answered_feed import ROWS, phishing, push_phishing
from late_feed import flat, history, settings
from shipped_redis import PROGRAMS
from world import drain, push, session

from workers.broker import embedded
from workers.broker.store import Store
from workers.cli.stream_text import line
from workers.push.sources import Reading, rows


def test_push_sends_the_rows_in_the_order_of_the_seed(run, store, feed):
    code, out, err = run(*push_phishing(feed))
    assert (code, out) == (0, "")
    assert f"{ROWS} rows pushed to feed '{feed}'" in err
    expected = phishing()
    sent = [dict(zip(e[1][::2], e[1][1::2], strict=True))
            for e in store.last_entries(store.keys.input, 1000)]  # fmt: skip
    assert [orjson.loads(fields[b"x"]) for fields in sent] == [row.x for row in expected]
    assert [fields[b"y"].decode() for fields in sent] == [row.y for row in expected]


def test_push_can_leave_out_names_and_labels_and_rows(run, store, feed):
    run("push", feed, "Phishing", "--arrays", "--no-label", "--skip", "5", "--limit", "2")
    wanted = list(rows("Phishing", Reading()))[5:7]
    sent = store.last_entries(store.keys.input, 10)
    assert [e[1][0] for e in sent] == [b"x", b"x"]
    assert [orjson.loads(e[1][1]) for e in sent] == [list(row.x.values()) for row in wanted]
    assert [len(e[1]) for e in sent] == [2, 2]


def test_push_keeps_to_its_rate(run, feed):
    began = time.monotonic()
    run("push", feed, "Phishing", "--limit", "40", "--rate", "100")
    assert 0.35 < time.monotonic() - began < 30


@pytest.mark.parametrize("kind", ["embedded", "oldest"])
def test_push_says_how_to_go_on_when_redis_refuses(kind, run_command):
    """Redis may take rows in between, as it frees memory."""
    with embedded.temporary(PROGRAMS[kind]()) as server, Store(server.url, "full") as store:
        push = ("push", "full", "ImageSegments", "--redis", server.url)
        used = int(store.server()["used_memory"])
        store.call("CONFIG", "SET", "maxmemory", used + 300_000)
        code, _, told = run_command(*push)
        stored = store.length(store.keys.input)
        assert code == 1
        assert 0 < stored < 2310
        ways = re.findall(r"--skip \d+(?: --limit \d+)?", told)
        store.call("CONFIG", "SET", "maxmemory", 0)
        for way in ways:
            assert run_command(*push, *way.split())[0] == 0
        assert run_command("push", "whole", *push[2:])[0] == 0
        pushed, whole = (
            sorted(fields for _, fields in store.call("XRANGE", f"osvm:{{{name}}}:in", "-", "+"))
            for name in ("full", "whole")
        )
        assert pushed == whole


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("labels.csv", "when,tx,kind\n2026-11-22,t1,spam\n2026-11-23,t2,ham\n"),
        ("labels.jsonl", '{"tx":"t1","kind":"spam","note":"x"}\n{"tx":"t2","kind":"ham"}\n'),
    ],
)
def test_labels_are_pushed_by_the_id_of_their_example(run, store, feed, tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)
    code, _, err = run("push", feed, "--labels", path, "--id", "tx", "--label", "kind")
    assert (code, err.splitlines()[-1].startswith("2 labels pushed")) == (0, True)
    sent = [fields for _, fields in store.last_entries(store.keys.input, 10)]
    assert sent == [[b"for", b"t1", b"y", b"spam"], [b"for", b"t2", b"y", b"ham"]]
    # A row without a label is refused before its chunk is sent.
    path.write_text("tx,kind\nt1,spam\nt2,\n")
    code, _, err = run("push", feed, "--labels", path, "--id", "tx", "--format", "csv")
    assert (code, "a row has no label" in err) == (2, True)
    assert store.length(store.keys.input) == 2


def test_a_combination_of_a_feed_with_late_labels_is_refused_in_one_line(run, redis_url, feed):
    entries = flat(history(20))
    with Store(redis_url, feed) as store:
        push(store, entries)
        drain(session(store, 16, settings()), len(entries))
    code, _, err = run("combine", feed, feed + "-other", "--into", feed + "-both")
    assert (code, "a combination learns labels that come with their examples" in err) == (2, True)


def test_what_is_said_of_late_labels():
    said = b'{"v":2,"status":"label","seq":9,"n":3,"example":"t1","label":"spam","done":"accepted"}'
    assert line(said) == "         9  label: spam of id 't1' accepted"
