"""`push`: rows in their order, and labels of earlier ones; columns: `test_push_columns.py`."""

import re

import orjson
import pytest
from answered_feed import ROWS, SEED, phishing
from shipped_redis import PROGRAMS
from world import work

from workers.broker import embedded
from workers.broker.store import Store
from workers.cli.stream_text import line
from workers.push.sources import Reading, rows


def test_push_sends_the_rows_in_the_order_of_the_seed(run, store, feed):
    code, out, err = run("push", feed, "Phishing", "--shuffle", SEED, "--limit", ROWS)
    assert (code, out) == (0, "")
    assert f"{ROWS} rows pushed to feed '{feed}'" in err
    expected = phishing()
    sent = [dict(zip(e[1][::2], e[1][1::2], strict=True))
            for e in store.last_entries(store.keys.input, 1000)]  # fmt: skip
    assert [orjson.loads(fields[b"x"]) for fields in sent] == [row.x for row in expected]
    assert [fields[b"y"].decode() for fields in sent] == [row.y for row in expected]


def test_push_can_leave_out_labels_and_rows(run, store, feed):
    run("push", feed, "Phishing", "--no-label", "--skip", "5", "--limit", "2")
    wanted = list(rows("Phishing", Reading()))[5:7]
    sent = store.last_entries(store.keys.input, 10)
    assert [e[1][0] for e in sent] == [b"x", b"x"]
    assert [orjson.loads(e[1][1]) for e in sent] == [row.x for row in wanted]
    assert [len(e[1]) for e in sent] == [2, 2]


def test_probabilities_of_entries_are_pushed_and_read_alike_by_verify(
    run, redis_url, store, feed, tmp_path
):
    path = tmp_path / "doubts.jsonl"
    path.write_text(
        '{"x":{"u":1},"y":"ill"}\n{"x":{"u":2},"p":0.25}\n{"x":{"u":3},"y":"healthy"}\n'
    )
    assert run("push", feed, path)[0] == 0
    sent = [fields[2:] for _, fields in store.last_entries(store.keys.input, 10)]
    assert sent == [[b"y", b"ill"], [b"p", b"0.25"], [b"y", b"healthy"]]
    work(redis_url, feed, {"classes": "healthy,ill", "learner": "psvm"}, 3)
    assert run("verify", feed, "--input", path)[0] == 0


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
    # A row without a label is an outcome that is open: it is left out, and counted.
    path.write_text("tx,kind\nt1,spam\nt2,\n")
    code, _, err = run("push", feed, "--labels", path, "--id", "tx", "--format", "csv")
    assert (code, "1 row without a label, as the outcome is open" in err) == (0, True)
    assert store.length(store.keys.input) == 3


def test_what_is_said_of_late_labels():
    said = b'{"v":2,"status":"label","seq":9,"n":3,"example":"t1","label":"spam","done":"accepted"}'
    assert line(said) == "         9  label: spam of id 't1' accepted"
