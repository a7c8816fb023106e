"""The commands around one feed, against a real Redis and a real worker."""

import csv
import io
import os
import re
import signal
import subprocess
import sys
import time

import orjson
import pytest
from commands import flags_of, work
from processes import Process

from online_svm.config import PredictorConfig
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.stream.example import Example
from workers.broker import embedded
from workers.broker.store import Store
from workers.cli import app as cli
from workers.feed.keys import REGISTRY, FeedKeys
from workers.push.ingest import push, shuffled
from workers.push.sources import Reading, rows
from workers.reading.answers import newest, payload
from workers.reading.registry import names

SETTINGS = {
    "classes": "true,false",
    "window": "200",
    "refit_every": "50",
    "refit_lag": "0",
    "metrics_every": "40",
}
FLAGS = flags_of(SETTINGS)
ROWS = 180
SEED = 3


@pytest.fixture(scope="module")
def redis_url():
    """One server is enough here: what differs between servers is below the commands."""
    with embedded.temporary() as server:
        yield server.url


@pytest.fixture
def run(run_command, redis_url):
    """Run a command on the test's Redis; return exit code, standard output, standard error."""
    return lambda *arguments: run_command(*arguments, "--redis", redis_url)


def push_phishing(feed, *more):
    return ("push", feed, "Phishing", "--shuffle", str(SEED), "--limit", str(ROWS), *more)


def phishing():
    return shuffled(rows("Phishing", Reading()), SEED)[:ROWS]


def copy(url, source, target, *names):
    """Copy keys of one feed to another; return the store of the copy's keys as they now are."""
    with Store(url, source) as store, Store(url, target) as made:
        for name in names:
            dump = store.call("DUMP", getattr(store.keys, name))
            made.call("RESTORE", getattr(made.keys, name), 0, dump)


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """What is pushed: real rows, and at the end one that the feed rejects."""
    path = tmp_path_factory.mktemp("source") / "rows.jsonl"
    items = [{"x": row.x, "y": row.y} for row in phishing()]
    items.append({"x": {"age": 1}, "y": "true", "id": "bad one"})
    path.write_bytes(b"\n".join(map(orjson.dumps, items)))
    return path


@pytest.fixture(scope="module")
def answered(redis_url, source):
    """A feed that the real command has answered, and what it told."""
    with pytest.raises(SystemExit):
        cli.main(["push", "answered", str(source), "--redis", redis_url])
    told = work(redis_url, "answered", SETTINGS, ROWS + 1, source.with_suffix(".log"))
    return "answered", told


def test_push_sends_the_rows_in_the_order_of_the_seed(run, store, feed):
    code, out, err = run(*push_phishing(feed))
    assert (code, out) == (0, "")
    assert f"{ROWS} rows pushed to feed '{feed}'" in err
    expected = phishing()
    sent = [dict(zip(e[1][::2], e[1][1::2], strict=True))
            for e in newest(store, store.keys.input, 1000)]  # fmt: skip
    assert [orjson.loads(fields[b"x"]) for fields in sent] == [row.x for row in expected]
    assert [fields[b"y"].decode() for fields in sent] == [row.y for row in expected]


def test_push_can_leave_out_names_and_labels_and_rows(run, store, feed):
    run("push", feed, "Phishing", "--arrays", "--no-label", "--skip", "5", "--limit", "2")
    wanted = list(rows("Phishing", Reading()))[5:7]
    sent = newest(store, store.keys.input, 10)
    assert [e[1][0] for e in sent] == [b"x", b"x"]
    assert [orjson.loads(e[1][1]) for e in sent] == [list(row.x.values()) for row in wanted]
    assert [len(e[1]) for e in sent] == [2, 2]


def test_one_row_is_no_rows(run, feed):
    assert "1 row pushed to" in run("push", feed, "Phishing", "--limit", "1")[2]
    assert run("fork", feed)[2].startswith("1 entry copied; ")


def test_push_keeps_to_its_rate(run, feed):
    began = time.monotonic()
    run("push", feed, "Phishing", "--limit", "40", "--rate", "100")
    assert 0.35 < time.monotonic() - began < 5


def test_push_says_how_to_go_on_when_redis_refuses(own_redis, capsys):
    with Store(own_redis.url, "full") as store:
        used = int(store.server()["used_memory"])
        store.call("CONFIG", "SET", "maxmemory", used + 300_000)
        with pytest.raises(SystemExit) as ended:
            cli.main(["push", "full", "ImageSegments", "--redis", own_redis.url])
        stored = store.length(store.keys.input)
    told = capsys.readouterr().err
    assert ended.value.code == 1
    assert 0 < stored < 2310
    assert f"go on with --skip {stored}" in told


def test_the_worker_answers_as_the_predictor_does_in_process(answered, redis_url):
    feed, _ = answered
    config = PredictorConfig(
        classes=["true", "false"], window=200, refit_every=50, refit_lag=0, metrics_every=40
    )
    predictor = OnlinePredictor(config)
    with Store(redis_url, feed) as store:
        payloads = [payload(e) for e in newest(store, store.keys.out, 1000)]
    for row, answered_with in zip(phishing(), payloads, strict=False):
        prediction = predictor.step(Example(row.x, row.y))
        message = orjson.loads(answered_with)
        assert message["label"] == prediction.label
        assert message["probabilities"] == list(prediction.probabilities)
        assert message["scores"] == list(prediction.scores)
    assert orjson.loads(payloads[-1])["status"] == "rejected"


def test_the_worker_tells_how_far_it_came_and_where_it_stopped(answered):
    _, told = answered
    counts = f"{ROWS + 1} answered, {ROWS} learned, 1 rejected"
    assert f"{counts} (online-svm tail answered --stream dlq), stopped" in told
    assert "accuracy" in told


def test_status_counts_what_was_answered(answered, run):
    feed, _ = answered
    code, out, _ = run("status", feed, "--json")
    found = orjson.loads(out)
    assert code == 0
    assert (found["seq"], found["n"], found["waiting"]) == (ROWS + 1, ROWS, 0)
    assert (found["out"], found["met"], found["dlq"]) == (ROWS + 1, ROWS // 40, 1)
    assert found["holder"] is None
    assert found["validity"]["n"] == ROWS // 40 * 40


def test_status_in_words_names_the_feed_and_its_validity(answered, run):
    feed, _ = answered
    _, out, _ = run("status", feed)
    assert f"feed {feed}" in out
    assert "accuracy" in out
    assert f" scored of the first {ROWS // 40 * 40} learned\n" in out


def test_status_lists_the_feeds_that_no_worker_has_begun(own_redis, capsys, source):
    def tell(*arguments):
        with pytest.raises(SystemExit) as ended:
            cli.main([*arguments, "--redis", own_redis.url])
        assert ended.value.code == 0
        return capsys.readouterr().out

    assert tell("status").startswith("no feeds yet: online-svm push FEED SOURCE")
    tell("push", "mail", str(source), "--limit", "3")
    tell("fork", "mail")
    found = [orjson.loads(text) for text in tell("status", "--json").splitlines()]
    assert [(one["feed"], one["waiting"], one["epoch"]) for one in found] == [
        ("mail", 3, 0),
        ("mail-2", 3, 0),
    ]
    rows = [line.split()[:4] for line in tell("status").splitlines()]
    assert rows == [
        ["feed", "worker", "answered", "waiting"],
        ["mail", "none", "0", "3"],
        ["mail-2", "none", "0", "3"],
    ]


def test_a_feed_of_which_nothing_is_left_is_listed_no_more(run, store, feed):
    store.register()
    store.call("XADD", store.keys.out, "*", "p", "{}")
    assert run("reset", feed, "--yes")[0] == 0
    assert feed not in names(store)


def test_a_feed_that_was_pushed_and_reset_stays_listed_with_its_input(run, store, feed, source):
    run("push", feed, str(source), "--limit", "3")
    assert run("reset", feed, "--yes")[0] == 0
    assert feed in names(store)
    assert run("reset", feed, "--yes", "--input")[0] == 0
    assert feed not in names(store)


@pytest.mark.parametrize(("count", "told"), [(1, "1 entry waits"), (3, "3 entries wait")])
def test_tail_says_that_input_waits_where_nothing_is_answered(run, feed, source, count, told):
    run("push", feed, str(source), "--limit", str(count))
    expected = (0, "", f"no answers yet: {told} for a worker\n")
    assert run("tail", feed) == expected
    assert run("tail", feed, "--stream", "met", "--json") == expected


def test_status_of_an_unknown_feed_is_an_error(run):
    code, _, err = run("status", "nobody")
    assert code == 2
    assert "no feed 'nobody'" in err


def test_tail_prints_the_payloads_as_they_are_stored(answered, run, redis_url):
    feed, _ = answered
    _, out, _ = run("tail", feed, "--raw", "--count", "0")
    with Store(redis_url, feed) as store:
        stored = [payload(e).decode() for e in newest(store, store.keys.out, 1000)]
    assert out.splitlines() == stored
    _, out, _ = run("tail", feed, "--json", "--stream", "met", "-n", "1")
    assert orjson.loads(out)["n"] == ROWS // 40 * 40


def test_tail_shows_answers_and_rejections_in_words(answered, run):
    feed, _ = answered
    _, out, _ = run("tail", feed, "-n", "2")
    answer, rejection = out.splitlines()
    assert "platt" in answer
    assert answer.endswith("exact")
    assert "rejected: unknown_feature" in rejection or "rejected: missing_feature" in rejection


def test_tail_follows_a_feed_until_it_is_interrupted(answered, redis_url):
    feed, _ = answered
    command = [sys.executable, "-m", "workers.cli", "tail", feed, "-n", "1", "--json", "--follow"]
    tail = Process(
        [*command, "--redis", redis_url],
        stdout=subprocess.PIPE,
        # Where the tests run in the background of a shell, SIGINT is ignored and that is inherited.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    try:
        assert orjson.loads(tail.stdout.readline())["id"] == "bad one"
        with Store(redis_url, feed) as store:
            last = newest(store, store.keys.out, 1)[0][0]
            later = b"%d-0" % (int(last.split(b"-")[0]) + 1)
            store.call("XADD", store.keys.out, later, "p", '{"late":1}')
            try:
                assert tail.stdout.readline() == b'{"late":1}\n'
            finally:
                store.call("XDEL", store.keys.out, later)
                store.call("XSETID", store.keys.out, last)  # as it was: `check` looks at it
        tail.send_signal(signal.SIGINT)
        assert tail.wait(10) == 130
    finally:
        tail.kill()
        tail.wait()
        tail.stdout.close()


# The last one writes so little that it meets the closed pipe only when it has ended.
@pytest.mark.parametrize(
    "command", [("export",), ("tail", "-n", "0", "--json"), ("tail", "-n", "1")]
)
def test_a_command_whose_reader_is_gone_ends_quietly_with_code_0(answered, redis_url, command):
    feed, _ = answered
    reading, writing = os.pipe()
    os.close(reading)
    arguments = [command[0], feed, *command[1:], "--redis", redis_url]
    done = subprocess.run(
        [sys.executable, "-m", "workers.cli", *arguments],
        stdout=writing,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("command", ["push", "verify", "export"])
def test_work_that_ends_because_nobody_reads_is_not_done(
    answered, redis_url, source, command, tmp_path
):
    reading, writing = os.pipe()
    os.close(reading)
    arguments = {
        "push": ["push", "unheard", str(source)],
        "verify": ["verify", answered[0]],
        "export": ["export", answered[0], "--to", str(tmp_path), "--json"],
    }[command]
    done = subprocess.run(
        [sys.executable, "-m", "workers.cli", *arguments, "--redis", redis_url],
        stdout=writing,
        stderr=writing,
        check=False,
        timeout=120,
    )
    os.close(writing)
    assert done.returncode == 1


def test_a_worker_whose_log_is_read_no_more_does_not_end_as_if_it_were_done(redis_url):
    reading, writing = os.pipe()
    os.close(reading)
    push(rows("Phishing", Reading()), redis_url, "unread")
    arguments = ["unread", "--redis", redis_url, "--classes", "true,false"]
    done = subprocess.run(
        [sys.executable, "-m", "workers.cli", "worker", *arguments],
        stdout=writing,
        stderr=writing,
        check=False,
        timeout=120,
    )
    os.close(writing)
    assert done.returncode == 1


def test_an_error_that_nobody_reads_has_its_exit_code(redis_url):
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "workers.cli", "status", "nosuch", "--redis", redis_url],
        stdout=writing,
        stderr=writing,
        check=False,
    )
    os.close(writing)
    assert done.returncode == 2


def test_a_listed_feed_without_keys_does_not_hide_the_others(redis_url, run):
    with Store(redis_url, "any") as store:
        for feed in ("listed-a", "listed-b", "listed-c"):
            store.call("SADD", REGISTRY, feed)
        for feed in ("listed-a", "listed-c"):
            store.call("XADD", FeedKeys(feed).input, "*", "x", "[1]")
        code, out, err = run("status", "--json")
        store.call("SREM", REGISTRY, "listed-b")
    shown = [orjson.loads(line)["feed"] for line in out.splitlines()]
    assert code == 0
    assert {"listed-a", "listed-c"} <= set(shown)
    assert "listed-b" not in shown
    assert "listed-b: no feed" in err


def test_a_broken_pipe_that_is_not_the_output_is_a_fault(answered, redis_url, monkeypatch):
    feed, _ = answered

    def broken(*arguments):
        raise BrokenPipeError

    monkeypatch.setattr("workers.reading.registry.require", broken)
    monkeypatch.setattr(sys, "stdout", sys.__stdout__)
    with pytest.raises(BrokenPipeError):
        cli.main(["tail", feed, "--redis", redis_url])


def test_dlq_shows_why_an_entry_was_rejected(answered, run):
    feed, _ = answered
    _, out, _ = run("tail", feed, "--stream", "dlq", "--json")
    found = orjson.loads(out)
    assert found["code"] in ("unknown_feature", "missing_feature")
    assert '{"age":1}' in found["head"]
    assert found["size"] == str(len('x{"age":1}ytrueidbad one'))


def test_export_writes_one_row_an_answer(answered, run, tmp_path):
    feed, _ = answered
    code, _, err = run("export", feed, str(tmp_path / "out.csv"))
    assert code == 0
    assert f"{ROWS + 1} answers exported" in err
    table = list(csv.DictReader(io.StringIO((tmp_path / "out.csv").read_text())))
    _, out, _ = run("tail", feed, "--json", "-n", "2")
    message = orjson.loads(out.splitlines()[0])
    assert float(table[-2]["probability true"]) == message["probabilities"][1]
    assert float(table[-2]["lower false"]) == message["intervals"][0][0]
    assert float(table[-2]["platt true"]) == message["maps"]["platt"][1]
    assert table[-1]["status"] == "rejected"
    assert table[-1]["id"] == "bad one"


def test_tail_and_export_know_the_labels_that_a_worker_learned(answered, run):
    feed, _ = answered
    sent = [row.y for row in phishing()] + [None]  # the last one is rejected
    told = [orjson.loads(text) for text in run("tail", feed, "--json", "-n", "0")[1].splitlines()]
    assert [one["true_label"] for one in told] == sent
    table = list(csv.DictReader(io.StringIO(run("export", feed)[1])))
    assert [row["true_label"] for row in table] == [label or "" for label in sent]
    right = [one.get("label") == label for one, label in zip(told, sent, strict=False)]
    assert [row["is_right"] for row in table[20:-1]] == [str(int(hit)) for hit in right[20:-1]]


def test_export_goes_to_standard_output_unless_a_file_is_named(answered, run, tmp_path):
    feed, _ = answered
    path = tmp_path / "out.csv"
    run("export", feed, str(path))
    for more in ([], ["-"]):
        assert run("export", feed, *more)[:2] == (0, path.read_text())
    assert path.read_text().startswith("entry,")


@pytest.mark.parametrize("command", [("export",), ("backup", "--out")])
def test_a_file_that_cannot_be_written_is_told_in_one_line(answered, run, command, tmp_path):
    feed, _ = answered
    path = tmp_path / "nowhere" / "file"
    code, _, err = run(command[0], feed, *command[1:], str(path))
    assert code == 2
    assert err == f"online-svm: {path}: cannot be written: No such file or directory\n"


def test_a_feed_that_is_pushed_and_not_answered_is_told_from_none(run, feed, source):
    code, _, err = run("verify", feed)
    assert (code, err.startswith(f"online-svm: no feed {feed!r}")) == (2, True)
    run("push", feed, str(source), "--limit", "3")
    code, _, err = run("verify", feed)
    assert (code, err) == (2, f"online-svm: feed {feed!r} has no answers yet: online-svm worker "
                              f"{feed}\n")  # fmt: skip
    assert run("export", feed)[:2] == (0, "entry\n")
    assert "\n  snapshots  none yet\n" in run("status", feed)[1]


def test_verify_finds_the_answers_identical(answered, run):
    feed, _ = answered
    code, out, _ = run("verify", feed, "--json")
    assert code == 0
    found = orjson.loads(out)
    assert found["identical"]
    assert found["answers"] == ROWS + 1


def test_verify_compares_the_whole_history_with_its_source(answered, run, source):
    feed, _ = answered
    code, out, _ = run("verify", feed, "--input", str(source))
    assert code == 0
    assert out.endswith("identical\n")
    code, out, err = run("verify", feed, "--input", str(source), "--shuffle", "1")
    assert code == 5
    assert "differ" in err
    assert out.count("\ndiffers at ") == 3
    assert re.search(r"\n\.\.\. and 1\d\d more that differ\nNOT identical\n$", out)


def test_verify_ends_with_code_5_where_an_answer_is_gone(answered, run, redis_url, feed):
    copy(redis_url, answered[0], feed, "state", "input", "out", "met", "dlq")
    with Store(redis_url, feed) as store:
        store.call("HSET", store.keys.state, "snapshot", "", "previous", "")
        last = newest(store, store.keys.out, 1)[0][0]
        store.call("XDEL", store.keys.out, last)
    code, _, err = run("verify", feed)
    assert code == 5
    assert last.decode() in err


def test_check_says_what_a_worker_would_find(answered, run):
    feed, _ = answered
    code, out, err = run("check", feed, *FLAGS, "--json")
    assert code == 0
    assert f"{ROWS + 1} answered" in err
    assert run("check", feed, "--json") == (0, out, err)  # what is not given is as stored
    code, _, err = run("check", feed, "--refit-every", "250")
    assert code == 2
    assert "refit_every: feed 50, here 250. Use the stored one (--refit-every 50), or: " in err


def test_fork_copies_the_input_under_the_same_ids(answered, run, redis_url):
    feed, _ = answered
    code, out, err = run("fork", feed)
    assert (code, out) == (0, f"{feed}-2\n")
    assert f"online-svm worker {feed}-2" in err
    with Store(redis_url, feed) as store, Store(redis_url, f"{feed}-2") as forked:
        assert newest(forked, forked.keys.input, 1000) == newest(store, store.keys.input, 1000)
    code, _, err = run("fork", f"{feed}-2", "--to", feed)
    assert code == 2
    assert "exists" in err


def test_fork_of_a_trimmed_feed_begins_with_what_is_kept_and_says_so(
    run, redis_url, answered, feed
):
    copy(redis_url, answered[0], feed, "state", "input")
    with Store(redis_url, feed) as store:
        store.call("XTRIM", store.keys.input, "MAXLEN", 10)
    code, _, err = run("fork", feed)
    assert code == 0
    assert err.startswith(
        f"10 entries copied; the new feed begins with these, as {ROWS - 9} older ones were "
        "answered and trimmed; to answer: "
    )


def test_a_feed_that_was_reset_is_answered_again_byte_for_byte(
    answered, run, redis_url, feed, store, tmp_path
):
    copy(redis_url, answered[0], feed, "state", "input", "out", "met", "dlq")
    before = store.state().position
    store.call("SET", store.keys.snapshot(1, "ab" * 32), "of the old state")
    assert run("reset", feed, "--yes")[0] == 0
    assert set(store.types()) == {store.keys.input}
    assert not store.has_snapshots()
    work(redis_url, feed, SETTINGS, ROWS + 1, tmp_path / "notes")
    assert store.state().position == before


def test_reset_can_delete_the_input_too(run, store, feed):
    store.call("XADD", store.keys.input, "*", "x", "[1]")
    store.register()
    assert run("reset", feed, "--yes", "--input")[0] == 0
    assert store.types() == {}
    assert feed not in names(store)


def test_reset_says_that_a_feed_without_answers_has_input_which_is_kept(run, store, feed, source):
    run("push", feed, str(source), "--limit", "3")
    code, _, err = run("reset", feed, "--yes")
    kept = "its input is kept (3 entries) unless --input"
    assert (code, err) == (0, f"feed {feed!r} has no answers and no state to delete; {kept}\n")
    store.call("XADD", store.keys.out, "*", "p", "{}")
    err = run("reset", feed, "--yes")[2]
    assert err == f"feed {feed!r} was reset: 1 key deleted; {kept}\n"
    assert store.length(store.keys.input) == 3


def test_reset_with_input_deletes_a_feed_that_is_input_alone(run, store, feed, source):
    run("push", feed, str(source), "--limit", "3")
    code, _, err = run("reset", feed, "--yes", "--input")
    assert (code, err) == (0, f"feed {feed!r} was reset: 1 key deleted\n")
    assert store.types() == {}
    nothing = f"no feed {feed!r}: nothing to delete; a worker may begin it anew\n"
    assert run("reset", feed, "--yes")[2] == nothing


def test_reset_refuses_a_feed_that_a_worker_holds(run, store, feed):
    from workers.broker.lease import Holder

    store.call("SET", store.keys.lease, Holder.here("me").encode())
    code, _, err = run("reset", feed, "--yes")
    assert code == 2
    assert "held by 'me'" in err
    assert run("reset", feed, "--yes", "--force")[0] == 0
    assert store.types() == {}


def test_a_feed_that_does_not_exist_is_said_so(run):
    code, _, told = run("tail", "nosuch")
    assert code == 2
    assert "no feed 'nosuch'" in told


def test_push_refuses_a_label_for_a_set_that_has_its_own(run, feed):
    code, _, told = run("push", feed, "Phishing", "--label", "colour")
    assert code == 2
    assert "--label colour" in told
