"""`verify`: the answers again, byte for byte."""

import re

import orjson
from answered_feed import ROWS, copy

from workers.broker.store import Store
from workers.reading.answers import newest


def test_a_feed_that_is_pushed_and_not_answered_is_told_from_none(run, feed, source):
    run("push", feed, str(source), "--limit", "3")
    code, _, err = run("verify", feed)
    assert (code, err) == (2, f"online-svm: feed {feed!r} has no answers yet: online-svm worker "
                              f"{feed}\n")  # fmt: skip
    assert run("export", feed)[:2] == (0, "entry\n")
    assert "\n  snapshots  none yet\n" in run("status", feed)[1]


def test_verify_finds_the_answers_identical(answered, run):
    feed, _ = answered
    code, out, _ = run("verify", feed, "--json")
    assert code == 0
    found = orjson.loads(out)
    assert found["identical"]
    assert found["answers"] == ROWS + 1


def test_verify_compares_the_whole_history_with_its_source(answered, run, source):
    feed, _ = answered
    code, out, _ = run("verify", feed, "--input", str(source))
    assert code == 0
    assert out.endswith("identical\n")
    code, out, err = run("verify", feed, "--input", str(source), "--shuffle", "1")
    assert code == 5
    assert "differ" in err
    assert out.count("\ndiffers at ") == 3
    assert re.search(r"\n\.\.\. and 1\d\d more that differ\nNOT identical\n$", out)


def test_verify_ends_with_code_5_where_an_answer_is_gone(answered, run, redis_url, feed):
    copy(redis_url, answered[0], feed, "state", "input", "out", "met", "dlq")
    with Store(redis_url, feed) as store:
        store.call("HSET", store.keys.state, "snapshot", "", "previous", "")
        last = newest(store, store.keys.out, 1)[0][0]
        store.call("XDEL", store.keys.out, last)
    code, _, err = run("verify", feed)
    assert code == 5
    assert last.decode() in err
