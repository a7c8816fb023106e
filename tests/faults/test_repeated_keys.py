"""A repeated `Idempotency-Key` gets the first answer, whole, as long as the feed knows the key."""

import pytest
from system_tools import package

package("starlette", "pip install 'online-svm[http]'")
package("uvicorn", "pip install 'online-svm[http]'")

from served_gateway import gateway_process  # noqa: E402
from world import World  # noqa: E402

AFTERWARDS = (9999, 5000, 1999, 1001, 1000, 999, 2, 1)
"""Answers to other ids between the first answer to a key and its repetition."""

BRIEF = ("--lease", "0.5")


@pytest.fixture
def opened(embedded_url, feed):
    """Open the world of a feed that remembers so many ids, and refits seldom."""
    worlds = []

    def open_world(window):
        changes = {"dedupe_window": window, "refit_every": 2000, "metrics_every": 1000}
        worlds.append(World(embedded_url, feed, **changes))
        return worlds[-1].__enter__()

    yield open_world
    for world in worlds:
        world.__exit__()


class Asker:
    """Sends examples to one feed by one gateway."""

    def __init__(self, client, feed):
        self._client, self._feed = client, feed

    def ask(self, key, timeout=60):
        path = f"/feeds/{self._feed}/examples?timeout={timeout}"
        return self._client.post(path, {"x": [len(key), 0, 1], "y": "a"}, Idempotency_Key=key)

    def fill(self, count, name, timeout=60):
        """Send so many other examples, each with an id of its own."""
        path = f"/feeds/{self._feed}/examples?timeout={timeout}"
        sent = [{"x": [i % 7, i % 5, i % 3], "y": "ab"[i % 2], "id": f"{name}-{i}"}
                for i in range(count)]  # fmt: skip
        for i in range(0, count, 1000):
            reply = self._client.post(path, sent[i : i + 1000])
            assert reply.status == (200 if timeout else 202)

    def answer(self, entry):
        return self._client.get(f"/feeds/{self._feed}/answers/{entry}?timeout=60")


@pytest.mark.parametrize("window", [2_000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_another_gateway_gives_the_first_answer_after_a_kill(opened, window):
    world, firsts = opened(window), {}
    counts = [count for count in AFTERWARDS if count < window]
    with (
        world.worker(*BRIEF) as worker,
        gateway_process(world.url, world.feed) as (gateway, client),
    ):
        asker = Asker(client, world.feed)
        asker.fill(100, "before")
        for count, following in zip(counts, (*counts[1:], 0), strict=True):
            firsts[count] = asker.ask(f"key-{count}")
            assert firsts[count].status == 200
            asker.fill(count - following - bool(following), f"after-{count}")
        worker.kill()
        gateway.kill()
    with gateway_process(world.url, world.feed) as (_, client), world.worker(*BRIEF):
        asker = Asker(client, world.feed)
        for count, first in firsts.items():
            again = asker.ask(f"key-{count}")
            assert (again.status, again.body) == (200, first.body), count
            assert again.headers["Content-Location"] == first.headers["Location"]


def test_a_repetition_that_got_202_gets_the_first_answer_too(opened):
    world = opened(10_000)
    world.push(1)
    world.work()
    with (
        gateway_process(world.url, world.feed) as (_, one),
        gateway_process(world.url, world.feed) as (_, other),
    ):
        one, other = Asker(one, world.feed), Asker(other, world.feed)
        waiting = [one.ask("key", timeout=0)]
        one.fill(1500, "other", timeout=0)
        waiting.append(other.ask("key", timeout=0))
        assert [reply.status for reply in waiting] == [202, 202]
        ((first,), (repeated,)) = (reply.json["ids"] for reply in waiting)
        with world.worker(*BRIEF):
            answers = [other.answer(first), other.answer(repeated), one.ask("key")]
    assert {(reply.status, reply.body) for reply in answers} == {(200, answers[0].body)}
    assert answers[0].json["status"] == "warming"
    assert "Content-Location" not in answers[0].headers
    assert answers[1].headers["Content-Location"] == f"/feeds/{world.feed}/answers/{first}"
