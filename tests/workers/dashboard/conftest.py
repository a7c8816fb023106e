"""Feeds for the page, closed at the end of a test."""

import http.client
import threading

import pytest
from dashboard_feed import Feed
from processes import LIMIT

from workers.dashboard.server import Dashboard


@pytest.fixture
def feeds():
    """Make a feed by URL and name; close its connection at the end."""
    made = []

    def make(url, name):
        made.append(Feed(url, name))
        return made[-1]

    yield make
    for one in made:
        one.store.close()


@pytest.fixture
def serve(embedded_url):
    """Serve a page in a thread; return a way to send it a request."""
    running = []

    def begin(**options):
        page = Dashboard(embedded_url, ("mail",), port=0, **options)
        running.append(page.__enter__())

        def ask(method, path, body=None, **headers):
            client = http.client.HTTPConnection("127.0.0.1", page.port, timeout=LIMIT)
            form = {"Content-Type": "application/x-www-form-urlencoded"} if body else {}
            client.request(method, path, body, headers | form)
            reply = client.getresponse()
            found = reply.status, dict(reply.getheaders()), reply.read().decode()
            client.close()
            return found

        ask.page = page
        return ask

    yield begin
    for page in running:
        page.__exit__()
    assert [thread.name for thread in threading.enumerate() if thread.name == "dashboard"] == []
