"""A Redis on loopback TCP that can be stopped, killed, and started again with what it kept."""

import socket
import subprocess

import redis
from processes import Process
from world import wait_until

from workers.broker.embedded import server_executable


def is_up(client):
    """Return whether a server answers, by a client of the library."""
    try:
        return client.ping()
    except redis.RedisError:
        return False


class Server:
    """A server of the test's own, with its data in `directory`.

    `fsync` says when the append-only file is synchronised: "always", "everysec" or "no".
    `program` is another redis-server than the embedded one.
    """

    def __init__(self, directory, fsync="everysec", program=None):
        directory.mkdir(exist_ok=True)
        self.directory, self.fsync = directory, fsync
        self.program = program or server_executable()
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._process = None
        self.start()

    @property
    def append_only_file(self):
        return self.directory / "appendonly.aof"

    def cut(self, count):
        """Take so many bytes from the end of the append-only file."""
        with self.append_only_file.open("r+b") as file:
            file.truncate(self.append_only_file.stat().st_size - count)

    def start(self, *options):
        """Start it; return when it has loaded its data."""
        self.launch(*options)
        with redis.Redis(port=self.port) as client:
            wait_until(lambda: is_up(client), 20.0, "the server starts")

    def launch(self, *options):
        """Start it without waiting."""
        command = [self.program, "--port", str(self.port), "--bind", "127.0.0.1"]
        command += ["--dir", str(self.directory), "--save", "", "--appendonly", "yes"]
        command += ["--appendfsync", self.fsync, "--maxmemory-policy", "noeviction", *options]
        self._process = Process(command, stdout=subprocess.DEVNULL)

    def stop(self):
        """Stop it in order."""
        self._process.terminate()
        self._process.wait(20)

    def kill(self):
        """Kill it in the middle of whatever it does."""
        self._process.kill()
        self._process.wait()
