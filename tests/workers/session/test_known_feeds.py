"""What a process remembers of the feeds that it saw, and leaves for later ones."""

import stat

import pytest
from structlog.testing import capture_logs

from workers.errors import StateLost
from workers.session import preflight
from workers.session.known_feeds import KnownFeeds

URL = "redis://worker:secret@host:6379/0"


def test_a_later_process_of_this_user_knows_the_feed_in_that_redis_and_in_no_other(monkeypatch):
    KnownFeeds.of_user(URL).add("f")
    assert "f" in KnownFeeds.of_user("redis://other:word@host:6379/0")
    for url in ("redis://host:6379/1", "redis://host:6379/0?db=1", "redis://there:6379/0"):
        assert "f" not in KnownFeeds.of_user(url)
    assert "g" not in KnownFeeds.of_user(URL)
    assert "f" not in KnownFeeds(URL)


def test_what_is_left_is_for_its_user_alone_and_holds_no_secret(tmp_path):
    directory = tmp_path / "home/online-svm"
    for _ in range(2):
        KnownFeeds(URL, directory).add("f")
    (file,) = (path for path in directory.rglob("*") if path.is_file())
    assert (file.name, file.read_text()) == ("f", "redis://host:6379/0\n")
    folders = [directory, directory / "feeds", file.parent]
    assert [stat.S_IMODE(folder.stat().st_mode) for folder in folders] == [0o700] * 3


def test_one_that_only_looks_leaves_nothing(tmp_path):
    known = KnownFeeds(URL, tmp_path, is_kept=False)
    known.add("f")
    assert "f" in known
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("why", ["a file is in the way", "there is no home"])
def test_where_nothing_can_be_left_it_is_told_once_and_this_process_still_knows(
    tmp_path, monkeypatch, why
):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    if why == "there is no home":
        monkeypatch.delenv("XDG_STATE_HOME")
        monkeypatch.delenv("HOME", raising=False)
        monkeypatch.setattr("pwd.getpwuid", lambda _uid: {}["none"])
    with capture_logs() as logged:
        known = KnownFeeds.of_user(URL)
        known.add("f")
        known.add("g")
    assert ("f" in known, "g" in known, "h" in known) == (True, True, False)
    (said,) = logged
    assert "set XDG_STATE_HOME" in said["event"]


def test_a_known_feed_without_a_state_is_lost_until_a_reset_says_otherwise(store):
    known, feed = KnownFeeds(store.url), store.keys.feed
    assert preflight.find(store, known=known).state is None
    known.add(feed)
    with pytest.raises(StateLost, match=f"online-svm reset {feed}.*this process saw it"):
        preflight.find(store, known=known)
    store.call("SET", store.keys.anew, "1")
    assert preflight.find(store, known=known).state is None
