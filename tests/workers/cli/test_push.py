"""`push`: the rows of a source in their order; columns: `test_push_columns.py`."""

import time

import orjson
import pytest
from answered_feed import ROWS, phishing, push_phishing

from workers.broker.store import Store
from workers.cli import app as cli
from workers.push.sources import Reading, rows
from workers.reading.answers import newest


def test_push_sends_the_rows_in_the_order_of_the_seed(run, store, feed):
    code, out, err = run(*push_phishing(feed))
    assert (code, out) == (0, "")
    assert f"{ROWS} rows pushed to feed '{feed}'" in err
    expected = phishing()
    sent = [dict(zip(e[1][::2], e[1][1::2], strict=True))
            for e in newest(store, store.keys.input, 1000)]  # fmt: skip
    assert [orjson.loads(fields[b"x"]) for fields in sent] == [row.x for row in expected]
    assert [fields[b"y"].decode() for fields in sent] == [row.y for row in expected]


def test_push_can_leave_out_names_and_labels_and_rows(run, store, feed):
    run("push", feed, "Phishing", "--arrays", "--no-label", "--skip", "5", "--limit", "2")
    wanted = list(rows("Phishing", Reading()))[5:7]
    sent = newest(store, store.keys.input, 10)
    assert [e[1][0] for e in sent] == [b"x", b"x"]
    assert [orjson.loads(e[1][1]) for e in sent] == [list(row.x.values()) for row in wanted]
    assert [len(e[1]) for e in sent] == [2, 2]


def test_one_row_is_no_rows(run, feed):
    assert "1 row pushed to" in run("push", feed, "Phishing", "--limit", "1")[2]
    assert run("fork", feed)[2].startswith("1 entry copied; ")


def test_push_keeps_to_its_rate(run, feed):
    began = time.monotonic()
    run("push", feed, "Phishing", "--limit", "40", "--rate", "100")
    assert 0.35 < time.monotonic() - began < 5


def test_push_says_how_to_go_on_when_redis_refuses(own_redis, capsys):
    with Store(own_redis.url, "full") as store:
        used = int(store.server()["used_memory"])
        store.call("CONFIG", "SET", "maxmemory", used + 300_000)
        with pytest.raises(SystemExit) as ended:
            cli.main(["push", "full", "ImageSegments", "--redis", own_redis.url])
        stored = store.length(store.keys.input)
    told = capsys.readouterr().err
    assert ended.value.code == 1
    assert 0 < stored < 2310
    assert f"go on with --skip {stored}" in told
