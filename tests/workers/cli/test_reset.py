"""`reset`: a feed begun anew or gone."""

from workers.broker.leases import Holder
from workers.reading.registry import names


def test_reset_keeps_the_input_unless_told_otherwise_and_says_what_it_did(run, store, feed, source):
    """A feed is listed as long as anything of it is left."""

    def reset(*more):
        code, _, err = run("reset", feed, "--yes", *more)
        assert code == 0
        return err

    kept = "its input is kept (3 entries) unless --input"
    run("push", feed, str(source), "--limit", "3")
    assert reset() == f"feed {feed!r} has no answers and no state to delete; {kept}\n"
    store.call("XADD", store.keys.out, "*", "p", "{}")
    assert reset() == f"feed {feed!r} was reset: 1 key deleted; {kept}\n"
    assert (store.length(store.keys.input), feed in names(store)) == (3, True)
    assert reset("--input") == f"feed {feed!r} was reset: 1 key deleted\n"
    assert (store.types(), feed in names(store)) == ({}, False)
    assert reset() == f"no feed {feed!r}: nothing to delete; a worker may begin it anew\n"
    store.register()
    store.call("XADD", store.keys.out, "*", "p", "{}")
    reset()
    assert feed not in names(store)


def test_reset_refuses_a_feed_that_a_worker_holds(run, store, feed):
    store.call("SET", store.keys.lease, Holder.here("me").encode())
    code, _, err = run("reset", feed, "--yes")
    assert (code, "held by 'me'" in err) == (2, True)
    assert run("reset", feed, "--yes", "--force")[0] == 0
    assert store.types() == {}
