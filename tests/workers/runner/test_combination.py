"""`combine` on a real Redis, over the answers of two real workers with different configurations."""

import json
import random
import re
import subprocess
import sys
import time
from contextlib import ExitStack

import numpy as np
import orjson
import pytest
from session_steps import advance, assembled, refitter
from world import Worker, wait_until

from online_svm.calibration.evidential.masses import from_bounds
from online_svm.predictor.combiner import Combiner, CombinerConfig
from online_svm.rejections import reason_of
from workers.admin.reset import reset
from workers.broker import embedded
from workers.broker.store import Store
from workers.config.settings import WorkerSettings
from workers.errors import Fenced, InputLost, StateLost
from workers.message.schema import CombinedMessage
from workers.reading.answers import payload
from workers.reading.registry import names
from workers.reading.status import read_status
from workers.runner import combination
from workers.session.preflight import open_store
from workers.stop import Stop

COUNT = 700
SOURCES = ("rbf", "linear")
COMMON = {
    "classes": ("a", "b"),
    "window": 200,
    "refit_every": 50,
    "refit_lag": 0,
    "metrics_every": 100,
}
OWN = {
    "rbf": {"maps": ("platt", "evidential-logistic")},
    "linear": {"kernel": "linear", "maps": ("platt",)},
}


@pytest.fixture(scope="module")
def redis_url():
    """One server is enough: what differs between servers is below the store."""
    with embedded.temporary() as server:
        yield server.url


def examples():
    """Examples with ids; number 40 is rejected by every feed."""
    generator = np.random.default_rng(1)
    X = generator.normal(size=(COUNT, 3)).round(6)
    y = np.where(X[:, 0] + X[:, 1] * X[:, 2] + generator.normal(size=COUNT) > 0, "b", "a")
    rows = [(f"id-{i}", json.dumps(x.tolist()), str(y[i])) for i, x in enumerate(X)]
    rows[40] = (rows[40][0], "[1,2]", rows[40][2])
    return rows


def answer(url, feed, rows, settings=None):
    """Fill a feed and let a worker answer it, in this process."""
    settings = WorkerSettings(**(COMMON | (OWN.get(feed, {}) if settings is None else settings)))
    stop = Stop()
    with open_store(feed, settings, url, stop) as store, refitter(settings) as refits:
        for i, (name, x, label) in enumerate(rows):
            fields = (
                ["x", x] + ["y", label] * (label is not None) + ["id", name] * (name is not None)
            )
            store.call("XADD", store.keys.input, f"{i + 1}-{len(feed)}", *fields)
        engine = assembled(store, settings, refits, stop)
        while engine.position.seq < len(rows):
            advance(engine)
        store.register()


@pytest.fixture(scope="module")
def sources(redis_url):
    """Two feeds over the same ids; the second got them late, in another order, and not all."""
    rows = examples()
    answer(redis_url, "rbf", rows)
    late = sorted(range(COUNT), key=lambda i: i + 9 * random.Random(i).random())
    answer(redis_url, "linear", [rows[i] for i in late if i % 100 != 77 or i > 600])
    return redis_url


def payloads(url, feed):
    """Everything a combination wrote."""
    with Store(url, feed) as store:
        return [
            [(entry[0], entry[1]) for page in store.pages(key, b"0-0") for entry in page]
            for key in (store.keys.out, store.keys.dlq)
        ]


def two(url, feed, first, second, window, **settings):
    """Let workers answer two feeds, and combine them into `feed`; return what came of it."""
    names = [f"{feed}-{i}" for i in range(2)]
    for name, rows in zip(names, (first, second), strict=True):
        answer(url, name, rows, settings)
    run(names, feed, url, window)
    return messages(url, feed)


def messages(url, feed):
    out, dlq = payloads(url, feed)
    letters = [dict(zip(fields[::2], fields[1::2], strict=True)) for _, fields in dlq]
    return [orjson.loads(fields[1]) for _, fields in out], letters


def run(feeds, into, url, join_window=None, batch=256, observe=None):
    """Combine what is there; return how many answers wait."""
    return combination.run(
        combination.Combined(feeds, into, {}, join_window, once=True), url,
        settings=WorkerSettings(batch=batch), observe=observe,
    )  # fmt: skip


@pytest.fixture(scope="module")
def whole(sources):
    """What one undisturbed run writes."""
    waiting = run(SOURCES, "whole", sources, 20)
    assert waiting == 0
    return payloads(sources, "whole")


@pytest.fixture
def combine(run_command):
    """Run the command; return exit code, standard output, standard error."""
    return lambda *arguments: run_command("combine", *arguments)


def test_every_answer_is_that_of_a_combiner_fed_with_what_the_sources_published(whole, sources):
    combiner = Combiner(CombinerConfig(classes=("a", "b")))
    labels = {name: label for name, _, label in examples()}
    said = {}
    for feed in SOURCES:
        with Store(sources, feed) as store:
            for page in store.pages(store.keys.out, b"0-0"):
                for entry in page:
                    message = orjson.loads(payload(entry))
                    said[feed, message["id"]] = message
    compared = 0
    for message in messages(sources, "whole")[0]:
        if message["status"] != "ok":
            continue
        bounds = np.array([[0.0, 1.0], [0.0, 1.0]])
        first, second = (said[feed, message["id"]] for feed in SOURCES)
        if first["status"] == "ok":
            bounds[0] = first["map_intervals"]["evidential-logistic"][1]
        if second["status"] == "ok":
            bounds[1] = second["venn"][1]
        expected = combiner.step(from_bounds(bounds[:, 0], bounds[:, 1]), labels[message["id"]])
        assert message["probabilities"] == [1.0 - expected.probability, expected.probability]
        assert message["venn"][1] == [expected.belief, expected.plausibility]
        probability = expected.probability
        assert message["intervals"][1] == [
            min(expected.belief, probability), max(expected.plausibility, probability)
        ]  # fmt: skip
        assert message["method"] == ("platt" if expected.fitted_on else "pignistic")
        assert message["maps"]["pignistic"][1] == expected.pignistic
        assert message["scores"] == [expected.score]
        assert message["svm_label"] == expected.decision
        assert (message["n"], message["guarantee"]) == (expected.n, "none")
        compared += 1
    assert compared > 600


def test_there_is_one_answer_an_entry_of_the_first_feed_in_its_order(whole, sources):
    out, _ = whole
    assert [entry_id for entry_id, _ in out] == [b"%d-3" % (i + 1) for i in range(len(out))]
    found, _ = messages(sources, "whole")
    assert [message["seq"] for message in found] == list(range(len(found)))
    assert {message["status"] for message in found[:5]} == {"warming"}
    assert all(
        CombinedMessage.model_validate(message).payload() == fields[1]
        for message, (_, fields) in zip(found, out, strict=True)
        if message["status"] != "rejected"
    )
    with Store(sources, "whole") as store:
        state = read_status(store)
        assert (state.seq, state.out, state.dlq) == (len(out), len(out), len(whole[1]))
        assert ("whole" in names(store), state.holder) == (True, None)


def test_ids_that_one_feed_lacks_are_reported_in_the_dead_letters(whole, sources):
    found, letters = messages(sources, "whole")
    rejected = {m["id"]: m["code"] for m in found if m["status"] == "rejected"}
    assert rejected == {"id-40": "no_answer"} | {
        f"id-{i}77": "unmatched" for i in ("", 1, 2, 3, 4, 5)
    }
    unmatched = [letter for letter in letters if letter[b"code"] == b"unmatched"]
    assert len(unmatched) == 6
    told = reason_of(json.loads(unmatched[0][b"about"]))
    assert told == "feed 'linear' has no answer to id 'id-77' within 20 places"
    assert len([letter for letter in letters if letter[b"code"] == b"no_answer"]) == 2


@pytest.mark.parametrize("batch", [1, 7, 64])
def test_batches_and_stops_at_any_commit_change_no_byte(whole, sources, feed, batch):
    class Died(Exception):
        pass

    def die(_outcome):
        if choose.random() < batch / 150:
            raise Died

    choose = random.Random(batch)
    deaths = 0
    while True:
        try:
            run(SOURCES, feed, sources, 20, batch, die)
            break
        except Died:
            deaths += 1
    assert deaths > 0
    assert payloads(sources, feed) == whole


def reads(store):
    """Return how many times streams of the server were read so far."""
    told = store.call("INFO", "commandstats").decode()
    return re.search(r"cmdstat_xrange:calls=(\d+)", told)[1]


def copied(url, feed, name):
    """Copy a feed of the server, but for its reports; return the stores of both."""
    store, made = (Store(url, each) for each in (feed, name))
    for key in ("state", "input", "out"):
        dump = store.call("DUMP", getattr(store.keys, key))
        made.call("RESTORE", getattr(made.keys, key), 0, dump)
    return store, made


def test_what_comes_later_is_combined_as_if_it_had_been_there(whole, redis_url, sources, feed):
    """The sources are copied, cut, combined and completed; they are read only when they grow."""
    names = [f"{feed}-{name}" for name in SOURCES]
    with ExitStack() as opened:
        for source, name in zip(SOURCES, names, strict=True):
            store, made = map(opened.enter_context, copied(redis_url, source, name))
        later = made.call("XRANGE", made.keys.out, "-", "+")[100:]
        made.call("DEL", made.keys.out)
        for entry_id, fields in store.call("XRANGE", store.keys.out, "-", "+")[:100]:
            made.call("XADD", made.keys.out, entry_id, *fields)

        def is_quiet():
            before = reads(store)
            time.sleep(0.5)
            return reads(store) == before

        command = ("combine", *names, "--into", feed, "--redis", redis_url, "--join-window", "20")
        worker = opened.enter_context(Worker(*command))
        combined = opened.enter_context(Store(redis_url, feed))
        worker.wait_for(combined, 51)
        wait_until(is_quiet)
        assert combined.length(combined.keys.out) < 110
        for entry_id, fields in later:
            made.call("XADD", made.keys.out, entry_id, *fields)
        worker.wait_for(combined, len(whole[0]))
        worker.stopped()
    again = [
        [(entry_id, fields[1].replace(feed.encode() + b"-", b"")) for entry_id, fields in entries]
        for entries in payloads(redis_url, feed)[:1]
    ]
    assert again == [[(entry_id, fields[1]) for entry_id, fields in whole[0]]]


@pytest.mark.parametrize("batch", [1, 7, 64])
def test_an_older_writer_is_fenced_also_at_its_last_commit_and_writes_nothing(
    whole, sources, feed, batch
):
    ends = []
    run(SOURCES, f"{feed}-whole", sources, 20, batch, lambda done: ends.append(done.after.seq))
    for upto in (ends[0], ends[-2]):

        def overtake(outcome, upto=upto):
            if outcome.after.seq == upto:
                with Store(sources, f"{feed}-{upto}") as store:
                    store.call("HINCRBY", store.keys.state, "epoch", 1)

        with pytest.raises(Fenced, match="newer worker"):
            run(SOURCES, f"{feed}-{upto}", sources, 20, batch, overtake)
        assert payloads(sources, f"{feed}-{upto}")[0] == whole[0][:upto]
        run(SOURCES, f"{feed}-{upto}", sources, 20)
        assert payloads(sources, f"{feed}-{upto}") == whole


STOPPED_WHILE_TAKEN_OVER = """
import os, signal, sys
from workers.monitor.watch import WorkerWatch
from workers.runner.combination import Combined, run

class Watch(WorkerWatch):
    def on_feed_added(self, *given):
        told = super().on_feed_added(*given)
        told.fenced = lambda cursor: os.kill(os.getpid(), signal.SIGTERM)
        return told

print(run(Combined(("rbf", "linear"), sys.argv[1]), sys.argv[2], watch=Watch()))
"""


def test_a_stop_while_the_feed_is_taken_over_is_in_order(sources, feed):
    command = [sys.executable, "-c", STOPPED_WHILE_TAKEN_OVER, feed, sources]
    found = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert found.returncode == 0, found.stderr
    assert found.stdout.splitlines()[-1] == "0"  # answers wait


def test_a_commit_whose_reply_was_lost_is_not_repeated(whole, sources, feed, monkeypatch):
    send = Store.send

    def twice(self, commit):
        self.confirm(commit, send(self, commit))
        return send(self, commit)

    monkeypatch.setattr(Store, "send", twice)
    run(SOURCES, feed, sources, 20)
    assert payloads(sources, feed) == whole


def test_a_combination_that_redis_lost_is_not_begun_again_by_itself(sources, combine, feed):
    begun = (*SOURCES, "--into", feed, "--redis", sources, "--join-window", "20", "--once")
    assert combine(*begun)[0] == 0
    with Store(sources, feed) as store:
        store.call("DEL", *store.types(), *store.snapshot_keys(), store.keys.events)
        code, _, err = combine(*begun)
        assert (code, f"online-svm reset {feed}" in err) == (4, True)
        assert store.types() == {}
        reset(store, with_input=False)
        assert combine(*begun)[0] == 0


def test_both_rules_and_both_maps_can_be_asked_for(sources, combine, feed):
    options = ("--rule", "cautious", "--recalibration", "isotonic", "--join-window", "20", "--once")
    code, _, err = combine(*SOURCES, "--into", feed, "--redis", sources, *options)
    assert code == 0
    assert "dead letters" in err
    assert "source" not in err.split("evidence=")[0]
    assert "evidence=evidential-logistic" in err
    assert "evidence=venn" in err
    last = messages(sources, feed)[0][-1]
    assert (last["rule"], last["guarantee"]) == ("cautious", "none")
    assert last["calibration"] > 5


def test_labels_that_contradict_each_other_are_reported_and_not_learned(redis_url, feed):
    rows = examples()[:120]
    flipped = [(name, x, "a" if i == 100 else None) for i, (name, x, _) in enumerate(rows)]
    flipped[100] = (rows[100][0], rows[100][1], "ab"[rows[100][2] == "a"])
    found, letters = two(redis_url, feed, rows, flipped, 0)
    # A place further on is needed to decide only where an id is missing.
    assert len(found) == 120
    assert [letter[b"code"] for letter in letters] == [b"no_answer", b"no_answer", b"label"]
    assert [message["n"] - found[100]["n"] for message in found[101:103]] == [0, 1]


def test_answers_without_an_id_are_rejected_by_name(redis_url, feed):
    rows = examples()[:60]
    nameless = [*rows[:30], (None, *rows[30][1:]), *rows[31:]]
    found, letters = two(redis_url, feed, nameless, rows, 5)
    assert (found[30]["status"], found[30]["code"]) == ("rejected", "no_id")
    assert "id" not in found[30]
    assert [(letter[b"code"], b"id-30" in letter[b"about"]) for letter in letters] == [
        (b"no_id", False), (b"unmatched", True), (b"no_answer", False), (b"no_answer", False),
    ]  # fmt: skip


@pytest.mark.parametrize("repeating", [0, 1])
def test_a_repeat_that_a_source_answered_as_one_is_joined_to_nothing(redis_url, feed, repeating):
    rows = examples()[:60]
    both = [rows, rows]
    both[repeating] = [*rows[:31], rows[30], *rows[31:]]
    found, letters = two(redis_url, feed, *both, 5, dedupe_window=10)
    joined = [message["id"] for message in found if message["status"] != "rejected"]
    assert joined == [name for i, (name, _, _) in enumerate(rows) if i != 40]
    assert [letter[b"code"] for letter in letters].count(b"no_id") == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("rbf", "--into", "new"), "name at least two feeds"),
        (("rbf", "rbf", "--into", "new"), "feed 'rbf' is named twice"),
        (("rbf", "nobody", "--into", "new"), "no feed 'nobody'"),
        (("rbf", "linear", "--into", "linear"), "is one of the sources"),
        (("rbf", "three", "--into", "new"), "feed 'three' has 3 classes"),
        (("rbf", "found", "--into", "new"), "feed 'found' discovers its classes"),
        (("rbf", "others", "--into", "new"), "has the classes c, d, but 'rbf' has a, b"),
        (("rbf", "linear", "--into", "three"), "another configuration"),
        (("rbf", "linear", "--into", "pushed"), "input of its own"),
        (("rbf", "whole", "--into", "new"), "feed 'whole' is itself a combination"),
        (("rbf", "a b", "--into", "new"), "feed name 'a b'"),
    ],
)
def test_what_cannot_be_combined_is_one_line_and_exit_code_2(
    whole, sources, others, combine, arguments, said
):
    code, out, err = combine(*arguments, "--redis", sources, "--once")
    assert (code, out) == (2, "")
    lines = [line for line in err.splitlines() if "level=info" not in line]
    assert len(lines) == 1
    assert said in lines[0]
    with Store(sources, "new") as store:
        assert store.types() == {}


@pytest.fixture(scope="module")
def others(redis_url):
    """Feeds that cannot be sources, or targets."""
    rows = examples()[:1]
    answer(redis_url, "three", rows, {"classes": ("a", "b", "c")})
    answer(redis_url, "found", rows, {"classes": None})
    answer(redis_url, "others", [(rows[0][0], rows[0][1], "c")], {"classes": ("c", "d")})
    with Store(redis_url, "pushed") as store:
        store.call("XADD", store.keys.input, "*", "x", "[1]")


def test_answers_or_labels_that_went_before_they_were_combined_end_it(sources, feed):
    store, cut = copied(sources, "linear", f"{feed}-cut")
    with store, cut:
        cut.call("XTRIM", cut.keys.input, "MAXLEN", 300)
        with pytest.raises(InputLost, match=r"the input at .* --keep-input"):
            run(("rbf", f"{feed}-cut"), feed, sources)
        cut.call("XTRIM", cut.keys.out, "MAXLEN", 300)
        with pytest.raises(InputLost, match=r"answers 0 to .* --retain-out"):
            run(("rbf", f"{feed}-cut"), feed, sources)
        assert payloads(sources, feed) == [[], []]


def test_a_source_that_was_reset_or_a_state_that_is_gone_ends_it(redis_url, feed):
    rows, names = examples()[:60], [f"{feed}-{i}" for i in range(2)]
    two(redis_url, feed, rows, rows, 2)
    with Store(redis_url, names[1]) as store, Store(redis_url, feed) as target:

        def ends_with(match):
            with pytest.raises(StateLost, match=match):
                run(names, feed, redis_url, 2)

        reset(store, with_input=True)
        answer(redis_url, names[1], rows[:10], {})
        ends_with("was reset or lost answers")
        target.call("HDEL", target.keys.state, "joined")
        ends_with("where its sources stand")
        target.call("DEL", target.keys.state)
        ends_with("the state was lost")


READING = {
    ("tail",): "pignistic",
    ("tail", "--stream", "dlq"): "unmatched",
    ("export",): "pignistic b",
    ("status",): "700",
}


@pytest.mark.parametrize(("command", "expected"), READING.items())
def test_the_commands_that_read_a_feed_read_a_combination(
    whole, sources, run_command, command, expected
):
    code, told, _ = run_command(command[0], "whole", *command[1:], "--redis", sources)
    assert (code, expected in told) == (0, True)


REFUSED = {
    ("worker", "whole"): "another configuration",
    ("backup", "whole", "--out", "nowhere"): "it is a combination. Back up its sources",
    ("verify", "whole"): "combination",
}


@pytest.mark.parametrize(("command", "said"), REFUSED.items(), ids=[key[0] for key in REFUSED])
def test_what_needs_an_input_of_the_feed_is_refused_to_a_combination(
    whole, sources, run_command, tmp_path, monkeypatch, command, said
):
    monkeypatch.chdir(tmp_path)
    code, _, err = run_command(*command, "--redis", sources)
    assert (code, said in err, [*tmp_path.iterdir()]) == (2, True, [])
    assert payloads(sources, "whole") == whole
