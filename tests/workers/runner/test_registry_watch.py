"""What a process of many feeds finds in the list of feeds and by their input, and in what order."""

import pytest
from shipped_redis import PROGRAMS
from structlog.testing import capture_logs

from workers.broker import embedded
from workers.broker.connection import Connection
from workers.feed.keys import REGISTRY, FeedKeys
from workers.feed.selection import Selection
from workers.runner import registry_watch
from workers.runner.registry_watch import InputScan, RegistryWatch
from workers.session.preflight import KnownFeeds
from workers.stop import Stop


@pytest.fixture(params=["embedded", "oldest"])
def connection(request):
    with embedded.temporary(PROGRAMS[request.param]()) as server:
        connected = Connection(server.url, Stop(), 0.0)
        yield connected
        connected.close()


def watching(connection, *patterns, most=10, **options):
    known = KnownFeeds(connection.url)
    return RegistryWatch(connection, Selection(patterns), most, known, **options), known


def list_feeds(connection, names, state=False, given=False):
    """List feeds, with the keys that producers and workers make."""
    connection.call("SADD", REGISTRY, *names)
    for keys in map(FeedKeys, names):
        if state:
            connection.call("HSET", keys.state, "epoch", "1")
        if given:
            connection.call("XADD", keys.input, "*", "x", "[1]")


def test_a_process_without_a_feed_says_so_once_and_what_lists_one(connection):
    watch, _ = watching(connection, "f-*")
    with capture_logs() as logged:
        assert watch.poll() == watch.poll() == []
    (said,) = logged
    assert said["patterns"] == "f-*"
    assert said["event"] == (
        "no feed is answered yet: none that has input, or was answered before, matches"
    )
    list_feeds(connection, ["f-1"], given=True)
    with capture_logs() as logged:
        assert watch.poll() == ["f-1"]
    assert logged == []


def test_feeds_with_state_come_first_then_those_with_input_each_up_to_the_most(connection):
    list_feeds(connection, [f"a-{i:02}" for i in range(20)])
    list_feeds(connection, [f"b-{i:02}" for i in range(20)], given=True)
    list_feeds(connection, ["z-1", "z-2"], state=True, given=True)
    watch, known = watching(connection, "*")
    with capture_logs() as logged:
        found = watch.poll()
    assert found[:2] == ["z-1", "z-2"]
    assert [name[0] for name in found] == ["z"] * 2 + ["b"] * 10
    assert [each["event"] for each in logged] == [
        "the list of feeds holds more feeds than are taken up"
    ]
    assert ["z-1" in known, "z-2" in known, "b-00" in known] == [True, True, False]


def test_until_the_list_was_gone_through_only_feeds_with_state_are_taken_up(
    connection, monkeypatch
):
    monkeypatch.setattr(registry_watch, "PAGE_NAMES", 20)
    list_feeds(connection, [f"a-{i:04}" for i in range(1000)], given=True)
    list_feeds(connection, [f"z-{i:02}" for i in range(5)], state=True)
    watch, _ = watching(connection, "*", most=5)
    looks = [watch.poll() for _ in range(60)]
    partial = [found for found in looks if len(found) < 10]
    assert len(partial) > 5
    assert all(name.startswith("z-") for found in partial for name in found)
    assert looks[-1][:5] == [f"z-{i:02}" for i in range(5)]
    assert len(looks[-1]) == 10


def test_a_feed_that_gets_input_and_then_a_state_moves_up(connection):
    list_feeds(connection, ["a", "b", "c"])
    watch, known = watching(connection, "*")
    assert watch.poll() == []
    list_feeds(connection, ["b", "c"], given=True)
    assert watch.poll() == ["b", "c"]
    list_feeds(connection, ["c"], state=True)
    assert watch.poll() == ["c", "b"]
    assert ["a" in known, "b" in known, "c" in known] == [False, False, True]


def test_a_named_feed_is_seen_to_have_a_state_though_it_is_not_listed(connection):
    watch, known = watching(connection, "f")
    assert (watch.poll(), "f" in known) == (["f"], False)
    connection.call("HSET", FeedKeys("f").state, "epoch", "1")
    assert (watch.poll(), "f" in known) == (["f"], True)


def test_while_redis_does_not_answer_the_feeds_are_those_known_before(connection):
    list_feeds(connection, ["a"], state=True)
    watch, _ = watching(connection, "*", "named")
    assert watch.poll() == ["named", "a"]
    list_feeds(connection, ["b"])
    connection.url = "redis://127.0.0.1:1"
    connection.close()
    assert watch.poll() == ["named", "a"]


def give_input(connection, *names):
    """Append to the input of feeds, as any client may, and list nothing."""
    for name in names:
        connection.call("XADD", FeedKeys(name).input, "*", "x", "[1]")


def test_a_feed_that_only_has_input_is_found_after_those_with_state(connection):
    list_feeds(connection, ["f-state"], state=True)
    give_input(connection, "f-input", "other")
    watch, _ = watching(connection, "f-*")
    assert watch.poll() == ["f-state", "f-input"]
    give_input(connection, "f-later")
    assert watch.poll() == ["f-state", "f-input", "f-later"]


def test_listed_names_without_input_keep_no_feed_from_its_place(connection):
    list_feeds(connection, [f"a-{i:04}" for i in range(5000)])
    list_feeds(connection, ["real-listed"], given=True)
    give_input(connection, "real-unlisted")
    watch, _ = watching(connection, "*", most=5)
    for _ in range(10):  # polls; the worker makes one every few seconds
        found = watch.poll()
    assert found == ["real-listed", "real-unlisted"]


def test_of_feeds_that_only_have_input_as_many_are_kept_as_may_be(connection):
    give_input(connection, *(f"f-{i:02}" for i in range(30)))
    watch, _ = watching(connection, "*", most=7)
    assert len(watch.poll()) == len(watch.poll()) == 7


def test_keys_that_are_no_input_of_a_feed_are_passed_over(connection):
    connection.call("SET", "osvm:{text}:in", "x")
    for key in (
        "osvm:{a b}:in",
        "osvm:{}:in",
        "osvm:{x}:in:in",
        "{f}:in",
        "osvm:{" + 65 * "n" + "}:in",
    ):
        connection.call("XADD", key, "*", "x", "[1]")
    give_input(connection, "f")
    watch, _ = watching(connection, "*")
    assert watch.poll() == ["f"]


def test_each_look_scans_a_bounded_part_of_the_keys(connection, monkeypatch):
    monkeypatch.setattr(registry_watch, "PAGE_NAMES", 100)
    monkeypatch.setattr(registry_watch, "SCAN_PAGES_PER_POLL", 2)
    for i in range(40):
        connection.call("MSET", *(text for j in range(50) for text in (f"k-{i}-{j}", "")))
    give_input(connection, "f")
    scan = InputScan(connection)
    looks = [scan.names() for _ in range(12)]
    assert 1 <= sum(found == ["f"] for found in looks) <= 3
    assert all(found in ([], ["f"]) for found in looks)


def test_without_the_right_to_scan_listed_feeds_are_found_and_that_is_told_once(connection):
    list_feeds(connection, ["a"], given=True)
    give_input(connection, "b")
    rules = ("on", ">secret-of-a-test", "allkeys", "+@all", "-scan")
    connection.call("ACL", "SETUSER", "narrow", *rules)
    connection.call("AUTH", "narrow", "secret-of-a-test")
    watch, _ = watching(connection, "*")
    with capture_logs() as logged:
        assert watch.poll() == watch.poll() == ["a"]
    assert [each["event"] for each in logged] == [
        "this user may not run SCAN: a feed that nobody listed is not found; list it once: SADD "
        "osvm:feeds FEED"
    ]
