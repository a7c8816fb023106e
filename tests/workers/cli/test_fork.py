"""`fork`: the kept input under the same IDs."""

from answered_feed import ROWS, copy

from workers.broker.store import Store
from workers.reading.answers import newest


def test_fork_copies_the_input_under_the_same_ids(answered, run, redis_url):
    feed, _ = answered
    code, out, err = run("fork", feed)
    assert (code, out) == (0, f"{feed}-2\n")
    assert f"online-svm worker {feed}-2" in err
    with Store(redis_url, feed) as store, Store(redis_url, f"{feed}-2") as forked:
        assert newest(forked, forked.keys.input, 1000) == newest(store, store.keys.input, 1000)
    code, _, err = run("fork", f"{feed}-2", "--to", feed)
    assert code == 2
    assert "exists" in err


def test_fork_of_a_trimmed_feed_begins_with_what_is_kept_and_says_so(
    run, redis_url, answered, feed
):
    copy(redis_url, answered[0], feed, "state", "input")
    with Store(redis_url, feed) as store:
        store.call("XTRIM", store.keys.input, "MAXLEN", 10)
    code, _, err = run("fork", feed)
    assert code == 0
    assert err.startswith(
        f"10 entries copied; the new feed begins with these, as {ROWS - 9} older ones were "
        "answered and trimmed; to answer: "
    )
