"""A Redis on loopback TCP that can be stopped and killed, and a bad network in front of it."""

import select
import socket
import subprocess
import threading
import time
from contextlib import suppress

import redis
from processes import Process, free_port
from world import wait_until

from workers.broker.embedded import server_executable


def is_up(client):
    try:
        return client.ping()
    except redis.RedisError:
        return False


class ServerProcess:
    """A redis-server that a test starts, stops and kills."""

    process = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()

    def begin(self, *command):
        self.process = Process([*map(str, command)], stdout=subprocess.DEVNULL)

    def stop(self):
        """Stop it by SIGTERM, as systemd and container managers do."""
        self.process.terminate()
        assert self.process.wait() == 0

    def kill(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()


class Server(ServerProcess):
    """A server of the test's own, with its data in `directory`.

    `fsync` is when the append-only file is synchronised: "always", "everysec" or "no".
    """

    def __init__(self, directory, fsync="everysec"):
        directory.mkdir(exist_ok=True)
        self.directory, self.fsync = directory, fsync
        self.program = server_executable()
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.start()

    @property
    def append_only_file(self):
        """The file that commands are appended to: from Redis 7 on there is a base file too."""
        found = (self.directory / "appendonlydir").glob("*.incr.aof")
        return max(found, key=lambda path: int(path.name.split(".")[2]))

    def cut(self, count):
        with self.append_only_file.open("r+b") as file:
            file.truncate(self.append_only_file.stat().st_size - count)

    def start(self, *options):
        """Start it; return when it has loaded its data."""
        self.launch(*options)
        with redis.Redis(port=self.port) as client:
            wait_until(lambda: is_up(client), why="the server starts")

    def launch(self, *options):
        self.begin(
            self.program, "--port", self.port, "--bind", "127.0.0.1", "--dir", self.directory,
            "--save", "", "--appendonly", "yes", "--appendfsync", self.fsync,
            "--maxmemory-policy", "noeviction", *options,
        )  # fmt: skip


class Proxy:
    """Forwards connections on a loopback port to another one, `target`, with faults.

    Each reply is held back `delay` seconds. A black hole takes everything, in both directions, and
    passes on nothing. The next request with the first of `cuts` in it is passed on, half of its
    reply comes back, and then the line is cut. `accepted` and `cut` count connections and replies.
    """

    def __init__(self, target):
        self.target, self._closed, self._age = target, False, 0
        self.delay, self.is_black_hole, self.cuts = 0.0, False, []
        self.accepted = self.cut = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(0.1)
        self.port = self._listener.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def forget(self):
        """Make every present connection half-open: closed for Redis, open for the worker."""
        self._age += 1

    def close(self):
        self._closed = True
        while self._threads:
            self._threads.pop().join()
        self._listener.close()

    def _accept(self):
        while not self._closed:
            with suppress(TimeoutError):
                line, _ = self._listener.accept()
                self.accepted += 1
                self._threads.append(threading.Thread(target=self._serve, args=(line,)))
                self._threads[-1].start()

    def _serve(self, client):
        age, is_cut, is_lost = self._age, False, False
        with client:
            try:
                server = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                return
            with server:
                while not self._closed:
                    if age != self._age:
                        server.close()
                        self._swallow(client)
                        return
                    for source in select.select([client, server], [], [], 0.02)[0]:
                        try:
                            data = source.recv(1 << 20)
                            if not data:
                                return
                            is_lost = is_lost or self.is_black_hole
                            if is_lost:
                                continue
                            if source is client:
                                is_cut = is_cut or self._takes_cut(data)
                                server.sendall(data)
                                continue
                            time.sleep(self.delay)
                            client.sendall(data[: len(data) // 2] if is_cut else data)
                        except OSError:
                            return
                        if is_cut:
                            self.cut += 1
                            return

    def _takes_cut(self, data):
        if self.cuts and self.cuts[0] in data:
            del self.cuts[0]
            return True
        return False

    def _swallow(self, client):
        client.settimeout(0.1)
        with suppress(OSError):
            while not self._closed:
                with suppress(TimeoutError):
                    if not client.recv(1 << 20):
                        return
