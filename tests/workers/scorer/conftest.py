"""A desk: a feed, its worker, its scorers and an asker."""

import json
from contextlib import ExitStack, closing

import pytest
from published_feed import examples, push, session, work
from world import wait_until

from workers.broker.feed_reader import FeedReader
from workers.broker.request_queue import RequestQueue
from workers.message.schema import ReplyMessage, UnavailableMessage
from workers.scorer.asker import Asker
from workers.scorer.newest_state import NewestState
from workers.scorer.scorer import Scorer
from workers.scorer.settings import ScorerSettings
from workers.stop import Stop


class Desk:
    """A feed with a worker, scorers and an asker, all in this process."""

    def __init__(self, store):
        self.store, self.rows, self._opened = store, [], ExitStack()
        self.running = session(store)
        self.asker = self._opened.enter_context(closing(Asker(store.url, store.keys.feed)))

    def learn(self, count):
        more = examples(count, first=len(self.rows))
        push(self.store, more)
        self.rows += more
        work(self.running, len(self.rows))

    def scorer(self, name="one", batch=64, counts=None, retry_timeout=0.0, **settings):
        url, feed = self.store.url, self.store.keys.feed
        reader = self._opened.enter_context(closing(FeedReader(url, feed)))
        queue = RequestQueue(url, feed, name, Stop(), batch=batch, retry_timeout=retry_timeout)
        self._opened.callback(queue.close)
        made = Scorer(queue, NewestState(reader), ScorerSettings(**settings), Stop(), counts=counts)
        queue.ensure_group()
        return made

    def ask(self, scorer, rows):
        """Return the answers to some rows after one turn of a scorer."""
        ids = self.asker.send([json.dumps(x).encode() for x in rows])
        scorer.turn()
        found = self.asker.receive(ids, timeout=30.0)
        return [found[id] for id in ids]

    def refusal(self, scorer):
        """Return the code of a request without an answer, and its reply."""
        (answer,) = self.ask(scorer, [[1, 2, 3]])
        return UnavailableMessage.model_validate_json(answer.payload).code, answer

    def request(self, *fields):
        return self.store.call("XADD", self.store.keys.requests, "*", *fields).decode()

    def reply(self, id):
        """Return the answer that was written under an id, as JSON; None without one."""
        found = self.store.call("LRANGE", self.store.keys.reply(id), 0, -1)
        assert len(found) <= 1, "a request has two answers"
        if not found:
            return None
        return json.loads(ReplyMessage.model_validate_json(found[0]).payload())["answer"]

    def waiting(self):
        pending = self.store.call("XPENDING", self.store.keys.requests, "scorers")
        return self.store.length(self.store.keys.requests), int(pending[0])

    def serve(self, scorer):
        wait_until(lambda: scorer.turn() < 0 or self.waiting() == (0, 0))

    def close(self):
        self._opened.close()


@pytest.fixture
def empty_desk(store):
    with closing(Desk(store)) as desk:
        yield desk


@pytest.fixture
def desk(empty_desk):
    """A desk whose feed has learned sixty examples, and published its state."""
    empty_desk.learn(60)
    return empty_desk
