"""A feed that a worker has answered, for all tests of the commands around it."""

import signal

import orjson
import pytest
from answered_feed import ROWS, SETTINGS, phishing
from world import work

from workers.broker import embedded
from workers.cli import app as cli


@pytest.fixture(scope="session")
def answered_url():
    """URL of the server of the answered feed."""
    with embedded.temporary() as server:
        yield server.url


@pytest.fixture(scope="session")
def source(tmp_path_factory):
    """What is pushed: real rows, and at the end one that the feed rejects."""
    path = tmp_path_factory.mktemp("source") / "rows.jsonl"
    items = [{"x": row.x, "y": row.y} for row in phishing()]
    items.append({"x": [1], "y": "true", "id": "bad one"})
    path.write_bytes(b"\n".join(map(orjson.dumps, items)))
    return path


@pytest.fixture(scope="session")
def answered(answered_url, source):
    """A feed that the real command has answered, and what it told."""
    with pytest.raises(SystemExit):
        cli.main(["push", "answered", str(source), "--redis", answered_url])
    told = work(answered_url, "answered", SETTINGS, ROWS + 1)
    return "answered", told


@pytest.fixture
def redis_url(answered_url):
    """The server of the answered feed: what differs between servers is below the commands."""
    return answered_url


@pytest.fixture
def interruptible():
    """SIGINT as in a terminal; tests that run in the background of a shell ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
