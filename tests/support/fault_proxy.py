"""A bad network between a worker and Redis: delays, cut replies, half-open lines, black holes."""

import select
import socket
import threading
import time
from contextlib import suppress


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
        """Make every present connection half-open: Redis is told that it ended, the worker not."""
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
