"""What a process of many feeds reads of the list of feeds."""

from structlog.testing import capture_logs

from workers.broker.connection import Connection
from workers.broker.store import Store
from workers.fleet.registry_watch import RegistryWatch
from workers.fleet.selection import Selection
from workers.stop import Stop


def test_a_process_without_a_feed_says_so_once_and_what_lists_one(redis_url, feed):
    connection = Connection(redis_url, Stop(), 0.0)
    watch = RegistryWatch(connection, Selection([f"{feed}-*"]), most=10)
    with capture_logs() as logged:
        assert watch.look() == watch.look() == []
    (said,) = logged
    assert said["patterns"] == f"{feed}-*"
    assert "a push lists its feed" in said["event"]

    with Store(redis_url, f"{feed}-1") as store:
        store.register()
    with capture_logs() as logged:
        assert watch.look() == [f"{feed}-1"]
    assert logged == []
    connection.close()
