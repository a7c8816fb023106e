"""Alarms of feeds, a webhook that posts them, and an HTTP server that receives them."""

import json
import threading
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from processes import LIMIT

from online_svm.stream.alarm import Alarm
from workers.errors import WorkerError
from workers.message.encode import encode_alarms
from workers.monitor.delivery_queue import GROUP
from workers.monitor.webhook import Webhook
from workers.monitor.webhook_post import Receiver


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

    def wait(self, count, seconds=LIMIT):
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
def receiving():
    """Yield what a receiver on this machine gets; its URL is `url`."""
    received = Received()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.add(dict(self.headers), body)
            received.blocks.wait(LIMIT)
            is_refused = json.loads(body).get("feed") in received.refused
            self.send_response(500 if is_refused else received.status)
            self.send_header("Location", "/elsewhere")
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
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


def alarm(n):
    return Alarm(n, "calibration", "overall", None, "tolerant", 4.7, 4.6, 10)


def raise_alarms(store, count, first=1, together=1, closed=True):
    """Raise alarms, an entry each; with `closed` each incident ends before the next alarm."""
    if closed:
        told_already = f"{2**62}-0"
        with suppress(WorkerError):  # it has the group
            store.call("XGROUP", "CREATE", store.keys.met, GROUP, told_already, "MKSTREAM")
    for i in range(first, first + count):
        text = encode_alarms([alarm(10 * i + j) for j in range(together)], i)
        store.call("XADD", store.keys.alarms, f"{i}-0", "p", text)
        if closed:
            report = json.dumps({"n": 10 * i + together, "monitors": {"open": []}})
            store.call("XADD", store.keys.met, f"{i}-1", "p", report)


@contextmanager
def posting(url, received, secret=None, seconds=20.0, look=0.02):
    """Run a webhook in a thread, with short waits; a receiver may take `seconds` to answer."""
    webhook = Webhook(url, Receiver(received.url, secret, seconds), first=0.02, cap=0.05, poll=look)
    thread = threading.Thread(target=webhook.run, daemon=True)
    thread.start()
    try:
        yield webhook
    finally:
        webhook.end()
        thread.join(LIMIT)
        assert not thread.is_alive()


@contextmanager
def delivering(store, received, secret=None, is_at_work=True, **options):
    with posting(store.url, received, secret, **options) as webhook:
        alarms = webhook.add(store.keys.feed)
        if is_at_work:
            alarms.on_started(cursor(store))
        yield alarms


def cursor(store):
    return store.call("HGET", store.keys.state, "cursor") or b"0-0"


def pending(store):
    return store.call("XPENDING", store.keys.alarms, "osvm-webhook")[0]
