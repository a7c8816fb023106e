"""`backup`: feeds at their newest snapshots as files; `restore` of them: `test_restore.py`."""

import pytest
from recorded_feed import answering, push

from workers.broker.store import Store
from workers.feed.keys import REGISTRY
from workers.recording.reader import Recording


@pytest.fixture
def run(run_command, own_redis):
    return lambda *arguments: run_command("backup", *arguments, "--redis", own_redis.url)


def answer(url, *feeds):
    """Answer 20 entries of each feed, and leave a snapshot."""
    for feed in feeds:
        with answering(url, feed) as (store, answer_all, session):
            store.register()
            push(store, 0, 20)
            answer_all()
            session.snapshot()


def test_a_feed_is_recorded_and_again_only_what_is_new(run, own_redis, tmp_path):
    answer(own_redis.url, "mail")
    path = tmp_path / "saved"
    code, _, err = run("mail", path)
    assert code == 0
    said = err.splitlines()[-1]
    assert said.startswith("backup of feed 'mail' at seq 20, n 18 (input up to ")
    assert said.endswith(f") in {path}: 20 answers added")
    with Recording.open(path) as recording:
        assert recording.state().position.seq == 20
    assert run("mail", path)[2].splitlines()[-1].endswith(": 0 answers added")


def test_all_feeds_are_saved_and_those_that_cannot_be_are_named(run, own_redis, tmp_path):
    answer(own_redis.url, "mail", "web")
    with Store(own_redis.url, "new") as store:
        store.register()
        store.call("SADD", REGISTRY, "\x1b[2J")
    code, _, err = run("--all", tmp_path / "all")
    assert (code, err.splitlines()[-1]) == (1, "2 feeds without a backup")
    assert "new: no feed 'new': push examples to it" in err
    assert sorted(path.name for path in (tmp_path / "all").iterdir()) == [
        "mail.sqlite", "web.sqlite",
    ]  # fmt: skip
