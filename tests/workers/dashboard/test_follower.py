"""What the page reads from Redis: what is new, and what a feed's state is."""

from contextlib import ExitStack, closing
from dataclasses import asdict

import pytest
from dashboard_feed import answer
from fault_redis import Server
from structlog.testing import capture_logs

from online_svm.stream.alarm import Alarm
from workers.broker.feed_reader import FeedReader
from workers.dashboard.feed_follower import FIRST_REPORTS, FeedFollower
from workers.dashboard.follower import Follower
from workers.feed.selection import Shard


@pytest.fixture
def mail(feeds, redis_url, feed):
    return feeds(redis_url, feed)


@pytest.fixture
def follower(redis_url, feed):
    with closing(FeedFollower(redis_url, feed)) as one:
        yield one


@pytest.fixture
def read():
    """Return a follower of feeds that has read once; it ends with the test."""
    with ExitStack() as opened:

        def begin(*arguments):
            following = Follower(*arguments)
            opened.callback(following.stop)
            following.read()
            return following

        yield begin


def said(shown):
    """Return the sentence of a feed."""
    return shown.verdict().sentence


def entries_read(monkeypatch):
    """Count the entries of pages and of the newest entries that are read from now on."""
    counted, call = [], FeedReader.call
    page = FeedReader.page

    def counting_call(self, *command):
        reply = call(self, *command)
        if command[0] == "XREVRANGE":
            counted.append((command[1], len(reply)))
        return reply

    def counting_page(self, stream, *rest):
        found = page(self, stream, *rest)
        counted.append((stream, len(found)))
        return found

    monkeypatch.setattr(FeedReader, "call", counting_call)
    monkeypatch.setattr(FeedReader, "page", counting_page)
    return counted


def test_a_feed_that_never_was_or_that_no_worker_began_says_so(mail, follower):
    follower.update()
    assert said(follower.shown) == "There is no such feed now"
    mail.wait_for_answer(count=3)
    follower.update()
    assert said(follower.shown).startswith("No worker has begun this feed; 3 entries wait")
    assert follower.shown.status.waiting == 3


def test_a_feed_created_after_a_deletion_is_read_from_its_start(mail, follower):
    for _ in range(3):
        mail.answer()
    mail.report(3)
    follower.viewers = 1
    follower.update()
    mail.delete()
    follower.update()
    assert said(follower.shown) == "There is no such feed now"
    assert (len(follower.shown.reports), len(follower.shown.answers)) == (0, 0)
    mail.seq = 0
    mail.answer(label="spam")
    mail.report(1)
    follower.update()
    assert [one.message["label"] for one in follower.shown.answers] == ["spam"]
    assert [one.n for one in follower.shown.reports] == [1]


def test_a_label_that_comes_late_completes_the_answer_that_is_shown(mail, follower):
    mail.store.call("XADD", mail.keys.input, "1000-0", "x", "[1]", "id", "tx-1")
    mail.put(mail.keys.out, "1000-0", answer(0, label="ham", id="tx-1"))
    mail.seq = 1
    mail.answer()
    follower.viewers = 1
    follower.update()
    assert follower.shown.answers[0].truth.label is None
    label = {"v": 2, "status": "label", "seq": 2, "n": 1, "example": "tx-1", "label": "spam"}
    mail.store.call("XADD", mail.keys.input, "3000-0", "for", "tx-1", "y", "spam")
    mail.put(mail.keys.out, "3000-0", label | {"done": "accepted"})
    mail.store.call("HSET", mail.keys.state, "seq", 3, "cursor", "3000-0")
    follower.update()
    first, *_ = follower.shown.answers
    assert (first.truth.label, first.truth.is_right) == ("spam", False)


def test_only_what_is_new_is_read_of_answers_and_reports(mail, follower, monkeypatch):
    for i in range(20):
        mail.answer()
        mail.report(i + 1)
    follower.viewers = 1
    follower.update()
    assert len(follower.shown.answers) == len(follower.shown.reports) == 20
    mail.answer()
    mail.report(21)
    counted = entries_read(monkeypatch)
    follower.update()
    for stream in (mail.keys.out, mail.keys.met):  # once for the cards, once for the verdict
        assert [n for read, n in counted if read == stream] == [1, 1]
    counted.clear()
    follower.update()
    counted = [(stream, n) for stream, n in counted if stream != mail.keys.input]
    assert counted == [(mail.keys.events, 0)]
    assert len(follower.shown.answers) == len(follower.shown.reports) == 21


def test_only_the_newest_answer_of_a_feed_is_read_that_nobody_looks_at(mail, follower, monkeypatch):
    for _ in range(20):
        mail.answer(guarantee="approximate")
    counted = entries_read(monkeypatch)
    follower.update()
    assert [n for stream, n in counted if stream == mail.keys.out and n] == [1]
    assert follower.shown.status.answer["guarantee"] == "approximate"


def test_entries_that_are_not_of_this_program_are_passed_over(mail, follower):
    mail.answer()
    mail.report(1)
    at = "5000-0"
    for stream in (mail.keys.out, mail.keys.met, mail.keys.alarms, mail.keys.events):
        mail.store.call("XADD", stream, at, "x", b"\xff\x00")
        mail.store.call("XADD", stream, "5000-1", "p", b'["no object"]')
    follower.viewers = 1
    follower.update()
    assert (len(follower.shown.answers), len(follower.shown.reports)) == (1, 1)
    assert said(follower.shown) == "No worker"


def test_a_key_of_another_type_is_told_of_its_feed_and_harms_no_other(feeds, read, redis_url, feed):
    bad, good = feeds(redis_url, f"{feed}-bad"), feeds(redis_url, f"{feed}-good")
    good.answer()
    bad.store.call("SET", bad.keys.state, "text")
    following = read(redis_url, (bad.name, good.name))
    shown = {shown.feed: shown for shown in following.shown()}
    assert said(shown[bad.name]) == "This feed cannot be read"
    assert "WRONGTYPE" in shown[bad.name].status.problem or "type" in shown[bad.name].status.problem
    assert (said(shown[good.name]), following.lost) == ("No worker", "")


def test_patterns_select_the_listed_feeds_that_are_followed_and_a_shard_its_own(
    own_redis, feeds, read
):
    for name in ("sensors-1", "sensors-2", "mail", "returns"):
        feeds(own_redis.url, name).answer()

    def followed(selected, owns=None):
        following = read(own_redis.url, selected, owns)
        others = [name for name in ("mail", "sensors-9") if following.watch(name) is not None]
        return [shown.feed for shown in following.shown()], others

    selected = ["mail", "sensors-1", "sensors-2"]
    following = read(own_redis.url, ["sensors-*", "mail"])
    assert [shown.feed for shown in following.shown()] == selected
    assert followed(["sensors-*", "mail"])[1] == ["mail", "sensors-9"]
    assert followed(["returns"]) == (["returns"], [])
    shards = [Shard(i, 2).owns for i in range(2)]
    parts = [
        shown.feed for owns in shards for shown in read(own_redis.url, ["sensors-*"], owns).shown()
    ]
    assert sorted(parts) == ["sensors-1", "sensors-2"]
    feeds(own_redis.url, "sensors-3").answer()  # it appears later, and a pattern selects it
    feeds(own_redis.url, "other").answer()
    following.read()
    assert [shown.feed for shown in following.shown()] == [*selected, "sensors-3"]


def test_redis_that_goes_away_is_told_and_what_was_read_stays(tmp_path, feeds, read):
    server = Server(tmp_path / "redis")
    feeds(server.url, "mail").answer()
    following = read(server.url)
    assert (following.lost, len(following.shown())) == ("", 1)
    server.kill()
    following.read()
    assert following.lost != ""
    assert following.shown()[0].status.seq == 1
    server.start()
    with capture_logs() as logs:
        following.read()
        following.read()
    assert following.lost == ""
    assert [log["event"] for log in logs] == ["redis answers again"]
    server.stop()


def test_the_alarms_of_a_change_are_one_incident_until_a_report_has_none_open(mail, follower):
    alarm = asdict(Alarm(7, "exchangeability", "overall", None, "ranks", 5.7, 5.3, 1))
    mail.hold()
    mail.answer()
    mail.put(mail.keys.alarms, "1000-0", {"v": 2, "seq": 6, "alarms": [alarm, alarm | {"n": 8}]})
    follower.viewers = 1
    follower.update()
    assert said(follower.shown) == "Do not trust them since example 7: the labels changed"
    mail.answer()
    mail.report(9, monitors={"open": [alarm]})
    follower.update()
    assert len(follower.shown.incidents) == 1
    mail.answer()
    mail.report(12_000, monitors={"open": []})
    follower.update()
    assert [(one.since, one.until) for one in follower.shown.incidents] == [(7, 12_000)]
    assert said(follower.shown) == ("Holds: right within .02 over all 12,000; helps")


def test_after_an_erasure_the_alarms_since_then_are_shown_though_n_is_lower(mail, follower):
    """So many reports that the older ones are not read; then n begins lower."""
    mail.hold()
    for n in range(FIRST_REPORTS + 5):
        mail.seq = n + 1
        mail.report(1000 + n, monitors={"open": []})
    alarm = asdict(Alarm(900, "exchangeability", "overall", None, "ranks", 5.7, 5.3, 1))
    mail.answer()
    mail.put(mail.keys.alarms, f"{1000 * mail.seq}-0", {"v": 2, "seq": 6, "alarms": [alarm]})
    follower.viewers = 1
    follower.update()
    assert [one.since for one in follower.shown.incidents] == [900]
    assert said(follower.shown) == "Do not trust them since example 900: the labels changed"


def test_what_somebody_notes_is_read_at_once_where_somebody_looks(mail, follower):
    mail.answer()
    follower.viewers = 1
    follower.update()
    before = follower.shown.version
    follower.update()
    assert follower.shown.version == before
    mail.put(mail.keys.events, "*", {"code": "note", "detail": "deployed v2", "n": 1})
    follower.update()
    assert follower.shown.version == before + 1
    assert follower.shown.events[-1].is_note
