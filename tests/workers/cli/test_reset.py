"""`reset`: a feed begun anew, and one that is gone."""

from answered_feed import ROWS, SETTINGS, copy
from world import work

from workers.reading.registry import names


def test_a_feed_of_which_nothing_is_left_is_listed_no_more(run, store, feed):
    store.register()
    store.call("XADD", store.keys.out, "*", "p", "{}")
    assert run("reset", feed, "--yes")[0] == 0
    assert feed not in names(store)


def test_a_feed_that_was_pushed_and_reset_stays_listed_with_its_input(run, store, feed, source):
    run("push", feed, str(source), "--limit", "3")
    assert run("reset", feed, "--yes")[0] == 0
    assert feed in names(store)
    assert run("reset", feed, "--yes", "--input")[0] == 0
    assert feed not in names(store)


def test_a_feed_that_was_reset_is_answered_again_byte_for_byte(
    answered, run, redis_url, feed, store, tmp_path
):
    copy(redis_url, answered[0], feed, "state", "input", "out", "met", "dlq")
    before = store.state().position
    store.call("SET", store.keys.snapshot(1, "ab" * 32), "of the old state")
    assert run("reset", feed, "--yes")[0] == 0
    assert set(store.types()) == {store.keys.input}
    assert not store.has_snapshots()
    work(redis_url, feed, SETTINGS, ROWS + 1)
    assert store.state().position == before


def test_reset_can_delete_the_input_too(run, store, feed):
    store.call("XADD", store.keys.input, "*", "x", "[1]")
    store.register()
    assert run("reset", feed, "--yes", "--input")[0] == 0
    assert store.types() == {}
    assert feed not in names(store)


def test_reset_says_that_a_feed_without_answers_has_input_which_is_kept(run, store, feed, source):
    run("push", feed, str(source), "--limit", "3")
    code, _, err = run("reset", feed, "--yes")
    kept = "its input is kept (3 entries) unless --input"
    assert (code, err) == (0, f"feed {feed!r} has no answers and no state to delete; {kept}\n")
    store.call("XADD", store.keys.out, "*", "p", "{}")
    err = run("reset", feed, "--yes")[2]
    assert err == f"feed {feed!r} was reset: 1 key deleted; {kept}\n"
    assert store.length(store.keys.input) == 3


def test_reset_with_input_deletes_a_feed_that_is_input_alone(run, store, feed, source):
    run("push", feed, str(source), "--limit", "3")
    code, _, err = run("reset", feed, "--yes", "--input")
    assert (code, err) == (0, f"feed {feed!r} was reset: 1 key deleted\n")
    assert store.types() == {}
    nothing = f"no feed {feed!r}: nothing to delete; a worker may begin it anew\n"
    assert run("reset", feed, "--yes")[2] == nothing


def test_reset_refuses_a_feed_that_a_worker_holds(run, store, feed):
    from workers.broker.lease import Holder

    store.call("SET", store.keys.lease, Holder.here("me").encode())
    code, _, err = run("reset", feed, "--yes")
    assert code == 2
    assert "held by 'me'" in err
    assert run("reset", feed, "--yes", "--force")[0] == 0
    assert store.types() == {}
