"""Feeds with alarms, and a webhook that posts them, for tests."""

import json
import threading
from contextlib import contextmanager, suppress

from processes import LIMIT

from online_svm.stream.alarm import Alarm
from workers.errors import WorkerError
from workers.message.encode import encode_alarms
from workers.monitor.alarm_queue import GROUP
from workers.monitor.webhook import Webhook
from workers.monitor.webhook_post import Receiver


def alarm(n):
    return Alarm(n, "calibration", "overall", None, "tolerant", 4.7, 4.6, 10)


def raise_alarms(store, count, first=1, together=1, closed=True):
    """Raise alarms, an entry each; `closed`, each is of an incident whose end was told before."""
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
def posting(url, received, secret=None, seconds=0.5, look=0.02):
    """Run a webhook in a thread, with short waits."""
    webhook = Webhook(url, Receiver(received.url, secret, seconds), first=0.02, cap=0.05, look=look)
    thread = threading.Thread(target=webhook.run, daemon=True)
    thread.start()
    try:
        yield webhook
    finally:
        webhook.end()
        thread.join(LIMIT)
        assert not thread.is_alive()


@contextmanager
def delivering(store, received, secret=None, is_at_work=True, seconds=0.5):
    """Deliver the alarms of one feed."""
    with posting(store.url, received, secret, seconds) as webhook:
        alarms = webhook.add(store.keys.feed)
        if is_at_work:
            alarms.begins(cursor(store))
        yield alarms


def cursor(store):
    return store.call("HGET", store.keys.state, "cursor") or b"0-0"


def pending(store):
    return store.call("XPENDING", store.keys.alarms, "osvm-webhook")[0]
