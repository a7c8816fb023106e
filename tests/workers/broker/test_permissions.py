"""The users of deploy/redis do their work and nothing else; what lacks is named."""

import pytest
import redis
from alarm_receiver import alarm
from recorded_feed import answering, entry, push
from shipped_redis import DEPLOY, PROGRAMS, USERS, rules_of
from world import flags_of, work

from workers.admin.notes import note, silence
from workers.broker import embedded, permissions
from workers.broker.client import client
from workers.broker.store import Store
from workers.dashboard.follower import Follower
from workers.errors import AccessDenied
from workers.feed.keys import FeedKeys
from workers.message.encode import encode_alarms
from workers.ray_fleet.definition import FleetDefinition, FleetStore
from workers.reading.registry import names
from workers.runner.registry_watch import InputScan

PASSWORD = "pw-of-the-test"
RULES = rules_of("oldest")
"""Those of Redis 6.2, which later servers take as well."""

SETTINGS = {
    "classes": "true,false", "window": 60, "refit_every": 20, "metrics_every": 20,
    "replay_budget": 50, "batch": 16,
}  # fmt: skip


@pytest.fixture(params=["oldest", "embedded"], scope="module")
def server(request):
    """A server whose users are those of its file, switched on."""
    with embedded.temporary(PROGRAMS[request.param]()) as server:
        with client(server.url) as admin:
            for name, rules in [*rules_of(request.param).items()][2:]:
                admin.execute_command("ACL", "SETUSER", name, *rules, "on", f">{PASSWORD}")
        yield server


@pytest.fixture
def own_redis(server):
    """The server, empty."""
    with client(server.url) as admin:
        admin.execute_command("FLUSHALL")
    return server


@pytest.fixture
def urls(own_redis):
    """URLs of the server by user."""
    return {name: own_redis.url.replace("://", f"://{name}:{PASSWORD}@") for name in RULES}


@pytest.mark.slow
def test_each_role_does_its_part_under_its_own_user(own_redis, urls, run_command):
    pushed = run_command(
        "push", "f", "Phishing", "--limit", "150", "--redis", urls["osvm-producer"]
    )
    assert pushed[0] == 0, pushed
    assert "NOPERM" not in work(urls["osvm-worker"], "f", SETTINGS, 150)
    reader = ("--redis", urls["osvm-reader"])
    assert "150 entries, 150 learned" in run_command("status", "f", *reader)[1]
    assert {"f", "150"} <= set(run_command("status", *reader)[1].split())
    assert len(run_command("tail", "f", "--json", "-n", "0", *reader)[1].splitlines()) == 150
    assert run_command("tail", "f", "--stream", "met", *reader)[0] == 0
    assert run_command("tail", "f", "--stream", "dlq", *reader)[0] == 0
    assert run_command("verify", "f", *reader)[0] == 0
    with Store(own_redis.url, "f") as store:
        group = store.call("XINFO", "GROUPS", store.keys.input)[0]
        assert b"osvm" in group  # housekeeping that the commit lets fail was allowed as well
        assert store.state().previous is not None
        assert store.length(store.keys.input) < 150  # the input was trimmed


def test_a_recorder_reads_a_feed_and_moves_its_group(own_redis, urls, tmp_path, run_command):
    with answering(own_redis.url, "f") as (store, answer, session):
        push(store, 0, 20)
        answer()
        session.snapshot()
        place = (str(tmp_path / "f.sqlite"), "--group", "downstream")
        code, _, said = run_command("backup", "f", *place, "--redis", urls["osvm-recorder"])
        assert (code, "20 answers added" in said) == (0, True), said
        (flat,) = store.call("XINFO", "GROUPS", store.keys.out)
        assert flat[flat.index(b"last-delivered-id") + 1] == entry(19)[0].encode()


FORBIDDEN = {
    "producer": [
        "XADD osvm:{f}:out * p x", "DEL osvm:{f}:in", "HSET osvm:{f}:st epoch 9", "EVAL 1 0",
        "XTRIM osvm:{f}:in MAXLEN 0", "SREM osvm:feeds f", "SMEMBERS osvm:feeds",
        "SADD elsewhere x", "SET osvm:fleet:f {}",
    ],
    "reader": [
        "XADD osvm:{f}:in * x [1]", "XADD osvm:{f}:events * p silenced",
        "HSET osvm:{f}:st epoch 9", "DEL osvm:{f}:out",
        "GET elsewhere", "SET osvm:fleet:f {}",
    ],
    "worker": ["GET elsewhere", "FLUSHALL", "CONFIG GET *", "SADD elsewhere x"],
    "recorder": ["XADD osvm:{f}:in * x [1]", "DEL osvm:{f}:out"],
}  # fmt: skip


def test_no_role_may_do_what_is_not_its_part(urls):
    for role, commands in FORBIDDEN.items():
        with client(urls[f"osvm-{role}"]) as connected:
            for command in commands:
                with pytest.raises(redis.exceptions.NoPermissionError):
                    connected.execute_command(*command.split())


@pytest.mark.parametrize("role", ["osvm-reader", "osvm-worker"])
def test_the_page_may_be_served_by_a_reader_and_beside_a_worker(own_redis, urls, role):
    with client(own_redis.url) as admin:
        admin.execute_command("SADD", "osvm:feeds", "f")
        admin.execute_command("HSET", "osvm:{f}:st", "epoch", "1", "seq", "1", "cursor", "1-0")
        raised = encode_alarms([alarm(1)], 0)
        admin.execute_command("XADD", "osvm:{f}:alarms", "1-0", "p", raised)
    following = Follower(urls[role], ["f*"])
    for look in (lambda: None, lambda: following.watch("f")):
        look()
        following.read()
        (shown,) = following.shown()
        status = shown.status
        assert (following.lost, status.problem, status.has_begun) == ("", "", True)
    assert len(shown.alarms) == 1
    following.stop()


def test_further_commands_of_a_worker_are_allowed(urls):
    fleet = FleetDefinition(patterns=("f",), shards=2)
    with Store(urls["osvm-producer"], "f") as producer:
        producer.append(producer.keys.input, [(b"*", [b"x", b"[1]"])])
    with Store(urls["osvm-worker"], "f") as worker, Store(urls["osvm-reader"], "f") as reader:
        connection = worker._connection
        assert InputScan(connection).names() == ["f"]
        assert connection.call("SET", worker.keys.wanted, "1-0", "PX", 9000, "NX") == b"OK"
        assert connection.call("DEL", worker.keys.wanted) == 1
        silence(worker, 60, "planned")
        note(worker, "deployed v2")
        assert worker.length(worker.keys.events) == 2
        FleetStore(connection, "f").put(fleet)
        assert FleetStore(reader._connection, "f").require() == fleet
        FleetStore(connection, "f").delete()


def denied_to(own_redis, *removed, role="osvm-worker"):
    """Return the URL of a user that lacks some of the rules of its role."""
    with client(own_redis.url) as admin:
        rules = [rule for rule in RULES[role] if rule not in removed]
        admin.execute_command("ACL", "SETUSER", "lacking", "reset", *rules, "on", f">{PASSWORD}")
    return own_redis.url.replace("://", f"://lacking:{PASSWORD}@")


@pytest.mark.parametrize("removed", [(), ("~osvm:feeds",), ("+sadd",)])
def test_a_producer_pushes_whether_or_not_it_may_list_the_feed(own_redis, run_command, removed):
    url = denied_to(own_redis, *removed, role="osvm-producer")
    code, _, said = run_command("push", "f", "Phishing", "--limit", "3", "--redis", url)
    assert (code, "3 rows pushed" in said) == (0, True), said
    with Store(own_redis.url, "f") as store:
        assert store.length(store.keys.input) == 3
        assert names(store) == ([] if removed else ["f"])


COMMANDS = [rule for rule in RULES["osvm-worker"] if rule.startswith("+")]
OF_PUBLISHER = {"+time"}
OF_WEBHOOK = {"+xreadgroup", "+xack"}
OF_PAGE = {"+smembers", "+xrevrange"}
OF_SEVERAL_SERVERS = {
    "+cluster|slots": "redis+cluster://h",
    "+asking": "redis+cluster://h",
    "+role": "redis+sentinel://h/s",
    "+wait": "redis://h",
}
OF_WARNING = {"+acl|dryrun"}
# With a waiting feed, a pattern, a webhook, a page or published states alone; discarding writes
# nothing; without the right to ask, a worker warns that it cannot see.
ALONE = OF_PUBLISHER | OF_WEBHOOK | OF_PAGE | OF_WARNING | set(OF_SEVERAL_SERVERS)
NOT_ALWAYS = {"+xpending", "+discard", "+sscan"} | ALONE


def test_the_check_writes_nothing_and_names_any_one_command_or_key_that_lacks(own_redis, urls):
    permissions.check(urls["osvm-worker"], permissions.of_worker(FeedKeys("f"), "downstream"))
    with pytest.raises(AccessDenied, match="SADD on osvm:feeds"):
        permissions.check(denied_to(own_redis, "~osvm:feeds"), permissions.of_worker(FeedKeys("f")))
    for rule in sorted(set(COMMANDS) - NOT_ALWAYS):
        with pytest.raises(AccessDenied, match=rf"run {rule[1:].upper()}\b.*users\.acl"):
            permissions.check(denied_to(own_redis, rule), permissions.of_worker(FeedKeys("f")))
    with client(own_redis.url) as admin:
        assert admin.execute_command("DBSIZE") == 0


@pytest.mark.parametrize(
    ("more", "rule"),
    [(permissions.of_webhook, rule) for rule in sorted(OF_WEBHOOK)]
    + [(permissions.of_publisher, rule) for rule in sorted(OF_PUBLISHER)],
)
def test_a_worker_that_posts_alarms_or_publishes_states_needs_more(own_redis, more, rule):
    url, keys = denied_to(own_redis, rule), FeedKeys("f")
    permissions.check(url, permissions.of_worker(keys))
    with pytest.raises(AccessDenied, match=rule[1:].upper()):
        permissions.check(url, more(keys))


def test_a_worker_whose_feeds_are_named_by_patterns_needs_one_more(own_redis, run_command):
    url = denied_to(own_redis, "+sscan")
    permissions.check(url, permissions.of_worker(FeedKeys("f")))
    code, _, said = run_command("worker", "f-*", "--redis", url)
    assert (code, "run SSCAN on osvm:feeds" in said) == (2, True), said


@pytest.mark.parametrize(("rule", "several"), OF_SEVERAL_SERVERS.items())
def test_what_only_several_servers_need_is_checked_where_there_are_several(
    own_redis, rule, several
):
    url, keys = denied_to(own_redis, rule), FeedKeys("f")
    first = permissions.of_worker(keys)[:1]
    permissions.check(url, first + permissions.of_replication("redis://h", 0))
    with pytest.raises(AccessDenied, match=rule[1:].upper().split("|")[0]):
        permissions.check(url, first + permissions.of_replication(several, 1))


@pytest.mark.parametrize("rule", ["+xadd", "~osvm:feeds", "+info"])
def test_a_worker_without_a_rule_exits_2_before_any_write(own_redis, run_command, rule):
    url = denied_to(own_redis, rule)
    code, _, said = run_command("worker", "f", "--redis", url, *flags_of(SETTINGS))
    assert code == 2
    assert len(said.strip().splitlines()) <= 2
    assert "users.acl" in said or "denies access" in said
    assert PASSWORD not in said
    with client(own_redis.url) as admin:
        assert admin.execute_command("DBSIZE") == 0


def test_a_wrong_password_exits_2_and_is_not_repeated(urls, run_command):
    url = urls["osvm-worker"].replace(PASSWORD, "a-wrong-one")
    for command in (("worker", "f"), ("push", "f", "Phishing"), ("status", "f")):
        code, out, said = run_command(*command, "--redis", url)
        assert code == 2
        assert "denies access" in said
        assert "a-wrong-one" not in out + said


@pytest.mark.parametrize("name", sorted({*USERS.values()}))
def test_the_file_leaves_every_user_off(name):
    lines = (DEPLOY / "redis" / name).read_text().splitlines()
    assert all("off" in line.split() and "on" not in line.split() for line in lines)
    assert not any("nopass" in line.split() for line in lines)
