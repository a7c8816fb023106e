"""A Redis on loopback TCP that can be stopped, killed, and started again with what it kept."""

import socket
import subprocess
import time

import redis
from processes import Process

from workers.broker.embedded import server_executable


class Server:
    """A server of the test's own, with its data in `directory`.

    Parameters
    ----------
    directory : Path
    fsync : str
        When the append-only file is synchronised: "always" or "everysec".
    program : str, optional
        Another redis-server than the embedded one.
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

    def start(self, *options):
        """Start it; return when it has loaded its data."""
        self.launch(*options)
        deadline = time.monotonic() + 20.0
        with redis.Redis(port=self.port) as client:
            while True:
                try:
                    client.ping()
                except redis.RedisError:
                    assert time.monotonic() < deadline, "the server does not start"
                    time.sleep(0.02)
                else:
                    return

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
