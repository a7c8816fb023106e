"""A Redis with the files of deploy/, its users as `make-secrets` writes them, that is restarted."""

import os
import subprocess
from pathlib import Path
from urllib.parse import quote

import redis
from fault_redis import ServerProcess, is_up
from processes import LIMIT, free_port
from system_tools import oldest_redis, redis_server
from world import wait_until

from workers.broker.embedded import server_executable

DEPLOY = Path(__file__).parents[2] / "deploy"

AS_SHIPPED = "user default off resetpass allkeys allchannels +@all"
WITHOUT_RIGHTS = "user default off resetpass resetkeys resetchannels -@all"
"""What these files said before, and what a person may write again."""


PROGRAMS = {"oldest": oldest_redis, "system": redis_server, "embedded": server_executable}
USERS = {"oldest": "users.acl", "system": "users-7.acl", "embedded": "users-7.acl"}
"""The shipped file of users for each of them."""


def rules_of(kind):
    """Return the rules of each user in the shipped file for a kind of server, without `off`."""
    lines = (DEPLOY / "redis" / USERS[kind]).read_text().splitlines()
    users = (line.split()[1:] for line in lines)
    return {name: [rule for rule in rules if rule != "off"] for name, *rules in users}


class ShippedRedis(ServerProcess):
    """A server with deploy/redis/redis.conf and the users' file of its version."""

    def __init__(self, directory, kind, *options):
        self.program, self._options = PROGRAMS[kind](), options
        self.data, self.secrets = directory / "data", directory / "secrets"
        self.data.mkdir(parents=True)
        subprocess.run(
            ["sh", DEPLOY / "make-secrets", self.secrets], check=True, capture_output=True,
            timeout=LIMIT, env={**os.environ, "USERS": USERS[kind]},
        )  # fmt: skip
        self.arguments = [DEPLOY / "redis/redis.conf", "--aclfile", str(self.users)]
        self.port = free_port()

    @property
    def users(self):
        return self.secrets / "users.acl"

    @property
    def log(self):
        return (self.data / "log").read_text()

    def url(self, role):
        password = quote((self.secrets / f"{role}.password").read_text(), safe="")
        return f"redis://osvm-{role}:{password}@127.0.0.1:{self.port}"

    def admin(self):
        return redis.Redis.from_url(self.url("admin"))

    def let_default(self, rules):
        """Write other rules of the user `default` into the users' file."""
        lines = self.users.read_text().splitlines()
        assert [line.split()[1] for line in lines].count("default") == 1
        kept = [line for line in lines if line.split()[1] != "default"]
        self.users.write_text("\n".join([rules, *kept]) + "\n")

    def start(self, data=None, has_users=True):
        """Start it, on its own data or a copy; return when it has loaded them."""
        data = data or self.data
        self.begin(
            self.program, *self.arguments[: None if has_users else 1], "--port", self.port,
            "--bind", "127.0.0.1", "--dir", data, "--logfile", data / "log", *self._options,
        )  # fmt: skip
        with self.admin() if has_users else redis.Redis(port=self.port) as client:
            wait_until(lambda: is_up(client), 20.0, f"see {data / 'log'}")

    def restart(self):
        self.stop()
        self.start()

    def rewrite(self):
        """Rewrite the append-only file, as Redis does by itself once it has grown."""
        with self.admin() as client:
            client.bgrewriteaof()
            under_way = ("aof_rewrite_in_progress", "aof_rewrite_scheduled")
            wait_until(lambda: not any(client.info("persistence")[name] for name in under_way), 20)
            assert client.info("persistence")["aof_last_bgrewrite_status"] == "ok"

    def content(self):
        with self.admin() as client:
            return content(client)


def content(client):
    reads = {
        b"hash": client.hgetall,
        b"stream": client.xrange,
        b"string": client.get,
        b"set": client.smembers,
    }
    return {key: reads[client.type(key)](key) for key in client.scan_iter()}
