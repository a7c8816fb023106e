"""Answers are columns, from which the payload's bytes are made again."""

import random
import sqlite3
from contextlib import closing
from functools import partial

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from recorded_feed import answering, push, rows_of, stream

from online_svm.storage.recording import opened, transaction
from workers.message.encode import dumps
from workers.recording.answers import INSERT_ANSWER, SELECT_ANSWER, Forms
from workers.recording.backup import backup
from workers.recording.file import InvalidRecording
from workers.recording.reader import Recording

MILLION = 10**6
shares = st.integers(0, MILLION).map(lambda count: count / MILLION)
texts = st.text(max_size=6)
counts = st.integers(0, 2**53)


def prediction(seq, *, numbers, scores, label, id, counted, reason):
    """Return a payload as `message.encode` writes it, of two classes."""
    a, b, *rest = numbers
    sent = {} if id is None else {"id": id}
    return dumps({
        "v": 2, "status": "ok", **sent, "seq": seq, "n": counted, "label": label, "lower": a,
        "upper": b, "probability": a, "set": [label], "method": "experts", "interval_level": 0.9,
        "classes": ["a", label], "probabilities": [a, b], "intervals": [rest[:2], rest[2:4]],
        "venn": [rest[4:6], rest[6:8]], "maps": {"platt": rest[:2], label: rest[2:4]},
        "map_intervals": {"binning": [rest[:2], rest[:2]]}, "scores": scores, "svm_label": label,
        "category": None, "category_size": 3, "model": 1, "calibration": 1, "taxonomy": 0,
        "guarantee": "exact", "reason": reason,
    })  # fmt: skip


payloads = st.builds(
    lambda **more: partial(prediction, **more),
    numbers=st.lists(shares, min_size=10, max_size=10),
    scores=st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=3),
    label=texts, id=st.none() | texts, counted=counts, reason=st.none() | texts,
)  # fmt: skip
STRANGE = (
    b'{"v":2,"status":"rejected","seq":0,"n":1,"code":"x","about":{"case":"y","z":[1.0]}}',
    b'{"v":2,"status":"duplicate","id":"a","seq":0,"n":1,"first":2}', b'{"v":2,"seq":4}',
    b'{"v":2, "seq":0}', b'{"maps":{"a":[0.1234567]}}', b"[]", b"7", b'{"id":"\\ud800"}',
    b'{"n":1e400}', b'{"n":18446744073709551615}', b'{"scores":[true]}', b'{"scores":[]}',
    b'{"label_wanted":true,"label_probability":0.5}', b'{"probabilities":7}', b'{"n":1.0}',
    b'{"id":1,"id":2}', b'{"probabilities":[-0.0]}', b'{"intervals":[[9e9]]}', b'{"label":7}',
    b'{"lower":1}', b'{"classes":[[1]]}', b'{"classes":7}', b'{"guarantee":{"a":1}}',
    b'{"reason":[1]}', b'{"id":"\\u0000"}', b'{"probabilities":[1]}', b'{"status":true}',
    b'{"n":"7"}', b'{"category":"7"}', b'{"upper":"0.5"}', b'{"label":0.5}',
)  # fmt: skip
others = st.one_of(
    st.binary(max_size=20),
    st.dictionaries(texts, st.none() | st.booleans() | counts | shares | texts).map(dumps),
    st.sampled_from(STRANGE),
).map(lambda data: lambda _: data)


@given(found=st.lists(payloads | others, min_size=1, max_size=4))
@example(found=[partial(lambda data, _: data, data) for data in STRANGE])
def test_any_bytes_come_back(tmp_path_factory, found):
    path = tmp_path_factory.mktemp("answers") / "file"
    entries = [(b"%d-0" % seq, [b"p", make(seq)]) for seq, make in enumerate(found)]
    with opened(path, "rw") as file:
        with transaction(file):
            forms = Forms(file)
            for seq, entry in enumerate(entries):
                file.execute(INSERT_ANSWER, forms.row(seq, entry))
        held = [Forms(file).entry(row) for row in file.execute(f"{SELECT_ANSWER} ORDER BY seq")]
    assert held == entries


def test_an_answer_to_two_classes_has_at_most_200_bytes_and_its_numbers_have_names(tmp_path):
    path, count = tmp_path / "file", 20_000
    rng = random.Random(1)
    with opened(path, "rw") as file:
        before = path.stat().st_size
        with transaction(file):
            forms = Forms(file)
            for i in range(count):
                p = [rng.randrange(MILLION) / MILLION for _ in range(10)]
                data = prediction(
                    i, numbers=p, scores=[rng.gauss(0, 1)], label="true", id=f"customer-{i}",
                    counted=i, reason=None,
                )  # fmt: skip
                entry = (b"%d-0" % (1_763_800_000_000 + i), [b"p", data])
                file.execute(INSERT_ANSWER, forms.row(i, entry))
        assert (path.stat().st_size - before) / count <= 200
        assert file.execute("SELECT count(*) FROM answers WHERE form IS NULL").fetchone() == (0,)
        names = "probability_0, probability_1, lower_0, upper_0, lower_1, upper_1, venn_lower_0"
        row = file.execute(
            f"SELECT class_0, class_1, guarantee, venn_upper_1, {names} FROM two_classes "
            f"WHERE seq = {count - 1}"
        ).fetchone()
    assert row == ("a", "true", "exact", p[9], *p[:7])


def test_what_a_feed_has_answered_is_in_columns(embedded_url, feed, tmp_path):
    with answering(embedded_url, feed) as (store, answer, _):
        push(store, 0, 60)
        answer()
        backup(store, tmp_path / "file")
        expected = [orjson.loads(fields[1]) for _, fields in stream(store, "out")]
    for row, message in zip(rows_of(tmp_path / "file", "answers"), expected, strict=True):
        for name in ("seq", "n", "status", "id", "label", "probability", "lower", "upper", "code"):
            assert row[name] == message.get(name), name


def test_a_form_that_was_changed_is_named(embedded_url, feed, tmp_path):
    with answering(embedded_url, feed) as (store, answer, _):
        push(store, 0, 6)
        answer()
        backup(store, tmp_path / "file")
    with closing(sqlite3.connect(tmp_path / "file")) as file:
        file.execute("UPDATE forms SET text = '{' || form")
        file.commit()
    with (
        Recording.open(tmp_path / "file") as recording,
        pytest.raises(InvalidRecording, match="a row of answers is unreadable"),
    ):
        list(recording.each(recording.keys.out, b"0-0"))
