"""A receiver of alarms for tests: an HTTP server whose behaviour a test chooses."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Received:
    """What was posted; `status` is what the next requests are answered with.

    Alarms of the feeds in `refused` are answered with 500.
    """

    def __init__(self):
        self.refused = set()
        self.status, self.requests, self.arrived = 204, [], threading.Condition()
        self.blocks = threading.Event()
        self.blocks.set()

    def add(self, headers, body):
        with self.arrived:
            self.requests.append((headers, body))
            self.arrived.notify_all()

    def wait(self, count, seconds=30.0):
        """Wait until so many requests came; return the messages of all."""
        with self.arrived:
            assert self.arrived.wait_for(lambda: len(self.requests) >= count, seconds)
        return self.messages

    @property
    def messages(self):
        return [json.loads(body) for _, body in self.requests]

    @property
    def keys(self):
        return [message["key"] for message in self.messages]


@contextmanager
def receiving(port=0):
    """Yield what a receiver on this machine gets; its URL is `url`."""
    received = Received()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.add(dict(self.headers), body)
            received.blocks.wait(30)
            is_refused = json.loads(body).get("feed") in received.refused
            self.send_response(500 if is_refused else received.status)
            self.send_header("Location", "/elsewhere")
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    received.url = f"http://127.0.0.1:{server.server_address[1]}/hook?token=geheim"
    try:
        yield received
    finally:
        received.blocks.set()
        server.shutdown()
        server.server_close()
        thread.join()
