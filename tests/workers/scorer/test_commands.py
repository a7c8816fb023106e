"""`scorer`: as one runs it, and as one kills it."""

import json
import random
import re
import signal
import threading
import time
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest
from published_feed import examples, own_answer, push, session, work
from world import Worker

from workers.errors import BadConfiguration
from workers.scorer import service
from workers.scorer.asker import Asker, ScorerAnswer
from workers.scorer.settings import ScorerSettings
from workers.stop import Stop


@pytest.fixture
def rows(store):
    """The examples of a feed that has published its state."""
    return learned(store)


def learned(store):
    made = examples(60)
    push(store, made)
    work(session(store), 60)
    return made


@contextmanager
def at_work(store, **settings):
    """Let a scorer answer a feed within the block, and stop in order then; yield an asker."""
    stop, feed = Stop(), store.keys.feed
    arguments = (feed, store.url, ScorerSettings(**settings), "one", stop)
    working = threading.Thread(target=service.run, args=arguments)
    working.start()
    try:
        with closing(Asker(store.url, feed)) as asker:
            yield asker
    finally:
        stop.request()
        working.join(timeout=30)
        assert not working.is_alive()


def test_a_scorer_answers_and_leaves_no_consumer_when_it_stops_in_order(store, rows):
    with at_work(store) as asker:
        found = asker.ask([b"[1,2,3]", b"[1,2]"], timeout=30)
    good, bad = (json.loads(answer.text) for answer in found)
    n, payload = store.publication().n, good["answer"]
    assert json.loads(own_answer(rows, n, [1, 2, 3], payload["id"])) == payload
    assert (good["behind"], bad["answer"]["status"]) == (60 - n, "rejected")
    assert store.call("XINFO", "CONSUMERS", store.keys.requests, "scorers") == []


def test_the_client_in_the_docs_gets_its_answer(store, rows, capsys):
    page = (Path(__file__).parents[3] / "docs/scale.md").read_text("utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.S)
    feed = store.keys.feed
    code = code.replace("{spam}", f"{{{feed}}}").replace("{{spam}}", f"{{{{{feed}}}}}")
    with at_work(store):
        exec(code.replace("[0.5, 1.0]", "[0.5, 1.0, 2.0]"), {"url": store.url})
    said = capsys.readouterr().out
    assert re.search(rf"ok \d+ {store.publication().name} \d+ \d+", said)


def test_a_scorer_of_a_feed_that_does_not_exist_says_what_to_do(redis_url):
    with pytest.raises(BadConfiguration, match="start its worker first"):
        service.run("nowhere", redis_url, ScorerSettings(), stop=Stop())


def test_a_scorer_waits_for_a_feed_that_begins_within_its_patience(store):
    with at_work(store, wait=60.0) as asker:
        time.sleep(0.05)
        learned(store)
        (found,) = asker.ask([b"[1,2,3]"], timeout=60)
    assert json.loads(found.payload)["status"] == "ok"


def test_a_scorer_that_waits_for_a_feed_stops_when_it_is_told_to(redis_url):
    stop = Stop()
    stop.request()
    service.run("nowhere", redis_url, ScorerSettings(wait=60.0), stop=stop)


def test_the_command_takes_what_it_shares_with_worker_from_flag_environment_and_file(
    run, monkeypatch, tmp_path
):
    """Each names a setting that cannot be: the message says which one was read."""
    file = tmp_path / "scorer.toml"
    file.write_text('metrics = "nowhere:0"\n')

    def said(*options):
        code, _, err = run("scorer", "nowhere", *options)
        assert code == 2
        return err

    assert "does not exist yet" in said()
    assert "nowhere:0" in said("--config", file)
    monkeypatch.setenv("ONLINE_SVM_METRICS", "elsewhere:0")
    assert "elsewhere:0" in said()
    assert "here:x" in said("--metrics", "here:x")
    monkeypatch.setenv("ONLINE_SVM_METRICS", "0")
    assert said("--log-format", "json").startswith('{"address"')


@pytest.mark.slow
def test_scorers_that_are_killed_again_and_again_answer_each_request_once(store, rows):
    """Two scorers, one killed every half a second, while 4,000 requests come and states change."""
    dice, command = random.Random(5), ("scorer", store.keys.feed, "--redis", store.url,
               "--claim-after", "0.5", "--batch", "16", "--keep", "600")  # fmt: skip
    ids, kills, running, learned = [], 0, session(store), len(rows)
    more = examples(200, first=learned)
    all_rows = [*rows, *more]
    with ExitStack() as opened:

        def begin():
            return opened.enter_context(Worker(*command))

        asker = opened.enter_context(closing(Asker(store.url, store.keys.feed)))
        scorers = [begin(), begin(), begin()]
        asker.receive(asker.send([b"[0,0,0]"]), timeout=60)
        deadline, next_kill = time.monotonic() + 150, time.monotonic()
        while len(ids) < 4000 or store.length(store.keys.requests) or kills < 6:
            assert time.monotonic() < deadline
            if len(ids) < 4000:
                ids += asker.send([json.dumps([i, 1, 2]).encode() for i in range(100)])
                push(store, more[:5])
                learned, more = learned + len(more[:5]), more[5:]
                work(running, learned)
            if time.monotonic() > next_kill and kills < 12:
                victim = dice.randrange(3)
                scorers[victim].kill()
                scorers[victim].wait()
                scorers[victim], kills = begin(), kills + 1
                next_kill = time.monotonic() + 0.5
            time.sleep(0.02)
        for one in scorers:
            one.send_signal(signal.SIGTERM)
        ended = [one.wait() for one in scorers]
        # One that was begun a moment ago does not listen to signals yet.
        assert set(ended) <= {0, -signal.SIGTERM}, ended
    compared = {}  # by n, the answers that were compared with the worker's own there
    for number, id in enumerate(ids):
        (text,) = store.call("LRANGE", store.keys.reply(id), 0, -1)
        payload = ScorerAnswer.parse(text).payload
        n = json.loads(payload)["n"]
        compared[n] = compared.get(n, 0) + 1
        if compared[n] <= 2:
            assert payload == own_answer(all_rows, n, [number % 100, 1, 2], id)
    assert len(compared) > 3, "the state did not change"
    assert int(store.call("XPENDING", store.keys.requests, "scorers")[0]) == 0
