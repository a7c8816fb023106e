"""Each Redis that can be had is restarted with the shipped files, and keeps every answer.

Row 41 of the faults: Redis 7.0 to 8.4, and Valkey before its releases of August 2026, apply the
rights of the user `default` to what they read from their append-only file.
"""

import re
import shutil
import socket
import subprocess
from contextlib import contextmanager

import pytest
import redis
import yaml
from kustomized import build
from processes import LIMIT
from recorded_feed import answering, push
from shipped_redis import AS_SHIPPED, DEPLOY, PROGRAMS, WITHOUT_RIGHTS, ShippedRedis, content
from system_tools import tool

from workers.admin.verify import verify
from workers.broker.permissions import check, of_webhook, of_worker
from workers.broker.store import Store
from workers.errors import AccessDenied, StateLost
from workers.feed.keys import FeedKeys
from workers.session.preflight import NO_FILE, UNSEEN, checks_rights_of_file, durability, find

README = DEPLOY / "README.md"
KEPT_BY = {
    "append-only file": (),
    "rewritten append-only file": (),
    "snapshots": ("--appendonly", "no", "--save", "3600", "1"),
}


@pytest.fixture(params=[*PROGRAMS])
def kind(request):
    return request.param


@contextmanager
def at_work(server):
    """Let a producer push, and a worker answer, each with the rights of its user.

    Both stay connected, and wait while Redis is away.
    """
    worker = answering(server.url("worker"), "f", replay_budget=20)
    with worker as (store, respond, _), Store(server.url("producer"), "f") as producer:
        producer.retry_forever()
        store.retry_forever()

        def answer(begin, end):
            push(producer, begin, end)
            respond()
            assert store.state().position.seq == end

        yield answer


def check_feed(server, count):
    with Store(server.url("admin"), "f") as store:
        assert store.length(store.keys.out) == count
        assert store.state().position.seq == count
        assert verify(store).n_differences == 0


def check_strangers_are_refused(server):
    """Ask as a client without a name; the client of Python would send more of its own."""
    refusals = {
        "NOAUTH": ("PING", "KEYS *", "HGETALL osvm:{f}:st", "ACL WHOAMI", "CONFIG GET dir"),
        "WRONGPASS": ('AUTH ""', "AUTH x", 'AUTH default ""', "AUTH default x"),
    }
    with socket.create_connection(("127.0.0.1", server.port), timeout=LIMIT) as stranger:
        replies = stranger.makefile("rb")
        for code, commands in refusals.items():
            for command in commands:
                stranger.sendall(f"{command}\r\n".encode())
                assert replies.readline().startswith(f"-{code} ".encode()), command


@pytest.mark.parametrize("kept_by", KEPT_BY)
def test_a_restart_with_the_shipped_files_keeps_every_answer(kind, kept_by, tmp_path):
    with ShippedRedis(tmp_path, kind, *KEPT_BY[kept_by]) as server:
        server.start()
        with at_work(server) as answer:
            answer(0, 60)
            if kept_by.startswith("rewritten"):
                server.rewrite()
            answer(60, 80)
            for _ in range(2):
                before = server.content()
                server.restart()
                assert server.content() == before
            check_strangers_are_refused(server)
            answer(80, 120)
        server.restart()
        with at_work(server) as answer:
            answer(120, 140)
        check_feed(server, 140)
        assert "NOPERM" not in server.log


def test_what_was_skipped_is_found_in_a_copy_and_comes_back_with_the_rights(kind, tmp_path):
    """The worker names the cause, and what it says to do works."""
    with ShippedRedis(tmp_path, kind) as server:
        server.let_default(WITHOUT_RIGHTS)
        server.start()
        with at_work(server) as answer, Store(server.url("worker"), "f") as other:
            other.retry_forever()
            answer(0, 60)
            before, is_affected = server.content(), checks_rights_of_file(other.server())
            server.restart()
            assert ("NOPERM" in server.log) == is_affected
            assert (server.content() != before) == is_affected
            if is_affected:
                check_it_says_what_to_do(lambda: answer(60, 80))  # the worker that was there
                check_it_says_what_to_do(lambda: find(other))  # the next one
            else:
                answer(60, 80)
        server.stop()

        copy = tmp_path / "copy"
        shutil.copytree(server.data, copy)
        server.start(copy, has_users=False)
        with redis.Redis(port=server.port) as client:
            found = content(client)
        assert found[b"osvm:{f}:out"][:60] == before[b"osvm:{f}:out"]
        server.stop()

        server.let_default(AS_SHIPPED)
        server.start()
        assert server.content() == found
        with at_work(server) as answer:
            answer(80, 100)
        check_feed(server, 100)


def told_to_start(deployment):
    """Return the settings and the arguments that a deployment gives Redis, and its health check."""
    settings = (DEPLOY / "redis/redis.conf").read_text()
    if deployment == "systemd":
        (added,) = re.findall(r"^printf '(aclfile .*)' \|", README.read_text(), re.MULTILINE)
        return settings + added.replace(r"\n", "\n"), [], None
    if deployment == "compose":
        service = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]["redis"]
        return settings, service["command"][2:], service["healthcheck"]["test"][1]
    found = {each["kind"]: each for each in build(DEPLOY / "kubernetes/overlays/small")
             if each["metadata"]["name"] == "online-svm-redis"}  # fmt: skip
    (container,) = found["StatefulSet"]["spec"]["template"]["spec"]["containers"]
    probe = container["readinessProbe"]["exec"]["command"][2]
    return found["ConfigMap"]["data"]["redis.conf"], container["command"][2:], probe


@pytest.mark.parametrize("deployment", ["compose", "kubernetes", "systemd"])
def test_each_deployment_starts_a_redis_that_is_healthy_and_keeps_its_feeds(deployment, tmp_path):
    """Only paths, the port and the address are those of the test."""
    settings, arguments, probe = told_to_start(deployment)
    with ShippedRedis(tmp_path, "system") as server:
        here = {
            "/var/lib/redis": str(server.data),
            **dict.fromkeys(
                ("/etc/redis/users.acl", "/run/secrets/redis-users",
                 "/run/secrets/redis/users.acl"), str(server.users)
            ),
        }  # fmt: skip
        for path, ours in here.items():
            settings = settings.replace(path, ours)
        config = tmp_path / "redis.conf"
        config.write_text(settings)
        server.arguments = [config, *(here.get(word, word) for word in arguments)]
        server.start()
        with at_work(server) as answer:
            answer(0, 60)
            before = server.content()
            server.restart()
            assert server.content() == before
        check_feed(server, 60)
        check_strangers_are_refused(server)
        with server.admin() as admin:  # each write is synced, and nothing evicted
            told = {**admin.config_get("append*"), **admin.config_get("maxmemory-policy")}
        assert (told["appendonly"], told["appendfsync"]) == ("yes", "always")
        assert told["maxmemory-policy"] == "noeviction"
        if probe is not None:
            client = f"{tool('redis-cli', 'redis-tools')} -p {server.port}"
            healthy = ["sh", "-c", probe.replace("redis-cli", client)]
            assert subprocess.run(healthy, timeout=LIMIT).returncode == 0
            server.stop()
            assert subprocess.run(healthy, timeout=LIMIT, stderr=-3).returncode != 0


def test_the_users_that_the_script_makes_have_their_rights_and_no_others(tmp_path):
    keys = FeedKeys("f")
    commands = of_worker(keys, "downstream") + of_webhook(keys)
    with ShippedRedis(tmp_path, "system") as server:
        server.start()
        check(server.url("worker"), commands)
        for role in ("producer", "reader"):
            with pytest.raises(AccessDenied):
                check(server.url(role), commands)
        with pytest.raises(AccessDenied, match="denies access"):
            check(f"redis://127.0.0.1:{server.port}", commands)


def check_it_says_what_to_do(act):
    with pytest.raises(StateLost) as ended:
        act()
    said = str(ended.value)
    in_order = ("is gone", "NOPERM", "without the users' file on a copy", "online-svm reset f")
    places = [said.index(part) for part in in_order]
    assert places == sorted(places)


def warnings(server, role="worker"):
    with Store(server.url(role), "f") as store:
        return durability(store, store.server())


def test_the_fault_is_told_before_the_restart_where_it_can_be_seen(kind, tmp_path, run_command):
    with ShippedRedis(tmp_path, kind) as server:
        server.start()
        assert warnings(server) == ()
        with server.admin() as admin:
            is_affected = checks_rights_of_file(
                {name: str(value) for name, value in admin.info("server").items()}
            )
            for rules in ("-@all", "+@all -pexpireat", "+@all resetkeys", "+@all resetkeys ~a*"):
                admin.execute_command("ACL", "SETUSER", "default", *rules.split())
                found = warnings(server)
                assert len(found) == is_affected
                assert all("ACL SETUSER default off" in text for text in found)
            code, _, said = run_command("check", "f", "--redis", server.url("worker"))
            assert (code, "ACL SETUSER default off" in said) == (0, is_affected)
            fix = "resetpass allkeys allchannels +@all"
            admin.execute_command("ACL", "SETUSER", "default", "off", *fix.split())
            assert warnings(server) == ()
            if is_affected:
                admin.execute_command("ACL", "SETUSER", "osvm-worker", "-acl|dryrun")
                assert warnings(server) == (UNSEEN,)
            admin.execute_command("CONFIG", "SET", "appendonly", "no")
            assert warnings(server) == (NO_FILE,)
